// How large the caches are. What a machine tells is not to be believed alone: sysconf adds up slices that a core does not reach
// (384 MiB on an EPYC whose sysfs says 32), and a hypervisor may tell of all that its host has.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace bench {

struct CacheSizes {
  size_t first_data = 0, second = 0, last = 0;  // bytes; 0: not told
};

CacheSizes told_by_sysfs();  // of the first CPU
CacheSizes told_by_sysconf();

// What one load costs that waits for the one before, somewhere in so much memory.
struct LatencyStep {
  size_t bytes;
  double nanoseconds;
};

// From 1 to 256 MiB by powers of two, the least of up to three times; takes two to six seconds, once in a process.
const std::vector<LatencyStep>& measured_latencies();

// The largest step whose loads take less than half of what the last step's take, which has to be memory: 0 where it is not.
size_t size_by_latencies(std::span<const LatencyStep> steps);

// What is told where the measurement does not contradict it, else what was measured. Between a sixteenth of what is told and
// twice that is no contradiction: neighbours take most of a cache and come and go (here loads were held up to 8 MiB of 32 in
// some minutes and to 2 in others), while sizes of problems should be the same from run to run.
size_t judged_last_level(size_t told, size_t measured);

// Of this machine, as sysfs tells (else sysconf), judged once in a process; 32 MiB where nothing is known.
size_t last_level_cache();

}  // namespace bench
