#include "backends/cpu/code/call_with_stack.h"

#include <pthread.h>

#include <cstdint>
#include <exception>
#include <new>

namespace lamina::cpu {

namespace {

// The stack that is left on this thread; 0 if unknown, as on a stack that the program has allocated.
size_t stack_left() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* lowest = nullptr;
  size_t size = 0;
  const bool is_known = pthread_attr_getstack(&attributes, &lowest, &size) == 0;
  pthread_attr_destroy(&attributes);
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)), begin = reinterpret_cast<uintptr_t>(lowest);
  return is_known && here > begin && here - begin < size ? here - begin : 0;
}

struct Call {
  const std::function<void()>& body;
  std::exception_ptr failure = nullptr;

  static void* run(void* state) {
    auto& self = *static_cast<Call*>(state);
    try {
      self.body();
    } catch (...) {
      self.failure = std::current_exception();
    }
    return nullptr;
  }
};

}  // namespace

void call_with_stack(size_t bytes, const std::function<void()>& call) {
  if (stack_left() >= bytes) return call();
  Call made{call};
  pthread_t thread;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) throw std::bad_alloc();
  const bool is_started =
      pthread_attr_setstacksize(&attributes, 2 * bytes) == 0 && pthread_create(&thread, &attributes, &Call::run, &made) == 0;
  pthread_attr_destroy(&attributes);
  if (!is_started) throw std::bad_alloc();
  pthread_join(thread, nullptr);
  if (made.failure != nullptr) std::rethrow_exception(made.failure);
}

}  // namespace lamina::cpu
