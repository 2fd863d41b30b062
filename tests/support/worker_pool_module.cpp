// Functions of a library that a test loads, calls and unloads.
#include "backends/cpu/threads/worker_pool.h"

extern "C" __attribute__((visibility("default"))) int worker_pool_module_sum(int units, int threads) {
  using namespace lamina::cpu;
  struct State {
    int units;
    std::atomic<int> sum = 0;
  } state{units};
  const Work work{&state, [](void* given, int64_t) -> int64_t { return static_cast<State*>(given)->units; },
                  [](void* given, const Piece& piece) {
                    for (int64_t i = piece.begin; i < piece.end; ++i) static_cast<State*>(given)->sum += static_cast<int>(i);
                  },
                  1, Scheduling::static_ranges};
  SharedWork shared(work);
  run_on_workers(shared, threads);
  return state.sum;
}
