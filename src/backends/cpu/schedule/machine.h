// A machine that kernels are compiled for: all that schedules and code depend on besides the kernel. A value, so that a choice
// can be looked at, and code be made, for a machine other than the one at hand (code/host_machine.h describes that one).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "backends/cpu/targets/target.h"

namespace lamina::cpu {

// Bytes, of data.
struct Caches {
  int64_t first = int64_t{32} << 10, second = int64_t{1} << 20;  // that a core has to itself
  int64_t last = 0;                                              // that its neighbours share; 0: not known
  bool operator==(const Caches&) const = default;
};

// What work takes on this machine, in nanoseconds, on each core while all of them are at work: what the choice of a schedule
// turns on (cost_model.h). Generic values; those of the machine at hand are measured (calibrate.h).
struct Costs {
  // Of a line of 64 bytes: to read it, or to write it, where it lies in the first level, the second, the last, in memory.
  std::array<double, 4> read = {0.25, 0.4, 0.9, 2.7}, write = {0.15, 0.4, 0.9, 4.0};
  double stream = 2.2;           // to write it past the caches
  double miss_latency = 1.2;     // to wait for it, where it comes from memory and was not asked for in time, beside reading it
  double operation = 0.15;       // on a vector: an addition, a multiplication
  double conversion = 0.2;       // of a vector, from 16 bits and fewer or to them
  double function = 1.5;         // of a vector: an exponential, an error function
  double transpose = 2.1;        // a vector of a block that is transposed
  double gather = 6.0;           // a vector of elements that lie apart
  double fold = 5;               // of a row: the lanes of a reduction become a value
  double branch_mispredict = 6;  // a loop ends where that was not foreseen
  double wait = 800;             // threads for each other
  bool operator==(const Costs&) const = default;
};

// visit(name, value) of each, by the names that a cache on disk has.
template <typename SomeCosts, typename Visit>
void for_each_cost(SomeCosts& costs, const Visit& visit) {
  static constexpr const char* kLevels[] = {"first", "second", "last", "memory"};
  for (size_t level = 0; level < costs.read.size(); ++level) {
    visit(std::string("read_") + kLevels[level], costs.read[level]);
    visit(std::string("write_") + kLevels[level], costs.write[level]);
  }
  visit("stream", costs.stream);
  visit("late", costs.miss_latency);
  visit("operation", costs.operation);
  visit("conversion", costs.conversion);
  visit("function", costs.function);
  visit("square", costs.transpose);
  visit("gather", costs.gather);
  visit("fold", costs.fold);
  visit("stop", costs.branch_mispredict);
  visit("wait", costs.wait);
}

struct Machine {
  Instructions instructions;
  std::string cpu = instructions.architecture->plain_cpu, features = "";  // as LLVM calls them
  Caches caches;
  Costs costs = {};
  int cores = 1;
  bool operator==(const Machine&) const = default;
};

inline int vector_bits(const Machine& machine) { return vector_bits(machine.instructions); }
// The same where lanes are rows, and blocks of them are transposed.
inline int bits_across_rows(const Machine& machine) {
  return std::min(vector_bits(machine), machine.instructions->shuffled_bits);
}

// The same machine with no better instruction set than `most`: if it has a better one, code is made for all machines that have
// the best one that both know, not for a processor, so that it is the same everywhere.
Machine capped(Machine machine, const Target& most);

}  // namespace lamina::cpu
