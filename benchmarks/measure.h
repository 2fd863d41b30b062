// Times contenders that take turns in one process, round after round, so that disturbances affect all of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "contenders.h"

namespace bench {

struct Timing {
  std::string way;     // name of the fastest variant
  double seconds = 0;  // median over the rounds; 0: there was no contender
  double spread = 0;   // interquartile range over the median
};

struct Measurement {
  double seconds = 0.3;        // at least, per case
  int rounds = 11;             // at least
  int attempts = 4;            // as long as other programs disturb
  Evictor* evictor = nullptr;  // if given, runs before each run, so that all data come from memory
};

// Returns when the other threads of this program sleep. OpenMP's threads spin for milliseconds after a region, and would take
// cores from a contender with separate threads.
void wait_for_idle_threads();

// The fastest variant of each group. After three rounds, variants that are clearly slower than their group's best are
// dropped.
std::vector<Timing> measure(const std::vector<std::vector<Contender>>& groups, const Measurement& how);

// The fraction of all CPUs' time, between construction and others(), that other programs used or a hypervisor took away. 0 if
// the machine does not report it.
class BusyWatch {
 public:
  BusyWatch();
  double others() const;

 private:
  struct Reading {
    double machine = 0, own = 0, wall = 0;  // seconds
  };
  static Reading read();
  Reading start_;
};

}  // namespace bench
