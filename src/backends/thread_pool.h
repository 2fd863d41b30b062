// The functions of a caller's thread pool, as graph/lamina.h describes them (lamina_threadpool_t).
#pragma once

namespace lamina {

struct ThreadPool {
  void* user = nullptr;
  int (*num_threads)(void* user) = nullptr;
  int (*in_parallel)(void* user) = nullptr;
  void (*parallel_for)(void* user, int count, void (*work)(void* state, int index), void* state) = nullptr;
};

}  // namespace lamina
