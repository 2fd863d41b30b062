// A machine for which kernels are compiled: everything besides the kernel on which schedules and code depend. It is a value,
// so that schedules can be chosen and code can be generated for another machine (code/host_machine.h describes this one).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/cpu/targets/target.h"

namespace lamina::cpu {

// Sizes in bytes.
struct Caches {
  int64_t first = int64_t{32} << 10, second = int64_t{1} << 20;  // of one core
  int64_t last = 0;                                              // shared by several cores; 0: unknown
  bool operator==(const Caches&) const = default;
};

// The costs of work on this machine in nanoseconds, on each core while all cores are busy. The choice of a schedule depends
// on them (cost_model.h). These are generic values; calibrate.h measures those of this machine.
struct Costs {
  // Reading or writing a line of 64 bytes that is in the first level, the second, the last, or memory.
  std::array<double, 4> read = {0.25, 0.4, 0.9, 2.7}, write = {0.15, 0.4, 0.9, 4.0};
  double stream = 2.2;           // writing a line past the caches
  double miss_latency = 1.2;     // waiting for a line from memory that was not prefetched in time, in addition to reading it
  double operation = 0.15;       // per vector: an addition or a multiplication
  double conversion = 0.2;       // per vector, from 16 bits and fewer or to them
  double function = 1.5;         // per vector: an exponential, an error function
  double transpose = 1.1;        // per vector of 16 elements of a block that is transposed
  double gather = 6.0;           // per vector of 16 elements that are not contiguous
  double fold = 5;               // per row: reduces the lanes of a reduction to one value
  double walk = 2.5;             // per walk over a row, or over rows that are lanes: the loop's start and end
  double branch_mispredict = 6;  // a branch mispredict at the end of a loop
  double wait = 800;             // threads wait for each other
  bool operator==(const Costs&) const = default;
};

// Calls visit(name, value) for each cost, with the names of the cache on disk.
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
  visit("walk", costs.walk);
  visit("stop", costs.branch_mispredict);
  visit("wait", costs.wait);
}

struct Machine {
  Instructions instructions;
  std::string cpu = instructions.architecture->plain_cpu, features = "";  // LLVM's names
  Caches caches;
  Costs costs = {};
  int cores = 1;
  bool keeps_objects = false;  // code is written to a file: its object is kept (CompiledCode), and it is not loaded
  bool operator==(const Machine&) const = default;
};

inline int vector_bits(const Machine& machine) { return vector_bits(machine.instructions); }
std::vector<int> vector_widths(const Machine& machine);  // all, the widest first
// The same for vectors whose lanes are rows, and whose blocks are transposed.
inline int bits_across_rows(const Machine& machine) {
  return std::min(vector_bits(machine), machine.instructions->shuffled_bits);
}

// The same machine with an instruction set that is at most `most`. If its own is better, code is generated for the best
// common instruction set and not for a particular processor, so that it is the same on all such machines.
Machine capped(Machine machine, const Target& most);

}  // namespace lamina::cpu
