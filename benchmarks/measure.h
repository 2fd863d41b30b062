// Times of contenders that take turns in one process, round after round, so that what disturbs the machine disturbs all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "contenders.h"

namespace bench {

struct Timing {
  std::string way;     // of the contender that was fastest
  double seconds = 0;  // median over the rounds; 0: there was no contender
  double spread = 0;   // distance of the quartiles over the median
};

struct Measurement {
  double seconds = 0.3;        // at least so long a case
  int rounds = 11;             // at least so many rounds
  int attempts = 4;            // while other programs disturb
  Evictor* evictor = nullptr;  // where given, runs before each single run: all data come from memory
};

// Returns when the other threads of this program are asleep. OpenMP's go on spinning for milliseconds after a region and would
// take a core from a contender that has threads of its own.
void wait_for_idle_threads();

// The fastest way of each group. After three rounds, ways that are clearly slower than their group's best leave.
std::vector<Timing> measure(const std::vector<std::vector<Contender>>& groups, const Measurement& how);

// What the rest of the machine did between construction and others(): CPU time of other programs, and time that a hypervisor
// took away, over the time that all CPUs had. 0 where the machine does not tell.
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
