// Descriptions of instruction sets: inclusion between them, and the result of capping a machine.
#include "backends/cpu/targets/target.h"

#include <gtest/gtest.h>

#include <string_view>

#include "backends/cpu/support/described_machines.h"

namespace lamina::testing {
namespace {

namespace targets = cpu::targets;

TEST(Targets, ContainThePlainerOnesOfTheirArchitecture) {
  EXPECT_TRUE(targets::contains(targets::avx512, targets::avx2));
  EXPECT_TRUE(targets::contains(targets::sve, targets::neon));
  EXPECT_TRUE(targets::contains(targets::sve, targets::generic));
  EXPECT_TRUE(targets::contains(targets::avx2, targets::avx2));
  EXPECT_FALSE(targets::contains(targets::avx2, targets::avx512));
  EXPECT_FALSE(targets::contains(targets::avx512, targets::neon));
}

TEST(Targets, OfTwoHaveABestOneInCommon) {
  EXPECT_EQ(&targets::common(targets::avx512, targets::avx2), &targets::avx2);
  EXPECT_EQ(&targets::common(targets::neon, targets::sve), &targets::neon);
  EXPECT_EQ(&targets::common(targets::sve, targets::avx512), &targets::generic);
}

TEST(Targets, AreFoundByNameInTheirArchitecture) {
  for (const cpu::Architecture* const architecture : {&targets::x86_64, &targets::aarch64}) {
    for (const cpu::Target* const each : targets::of(*architecture)) {
      EXPECT_EQ(targets::find(*architecture, each->name), each);
      EXPECT_TRUE(each->architecture == nullptr || each->architecture == architecture) << each->name;
    }
  }
  EXPECT_EQ(targets::find(targets::aarch64, "avx2"), nullptr);
  EXPECT_EQ(targets::find(targets::x86_64, "sve"), nullptr);
}

// A target has all abilities of the targets that it includes, so it runs their code.
TEST(Targets, CanDoWhatThoseCanThatTheyContain) {
  for (const cpu::Architecture* const architecture : {&targets::x86_64, &targets::aarch64}) {
    for (const cpu::Target* const each : targets::of(*architecture)) {
      if (each->contains == nullptr) continue;
      EXPECT_GE(each->rounds_to_integer, each->contains->rounds_to_integer) << each->name;
      EXPECT_GE(each->converts_f16, each->contains->converts_f16) << each->name;
    }
  }
}

TEST(Machines, AreAsWideAsTheirTargetOrAsTheySay) {
  EXPECT_EQ(cpu::vector_bits(epyc().machine), 512);
  EXPECT_EQ(cpu::vector_bits(neoverse_n1().machine), 128);
  EXPECT_EQ(cpu::vector_bits(neoverse_v1().machine), 256);
  EXPECT_EQ(cpu::vector_bits(a64fx().machine), 512);
  EXPECT_EQ(cpu::bits_across_rows(a64fx().machine), 128);
  EXPECT_EQ(cpu::bits_across_rows(epyc().machine), 512);
}

TEST(Machines, KeepTheirArchitectureWhenTheyAreCapped) {
  const cpu::Machine neon = cpu::capped(neoverse_v1().machine, targets::neon);
  EXPECT_EQ(neon.instructions, (cpu::Instructions{.architecture = &targets::aarch64, .target = &targets::neon}));
  EXPECT_EQ(neon.cpu, "generic");
  EXPECT_EQ(neon.features, "");
  const cpu::Machine plainest = cpu::capped(neoverse_v1().machine, targets::avx512);
  EXPECT_EQ(plainest.instructions.architecture, &targets::aarch64);
  EXPECT_EQ(plainest.instructions.target, &targets::generic);
  EXPECT_EQ(cpu::capped(neoverse_v1().machine, targets::sve), neoverse_v1().machine);
}

// Code depends on the vector length.
TEST(Machines, ThatDifferInTheLengthOfVectorsAreTold) {
  EXPECT_EQ(cpu::describe(neoverse_v1().machine.instructions), "AArch64 sve of 256 bits, computes in f16");
  EXPECT_NE(cpu::describe(neoverse_v1().machine.instructions), cpu::describe(a64fx().machine.instructions));
}

}  // namespace
}  // namespace lamina::testing
