// Calls that need more stack than some threads have.
#pragma once

#include <cstddef>
#include <functional>

namespace lamina::cpu {

// Makes the call on this thread if it has so many bytes of stack left, else on one that it waits for. What the call throws is
// thrown on. Throws std::bad_alloc where the system has no thread to give.
void call_with_stack(size_t bytes, const std::function<void()>& call);

}  // namespace lamina::cpu
