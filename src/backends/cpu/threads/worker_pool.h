// Threads of lamina's own that help whoever calls. The caller works as well; a worker that does not come is not waited for: a
// call ends when the units that were taken have ended. Idle workers sleep.
#pragma once

#include "backends/cpu/threads/work.h"

namespace lamina::cpu {

// Does all of the work, on the calling thread and up to threads - 1 workers (1024 at most), which are started when they are
// first wanted, and shared by all callers of the process. Returns when all has ended; `work` says whether it failed. After a
// fork the child starts workers of its own. From when the library is unloaded or the program ends callers work alone. Allocates
// nothing but when it starts workers.
void run_on_workers(SharedWork& work, int threads);

}  // namespace lamina::cpu
