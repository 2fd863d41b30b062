// CPU quotas of control groups, versions 1 and 2.
#include "backends/cpu/threads/cpu_quota.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace lamina::cpu {
namespace {

namespace fs = std::filesystem;

class CpuQuota : public ::testing::Test {
 protected:
  CpuQuota() {
    std::string folder = (fs::temp_directory_path() / "lamina_cpu_quota_XXXXXX").string();
    root_ = mkdtemp(folder.data());
  }
  ~CpuQuota() override { fs::remove_all(root_); }

  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << '\n';
  }
  std::optional<int> quota(const std::string& groups) const {
    std::istringstream text(groups);
    return cpu_quota(root_, text);
  }

  fs::path root_;
};

TEST_F(CpuQuota, IsNothingWhereNoneIsSet) {
  EXPECT_EQ(quota("0::/a\n"), std::nullopt);
  write("a/cpu.max", "max 100000");
  EXPECT_EQ(quota("0::/a\n"), std::nullopt);
  write("cpu,cpuacct/cpu.cfs_quota_us", "-1");
  write("cpu,cpuacct/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quota("3:cpu,cpuacct:/\n0::/a\n"), std::nullopt);
  EXPECT_EQ(quota(""), std::nullopt);
  EXPECT_EQ(quota("no such line\n"), std::nullopt);
}

TEST_F(CpuQuota, IsThatOfTheTightestGroupRoundedUp) {
  write("a/cpu.max", "250000 100000");
  write("a/b/cpu.max", "max 100000");
  EXPECT_EQ(quota("0::/a/b\n"), 3);
  write("a/b/cpu.max", "50000 100000");
  EXPECT_EQ(quota("0::/a/b\n"), 1);
  EXPECT_EQ(quota("0::/elsewhere\n"), std::nullopt);
}

TEST_F(CpuQuota, IsReadInVersion1AndWhereAContainerSeesItsGroupAsTheMount) {
  write("cpu,cpuacct/cpu.cfs_quota_us", "400000");
  write("cpu,cpuacct/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quota("5:memory:/x\n4:cpu,cpuacct:/docker/outside\n"), 4);
  EXPECT_EQ(quota("4:cpuset:/\n"), std::nullopt);
}

}  // namespace
}  // namespace lamina::cpu
