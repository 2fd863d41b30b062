// A value of each thread, which goes with it.
#pragma once

#include <pthread.h>

#include <memory>
#include <new>

namespace lamina {

// As a thread_local variable would be, of which there is one for each Tag. But where such a variable has a destructor, the C
// library ends the process when it finds no memory to note it; this throws std::bad_alloc.
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
