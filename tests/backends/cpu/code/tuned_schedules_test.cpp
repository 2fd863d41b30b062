// Stored results of tuning: they are read back exactly and found only for their kernel and machine. A damaged text, or a
// schedule that is not legal for the kernel, is a miss.
#include "backends/tune/tuned_schedules.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>

#include "backends/cpu/code/cached_costs.h"
#include "backends/cpu/schedule/legal_schedules.h"
#include "backends/cpu/schedule/schedule.h"
#include "backends/cpu/support/described_machines.h"
#include "backends/cpu/support/kernels_of_rows.h"
#include "support/code_cache_folder.h"
#include "support/own_process.h"

namespace lamina::testing {
namespace {

using cpu::Schedule;
using TunedSchedule = TunedSchedule<Schedule>;

class TunedSchedules : public ::testing::Test {
 protected:
  void SetUp() override { tuned_texts::forget(); }
  void TearDown() override { tuned_texts::forget(); }

  const kernel::Kernel kernel_ = layer_norm({64, 1000});
  const cpu::Machine machine_ = epyc().machine;
  const Schedule by_rule_ = cpu::choose_schedule(kernel_, machine_, true);
  const TunedSchedule tuned_{{cpu::legal_schedules(kernel_, machine_).neighbours(by_rule_).at(0), 12.5},
                             {by_rule_, 20.125},
                             {{cpu::legal_schedules(kernel_, machine_).neighbours(by_rule_).at(1), 30}}};
};

TEST_F(TunedSchedules, AreReadBackAsWritten) {
  EXPECT_EQ(parse_tuned<Schedule>(text_of(tuned_)), tuned_);
  const TunedSchedule bare{{Schedule{}, 1}, {Schedule{}, 1}, {}};
  EXPECT_EQ(parse_tuned<Schedule>(text_of(bare)), bare);
}

TEST_F(TunedSchedules, AreNothingWhereTheTextIsCutOrChanged) {
  const std::string text = text_of(tuned_);
  for (size_t length = 0; length < text.size(); ++length) {
    const auto found = parse_tuned<Schedule>(text.substr(0, length));
    // Without whole lines at the end, the text is valid and lists fewer alternatives.
    EXPECT_TRUE(!found || (found->others.empty() && found->chosen == tuned_.chosen)) << length;
  }
  for (const char* const changed :
       {"", "lamina tuned schedule 2\n1 \n1 \n", "lamina tuned schedule 1\n1 \n", "lamina tuned schedule 1\n0 \n1 \n",
        "lamina tuned schedule 1\n-1 \n1 \n", "lamina tuned schedule 1\n1\n1 \n", "lamina tuned schedule 1\n1 split 2\n1 \n",
        "lamina tuned schedule 1\n1 \n1 \nrest"})
    EXPECT_FALSE(parse_tuned<Schedule>(changed)) << changed;
}

TEST_F(TunedSchedules, AreFoundForTheirKernelAndMachineAlone) {
  EXPECT_FALSE(find_tuned<Schedule>(kernel_, machine_));
  store_tuned(kernel_, machine_, tuned_);
  EXPECT_EQ(find_tuned<Schedule>(kernel_, machine_), tuned_);
  EXPECT_EQ(find_tuned<Schedule>(layer_norm({64, 1000}), machine_), tuned_);
  EXPECT_FALSE(find_tuned<Schedule>(layer_norm({65, 1000}), machine_)) << "other rows";
  EXPECT_FALSE(find_tuned<Schedule>(layer_norm({64, 1000, DataType::f32, true}), machine_)) << "other strides";
  EXPECT_FALSE(find_tuned<Schedule>(backward({64, 1000}), machine_));
  EXPECT_FALSE(find_tuned<Schedule>(kernel_, xeon().machine));
  cpu::Machine fewer = machine_;
  fewer.cores = 1;
  EXPECT_FALSE(find_tuned<Schedule>(kernel_, fewer));
}

TEST_F(TunedSchedules, AreReplacedByLaterOnes) {
  store_tuned(kernel_, machine_, tuned_);
  TunedSchedule later = tuned_;
  later.chosen = later.by_default;
  store_tuned(kernel_, machine_, later);
  EXPECT_EQ(find_tuned<Schedule>(kernel_, machine_), later);
}

// A miss on disk is looked up only once, even if another process adds the entry meanwhile.
TEST_F(TunedSchedules, DISABLED_InAProcessWithAFolder) {
  EXPECT_FALSE(find_tuned<Schedule>(kernel_, machine_));
  const kernel::Kernel other = layer_norm({64, 1002});
  const CodeCache& disk = *CodeCache::from_environment();
  const fs::path folder = std::getenv("LAMINA_CACHE_DIR");
  store_tuned(kernel_, machine_, tuned_);
  ASSERT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
  const std::string whole = read_file(fs::directory_iterator(folder)->path());
  uint64_t key_bytes = 0;
  std::memcpy(&key_bytes, whole.data() + 8, sizeof key_bytes);
  const std::string key = whole.substr(56, key_bytes);
  tuned_texts::forget();
  EXPECT_EQ(find_tuned<Schedule>(kernel_, machine_), tuned_) << "it is on the disk";

  fs::remove(folder / CodeCache::file_name(key));
  tuned_texts::forget();
  EXPECT_FALSE(find_tuned<Schedule>(kernel_, machine_));
  disk.store(key, text_of(tuned_));
  EXPECT_FALSE(find_tuned<Schedule>(kernel_, machine_)) << "the disk is read a second time";
  EXPECT_FALSE(find_tuned<Schedule>(other, machine_)) << "another kernel";
  store_tuned(kernel_, machine_, tuned_);
  EXPECT_EQ(find_tuned<Schedule>(kernel_, machine_), tuned_) << "what this process finds is taken all the same";
}

using TunedSchedulesOnDisk = CodeCacheFolder;
TEST_F(TunedSchedulesOnDisk, AreAskedForOnce) {
  expect_passes_in_own_process("TunedSchedules.DISABLED_InAProcessWithAFolder", {{"LAMINA_CACHE_DIR", folder_}});
}

}  // namespace
}  // namespace lamina::testing
