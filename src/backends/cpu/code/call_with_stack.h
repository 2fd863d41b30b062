// Calls that need more stack than some threads have.
#pragma once

#include <cstddef>
#include <functional>

namespace lamina::cpu {

// For LLVM 19, from a kernel's IR to its code: six times what was seen. Of the widest bodies that tests have (Add, LayerNorm
// and GELU; ReLU's backward, LayerNorm's and Add; f32, bf16, f16, f64) 37 to 43 KiB were taken, most of them for plain x86-64,
// whose f16 makes 112 KB of code. A test measures it anew.
inline constexpr size_t kStackForLlvm = size_t{256} << 10;

// Makes the call on this thread if it has so many bytes of stack left, else on one that it waits for. What the call throws is
// thrown on. Throws std::bad_alloc where the system has no thread to give.
void call_with_stack(size_t bytes, const std::function<void()>& call);

}  // namespace lamina::cpu
