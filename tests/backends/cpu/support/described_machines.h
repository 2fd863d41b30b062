// Machines as values, so that tests do not depend on the host. Every host compiles kernels for all of them and runs them with a
// machine's own instructions if it supports these.
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

// AMD EPYC, fourth generation: AVX-512 with conversions to bf16, without f16 arithmetic.
inline DescribedMachine epyc() {
  return {"epyc",
          {.instructions = {.target = &cpu::targets::avx512, .rounds_to_bf16 = true, .multiplies_bf16_pairs = true},
           .cpu = "znver4",
           .features = "",
           .caches = {.first = 32 << 10, .second = 1 << 20},
           .cores = 8}};
}

// Intel Xeon, Sapphire Rapids: larger caches, f16 arithmetic, and no use of pairs of bf16, which it multiplies slowly.
inline DescribedMachine xeon() {
  return {"xeon",
          {.instructions = {.target = &cpu::targets::avx512, .rounds_to_bf16 = true, .computes_in_f16 = true},
           .cpu = "sapphirerapids",
           .features = "",
           .caches = {.first = 48 << 10, .second = 2 << 20},
           .cores = 16}};
}

// A small desktop with AVX2.
inline DescribedMachine desktop() {
  return {"desktop",
          {.instructions = {.target = &cpu::targets::avx2},
           .cpu = "x86-64-v3",
           .features = "",
           .caches = {.first = 32 << 10, .second = 256 << 10},
           .cores = 4}};
}

// Plain x86-64 without any further information.
inline DescribedMachine plain() { return {"plain", {}}; }

// Graviton 2: NEON only.
inline DescribedMachine neoverse_n1() {
  return {"neoverse_n1",
          {.instructions = {.architecture = &cpu::targets::aarch64, .target = &cpu::targets::neon, .computes_in_f16 = true},
           .cpu = "neoverse-n1",
           .features = "",
           .caches = {.first = 64 << 10, .second = 1 << 20},
           .cores = 8}};
}

// Graviton 3: SVE of 256 bits.
inline DescribedMachine neoverse_v1() {
  return {"neoverse_v1",
          {.instructions = {.architecture = &cpu::targets::aarch64,
                            .target = &cpu::targets::sve,
                            .scalable_bits = 256,
                            .computes_in_f16 = true},
           .cpu = "neoverse-v1",
           .features = "",
           .caches = {.first = 64 << 10, .second = 1 << 20},
           .cores = 8}};
}

// The processor of Fugaku: SVE of 512 bits.
inline DescribedMachine a64fx() {
  return {"a64fx",
          {.instructions = {.architecture = &cpu::targets::aarch64,
                            .target = &cpu::targets::sve,
                            .scalable_bits = 512,
                            .computes_in_f16 = true},
           .cpu = "a64fx",
           .features = "",
           .caches = {.first = 64 << 10, .second = 8 << 20},
           .cores = 12}};
}

// No processor has all of these features: the code compiles but runs on no host.
inline cpu::Machine machine_of_nowhere() {
  cpu::Machine machine = xeon().machine;
  machine.features = "+avx512fp16,+fma4";
  return machine;
}

// Of two processes that share the tests in turns (cmake/test_shards.cmake), one runs both machines with AVX-512. A host without
// AVX-512 runs the same code for both and compiles it once.
inline std::vector<DescribedMachine> described_machines() { return {epyc(), desktop(), xeon(), plain()}; }

// LLVM can compile for all of them on any host; the host runs only those of its own architecture.
inline std::vector<DescribedMachine> machines_of_all_architectures() {
  return {epyc(), xeon(), desktop(), plain(), neoverse_n1(), neoverse_v1(), a64fx()};
}

inline std::string name_of_machine(const ::testing::TestParamInfo<DescribedMachine>& info) { return info.param.name; }

// The host's targets, the most basic first: code can be limited to each of them.
inline std::vector<const cpu::Target*> targets_here() {
  const cpu::Instructions host = cpu::host_machine().instructions;
  std::vector<const cpu::Target*> all;
  for (const cpu::Target* each : cpu::targets::of(*host.architecture)) {
    if (cpu::targets::contains(*host.target, *each)) all.push_back(each);
  }
  return all;
}

// Returns the host's substitute for a described target: the same one, or, for another architecture, the target with the same
// distance from the most basic one.
inline const cpu::Target& target_in_place_of(const cpu::Instructions& described) {
  const cpu::Architecture& here = *cpu::host_machine().instructions.architecture;
  if (described.architecture == &here) return *described.target;
  const auto theirs = cpu::targets::of(*described.architecture), ours = cpu::targets::of(here);
  const auto rank = static_cast<size_t>(std::find(theirs.begin(), theirs.end(), described.target) - theirs.begin());
  return *ours[std::min(rank, ours.size() - 1)];
}

// Returns the machine itself if the host runs its code. Otherwise it returns the machine with the host's instructions, so that
// schedules still follow its caches and cores.
inline cpu::Machine to_run_here(const cpu::Machine& machine) {
  if (cpu::host_runs(machine)) return machine;
  cpu::Machine here = cpu::capped(cpu::host_machine(), target_in_place_of(machine.instructions));
  here.caches = machine.caches;
  here.cores = machine.cores;
  return here;
}

// A suite whose tests run on each of several machines and report machines whose own instructions did not run.
class OnDescribedMachine : public ::testing::TestWithParam<DescribedMachine> {
 protected:
  void SetUp() override {
    if (!cpu::host_runs(GetParam().machine)) RecordProperty("instructions_of_host", GetParam().name);
  }
  static cpu::Machine machine() { return to_run_here(GetParam().machine); }
};

}  // namespace lamina::testing
