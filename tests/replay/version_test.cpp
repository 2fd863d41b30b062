// `lamina --version`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver_process.h"

namespace lamina::driver {
namespace {

TEST(Version, NamesLaminaLlvmAndTheBackends) {
  const testing::Outcome outcome = testing::Workspace("version").run("--version");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "lamina " LAMINA_PROJECT_VERSION "\nLLVM " LAMINA_BUILT_WITH_LLVM "\nbackends: cpu, gpu, reference\n");
  EXPECT_EQ(outcome.err, "");
}

}  // namespace
}  // namespace lamina::driver
