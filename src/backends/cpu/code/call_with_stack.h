// Runs calls that need more stack than some threads have.
#pragma once

#include <cstddef>
#include <functional>

namespace lamina::cpu {

// The stack that LLVM 19 may need from a kernel's IR to its code: six times the measured use. The widest bodies in tests
// (Add, LayerNorm and GELU; ReLU's backward, LayerNorm's and Add; f32, bf16, f16, f64) needed 37 to 43 KiB. Most was for
// plain x86-64, whose f16 code has 112 KB. A test measures it again.
inline constexpr size_t kStackForLlvm = size_t{256} << 10;

// Makes the call on this thread if it has at least `bytes` of stack left, else on a new thread, and waits for it. Rethrows
// the exceptions of the call. Throws std::bad_alloc if the system cannot create a thread.
void call_with_stack(size_t bytes, const std::function<void()>& call);

}  // namespace lamina::cpu
