#include "backends/cpu/threads/executor.h"

#include <omp.h>

namespace lamina::cpu {

int thread_count(int threads) { return threads > 0 ? threads : omp_get_max_threads(); }

void run_team(int threads, void (*work)(void* state, int thread), void* state) {
  if (threads <= 1) {
    work(state, 0);
    return;
  }
#pragma omp parallel num_threads(threads)
  work(state, omp_get_thread_num());
}

ThreadLimit::ThreadLimit(int threads) : before_(omp_get_max_threads()) {
  if (threads > 0) omp_set_num_threads(threads);
}

ThreadLimit::~ThreadLimit() { omp_set_num_threads(before_); }

}  // namespace lamina::cpu
