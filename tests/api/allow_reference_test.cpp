// If the environment allows it, the reference runs ops that no backend supports; otherwise they are refused.
#include <cstdlib>

#include "api_fixture.h"

namespace api_test {
namespace {

using ::testing::ElementsAre;

class AllowReference : public ::testing::Test {
 protected:
  void TearDown() override { unsetenv("LAMINA_ALLOW_REFERENCE"); }

  // The axes are an input: without known axes, there is no loop nest.
  partition sum_over_given_axes() const {
    return only_partition_of({op(0, op::kind::ReduceSum, {src_, axes_}, {dst_}, "sum")});
  }

  logical_tensor src_ = f32(0, {2, 3}), axes_{1, data_type::s32, {1}, layout_type::strided}, dst_ = f32(2, {2});
  engine cpu_{engine::kind::cpu, 0};
};

TEST_F(AllowReference, IsAskedFor) {
  EXPECT_FALSE(sum_over_given_axes().is_supported());
  setenv("LAMINA_ALLOW_REFERENCE", "0", 1);
  EXPECT_FALSE(sum_over_given_axes().is_supported());
}

TEST_F(AllowReference, RunsWhatTheEngineDoesNot) {
  setenv("LAMINA_ALLOW_REFERENCE", "1", 1);
  const partition sum = sum_over_given_axes();
  ASSERT_TRUE(sum.is_supported());
  std::vector<float> src = {1, 2, 3, 4, 5, 6}, dst(2);
  std::vector<int32_t> axes = {1};
  sum.compile({src_, axes_}, {dst_}, cpu_)
      .execute(stream(cpu_), {{src_, cpu_, src.data()}, {axes_, cpu_, axes.data()}}, {{dst_, cpu_, dst.data()}});
  EXPECT_THAT(dst, ElementsAre(6.0f, 15.0f));
}

TEST_F(AllowReference, LeavesTheRestToTheEngine) {
  setenv("LAMINA_ALLOW_REFERENCE", "1", 1);
  const auto src = f32(0, {2}), dst = f32(1, {2});
  std::vector<float> in = {-1, 2}, out(2);
  compiled_relu(src, dst, cpu_).execute(stream(cpu_), {{src, cpu_, in.data()}}, {{dst, cpu_, out.data()}});
  EXPECT_THAT(out, ElementsAre(0.0f, 2.0f));
}

}  // namespace
}  // namespace api_test
