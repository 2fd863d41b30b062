// The sizes of the caches. Reported sizes are not always correct: sysconf adds slices that a core does not reach (384 MiB on
// an EPYC for which sysfs reports 32), and a hypervisor may report the caches of the whole host.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace bench {

struct CacheSizes {
  size_t first_data = 0, second = 0, last = 0;  // bytes; 0: not reported
};

CacheSizes told_by_sysfs();  // of the first CPU
CacheSizes told_by_sysconf();

// The latency of a load that depends on the previous load, at a random position in `bytes` bytes.
struct LatencyStep {
  size_t bytes;
  double nanoseconds;
};

// For sizes from 1 to 256 MiB in powers of two, the minimum of up to three measurements. Takes two to six seconds, once per
// process.
const std::vector<LatencyStep>& measured_latencies();

// The largest step whose latency is below half of the last step's. Returns 0 if the last step is not main memory.
size_t size_by_latencies(std::span<const LatencyStep> steps);

// Returns the reported size if the measurement is compatible with it, else the measured size. A measured size from a
// sixteenth to twice the reported size is compatible: other programs use a varying part of the cache (on one machine, between
// 2 and 8 of 32 MiB were measured), while sizes of problems should not differ between runs.
size_t judged_last_level(size_t told, size_t measured);

// For this machine, from sysfs (else sysconf), judged once per process; 32 MiB if nothing is known.
size_t last_level_cache();

}  // namespace bench
