// Measures the stack use of a call: it runs on a stack filled with a pattern, and the overwritten part is measured.
#pragma once

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <stdexcept>

namespace lamina::testing {

// Returns bytes, including the few kilobytes of a thread's own variables. The call runs on a thread whose stack has `size`
// bytes. The stack has no guard page, so the call must not overflow it. Exceptions of the call are rethrown.
inline size_t stack_taken_by(const std::function<void()>& call, size_t size) {
  constexpr unsigned char kPaint = 0xa7;
  struct Run {
    const std::function<void()>& call;
    std::exception_ptr failure = nullptr;
    static void* start(void* state) {
      auto& self = *static_cast<Run*>(state);
      try {
        self.call();
      } catch (...) {
        self.failure = std::current_exception();
      }
      return nullptr;
    }
  } run{call};
  void* const mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (mapped == MAP_FAILED) throw std::runtime_error("no memory for a painted stack");
  auto* const stack = static_cast<unsigned char*>(mapped);
  std::fill_n(stack, size, kPaint);
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  const bool is_started =
      pthread_attr_setstack(&attributes, stack, size) == 0 && pthread_create(&thread, &attributes, &Run::start, &run) == 0;
  pthread_attr_destroy(&attributes);
  if (is_started) pthread_join(thread, nullptr);
  const size_t taken =
      size - static_cast<size_t>(std::find_if(stack, stack + size, [](auto b) { return b != kPaint; }) - stack);
  munmap(mapped, size);
  if (!is_started) throw std::runtime_error("no thread with a painted stack");
  if (run.failure != nullptr) std::rethrow_exception(run.failure);
  return taken;
}

}  // namespace lamina::testing
