#include "backends/cpu/schedule/caches.h"

#include <unistd.h>

namespace lamina::cpu {

const Caches& machine_caches() {
  static const Caches caches = [] {
    Caches found;
    if (const long bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE); bytes > 0) found.first = bytes;
    if (const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) found.second = bytes;
    return found;
  }();
  return caches;
}

}  // namespace lamina::cpu
