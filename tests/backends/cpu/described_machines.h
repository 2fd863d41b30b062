// Machines as values, so that no test depends on the one that it happens to run on. Kernels are compiled for all of them
// anywhere; they run with a machine's own instructions where the host has these.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/code/host_machine.h"

namespace lamina::testing {

struct DescribedMachine {
  std::string name;
  cpu::Machine machine;
  friend void PrintTo(const DescribedMachine& described, std::ostream* out) { *out << described.name; }
};

// AMD EPYC of the fourth generation: AVX-512 that rounds to bf16, without f16 arithmetic.
inline DescribedMachine epyc() {
  return {"epyc",
          {.isa = cpu::Isa::avx512,
           .cpu = "znver4",
           .features = "",
           .flags = {.sse41 = true, .f16c = true, .avx512 = true, .avx512_bf16 = true},
           .caches = {.first = 32 << 10, .second = 1 << 20},
           .cores = 8}};
}

// Intel Xeon, Sapphire Rapids: larger caches, and f16 arithmetic.
inline DescribedMachine xeon() {
  return {"xeon",
          {.isa = cpu::Isa::avx512,
           .cpu = "sapphirerapids",
           .features = "",
           .flags = {.sse41 = true, .f16c = true, .avx512 = true, .avx512_bf16 = true, .avx512_fp16 = true},
           .caches = {.first = 48 << 10, .second = 2 << 20},
           .cores = 16}};
}

// A small desktop with AVX2.
inline DescribedMachine desktop() {
  return {"desktop",
          {.isa = cpu::Isa::avx2,
           .cpu = "x86-64-v3",
           .features = "",
           .flags = {.sse41 = true, .f16c = true},
           .caches = {.first = 32 << 10, .second = 256 << 10},
           .cores = 4}};
}

// Plain x86-64 that tells nothing of itself.
inline DescribedMachine plain() { return {"plain", {}}; }

// No processor has all of these: code is made for it, and runs nowhere.
inline cpu::Machine machine_of_nowhere() {
  cpu::Machine machine = xeon().machine;
  machine.features = "+avx512fp16,+fma4";
  return machine;
}

inline std::vector<DescribedMachine> described_machines() { return {epyc(), xeon(), desktop(), plain()}; }

inline std::string name_of_machine(const ::testing::TestParamInfo<DescribedMachine>& info) { return info.param.name; }

// The machine itself where the host runs its code. Else with the host's instructions: what its caches and cores decide is run
// all the same.
inline cpu::Machine to_run_here(const cpu::Machine& machine) {
  if (cpu::host_runs(machine)) return machine;
  cpu::Machine here = cpu::capped(cpu::host_machine(), machine.isa);
  here.caches = machine.caches;
  here.cores = machine.cores;
  return here;
}

// A suite whose tests run on each of some machines. Its report says where a machine's own instructions did not run.
class OnDescribedMachine : public ::testing::TestWithParam<DescribedMachine> {
 protected:
  void SetUp() override {
    if (!cpu::host_runs(GetParam().machine)) RecordProperty("instructions_of_host", GetParam().name);
  }
  static cpu::Machine machine() { return to_run_here(GetParam().machine); }
};

}  // namespace lamina::testing
