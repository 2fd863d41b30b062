#include "backends/cpu/code/call_with_stack.h"

#include <pthread.h>

#include <cstdint>
#include <exception>
#include <new>

namespace lamina::cpu {

namespace {

struct Stack {
  uintptr_t lowest = 0;
  size_t size = 0;  // 0: unknown
};

Stack find_stack() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  void* lowest = nullptr;
  size_t size = 0;
  const bool is_known = pthread_attr_getstack(&attributes, &lowest, &size) == 0;
  pthread_attr_destroy(&attributes);
  return is_known ? Stack{reinterpret_cast<uintptr_t>(lowest), size} : Stack{};
}

// The stack that is left on this thread; 0 if unknown, as on a stack that the program has allocated. The thread's stack is
// found once, because for the first thread of a process glibc reads the list of all mappings, one or more for each kernel.
size_t stack_left() {
  thread_local Stack stack;
  if (stack.size == 0) stack = find_stack();
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return here > stack.lowest && here - stack.lowest < stack.size ? here - stack.lowest : 0;
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
