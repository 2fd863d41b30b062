// lamina's own worker threads, which help any caller. The caller works too and does not wait for workers that do not start: a
// call ends when the units that were taken have ended. Idle workers sleep.
#pragma once

#include "backends/cpu/threads/work.h"

namespace lamina::cpu {

// Does all of the work on the calling thread and up to threads - 1 workers (1024 at most). Workers are started on demand and
// shared by all callers of the process. Returns when all work has ended; `work` says whether it failed. After a fork, the
// child starts its own workers. Once the library is unloaded or the program ends, callers work alone. Allocates only when it
// starts workers.
void run_on_workers(SharedWork& work, int threads);

}  // namespace lamina::cpu
