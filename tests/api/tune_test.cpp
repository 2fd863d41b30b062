// Tuning through the public interface: the number of timed kernels, equal bits before and after, and errors.
#include <limits>

#include "api_fixture.h"

namespace api_test {
namespace {

class Tune : public ::testing::Test {
 protected:
  // Each test uses its own number of rows: tuning results persist in the process.
  void use_rows(int64_t rows) {
    src_ = f32(0, {rows, 96});
    dst_ = f32(1, {rows, 96});
    norm_ = only_partition_of({op(0, op::kind::LayerNorm, {src_}, {dst_}, "ln")
                                   .set_attr(op::attr::use_affine, false)
                                   .set_attr(op::attr::keep_stats, false)});
  }
  std::vector<float> result() const {
    std::vector<float> in(static_cast<size_t>(src_.get_dims()[0]) * 96), out(in.size());
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % 89) * 0.37f - 11;
    stream s(cpu_);
    norm_.compile({src_}, {dst_}, cpu_).execute(s, {tensor(src_, cpu_, in.data())}, {tensor(dst_, cpu_, out.data())});
    return out;
  }
  engine cpu_{engine::kind::cpu, 0};
  logical_tensor src_, dst_;
  partition norm_;
};

TEST_F(Tune, TimesEachKernelOnceAndChangesNoBit) {
  use_rows(33);
  const std::vector<float> before = result();
  EXPECT_EQ(norm_.tune({src_}, {dst_}, cpu_, 20), 1u);
  EXPECT_EQ(norm_.tune({src_}, {dst_}, cpu_, 20), 0u) << "it is known";
  EXPECT_EQ(result(), before);
}

TEST_F(Tune, ZeroMillisecondsAreTheUsualBudgetAndTheCountMayBeLeftOut) {
  use_rows(34);
  const lamina_graph_logical_tensor_t* in = &src_.data;
  const lamina_graph_logical_tensor_t* out = &dst_.data;
  EXPECT_EQ(lamina_graph_partition_tune(norm_.get(), 1, &in, 1, &out, cpu_.get(), 0, nullptr), lamina_success);
  EXPECT_EQ(norm_.tune({src_}, {dst_}, cpu_), 0u);
}

TEST_F(Tune, RefusesWhatCompileRefusesAndNoBudget) {
  use_rows(35);
  for (const double milliseconds : {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(failure_of([&] { norm_.tune({src_}, {dst_}, cpu_, milliseconds); }),
                FailsWith(lamina_invalid_arguments, "allowed is a finite number of 0 or more"));
  }
  const Failure of_compile = failure_of([&] { norm_.compile({}, {dst_}, cpu_); }),
                of_tune = failure_of([&] { norm_.tune({}, {dst_}, cpu_); });
  EXPECT_EQ(of_tune.status, of_compile.status);
  EXPECT_EQ(of_tune.sentence, of_compile.sentence);
}

}  // namespace
}  // namespace api_test
