// A value per thread, destroyed with the thread.
#pragma once

#include <pthread.h>

#include <memory>
#include <new>

namespace lamina {

// Like a thread_local variable per Tag. The C library terminates the process if it cannot allocate the record for the
// destructor of a thread_local variable; this class throws std::bad_alloc instead.
template <typename Tag, typename T>
class PerThread {
 public:
  static T& get() {
    if (value_ == nullptr) make();
    return *value_;
  }

 private:
  static void make() {
    static const pthread_key_t key = new_key();
    auto made = std::make_unique<T>();
    if (pthread_setspecific(key, made.get()) != 0) throw std::bad_alloc();
    value_ = made.release();
  }
  static pthread_key_t new_key() {
    pthread_key_t key;
    if (pthread_key_create(&key, &end) != 0) throw std::bad_alloc();
    return key;
  }
  static void end(void* value) {
    value_ = nullptr;
    delete static_cast<T*>(value);
  }

  static inline thread_local T* value_ = nullptr;
};

}  // namespace lamina
