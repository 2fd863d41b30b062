// The bits of whole graphs (golden_graphs.h) on the described machines, with every instruction set of the host, and for several
// numbers of threads.
#include <gtest/gtest.h>

#include "backends/cpu/backend.h"
#include "backends/cpu/library/default_primitive_library.h"
#include "backends/cpu/library/library_check.h"
#include "backends/cpu/support/described_machines.h"
#include "support/golden_graphs.h"

namespace lamina::testing {
namespace {

uint64_t hash_of_run(const GoldenGraph& golden, const cpu::Machine& machine) {
  const auto cpu = cpu::make_backend(machine, cpu::default_primitive_library());
  const LibraryRun run = expect_library_matches_reference(golden.build(golden.dtype), golden.error, {}, 1, *cpu);
  const LogicalTensor& dst = run.outputs.at(0);
  return hash_of_bytes(run.buffers.at(dst.id).data(), static_cast<size_t>(bytes_of(dst.dtype, dst.span())));
}

class GoldenGraphs : public OnDescribedMachine {};

TEST_P(GoldenGraphs, HaveTheBitsOfTheLastVersion) {
  for (const GoldenGraph& golden : golden_graphs()) {
    SCOPED_TRACE(golden.name);
    EXPECT_EQ(hash_of_run(golden, machine()), golden.hash);
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, GoldenGraphs, ::testing::ValuesIn(described_machines()), name_of_machine);

TEST(GoldenGraphsHere, HaveTheSameBitsWithEveryInstructionSet) {
  for (const GoldenGraph& golden : golden_graphs()) {
    for (const cpu::Target* most : targets_here()) {
      SCOPED_TRACE(join(golden.name, " with ", most->name));
      EXPECT_EQ(hash_of_run(golden, cpu::capped(cpu::host_machine(), *most)), golden.hash);
    }
  }
}

}  // namespace
}  // namespace lamina::testing
