// The layer normalization primitive as in oneDNN's documentation: propagation kinds, flags, dims, types, statistics.
#include "primitive_fixture.h"

namespace primitive_test {
namespace {

TEST(LayerNormalizationPrimitive, ForwardTrainingTakesEveryCombinationOfFlags) {
  for (const normalization_flags flags : kAllFlags) {
    SCOPED_TRACE(::testing::Message() << "flags " << static_cast<unsigned>(flags));
    Case c({5, 7, 33});
    c.run_forward(prop_kind::forward_training, flags);
    c.expect_forward();
    expect_close(c.out(DNNL_ARG_MEAN), c.numbers.mean, dt::f32, "mean");
    expect_close(c.out(DNNL_ARG_VARIANCE), c.numbers.variance, dt::f32, "variance");
  }
}

TEST(LayerNormalizationPrimitive, ForwardInferenceExposesNoStatistics) {
  for (const normalization_flags flags : kAllFlags) {
    Case c({5, 7, 33});
    c.run_forward(prop_kind::forward_inference, flags);
    c.expect_forward();
    EXPECT_EQ(c.args.count(DNNL_ARG_MEAN), has(flags, kGlobal) ? 1U : 0U);
    const layer_normalization_forward::primitive_desc pd(c.cpu, prop_kind::forward_inference, c.src, c.dst, 1e-5f, flags);
    EXPECT_EQ(pd.mean_desc().is_zero(), !has(flags, kGlobal));
  }
}

TEST(LayerNormalizationPrimitive, BackwardTakesEveryCombinationOfFlags) {
  for (const normalization_flags flags : kAllFlags) {
    SCOPED_TRACE(::testing::Message() << "flags " << static_cast<unsigned>(flags));
    Case c({5, 7, 33});
    c.run_backward(prop_kind::backward, flags);
    c.expect_backward(flags);
  }
}

TEST(LayerNormalizationPrimitive, BackwardDataIsBackwardWithoutScaleAndShift) {
  for (const normalization_flags flags : {kNone, kGlobal}) {
    Case c({5, 7, 33});
    c.run_backward(prop_kind::backward_data, flags);
    c.expect_backward(flags);
  }
  for (const normalization_flags flags : {kScale, kShift}) {
    Case c({5, 7, 33});
    EXPECT_THAT(failure_of([&] { c.run_backward(prop_kind::backward_data, flags); }),
                FailsWith(dnnl_unimplemented, "backward_data is not supported"));
  }
}

TEST(LayerNormalizationPrimitive, UseGlobalStatsTakesTheCallersStatistics) {
  Case c({4, 3, 16});
  c.run_forward(prop_kind::forward_training, kGlobal | kScale | kShift);
  c.expect_forward();
  EXPECT_GT(std::abs(c.numbers.mean[0] - std::accumulate(c.numbers.src.begin(), c.numbers.src.begin() + 16, 0.0) / 16), 1e-3)
      << "the statistics given are not those of src, or the test says nothing";
}

TEST(LayerNormalizationPrimitive, UseScaleAlone) {
  Case c({4, 3, 16});
  c.run_forward(prop_kind::forward_training, kScale);
  c.expect_forward();
  c.run_backward(prop_kind::backward, kScale);
  c.expect_backward(kScale);
  EXPECT_EQ(c.args.count(DNNL_ARG_DIFF_SHIFT), 0U);
}

TEST(LayerNormalizationPrimitive, UseShiftAlone) {
  Case c({4, 3, 16});
  c.run_forward(prop_kind::forward_training, kShift);
  c.expect_forward();
  c.run_backward(prop_kind::backward, kShift);
  c.expect_backward(kShift);
  EXPECT_EQ(c.args.count(DNNL_ARG_DIFF_SCALE), 0U);
}

TEST(LayerNormalizationPrimitive, TakesTwoToSixDims) {
  for (const memory::dims& dims : {memory::dims{6, 33}, {2, 3, 33}, {2, 3, 4, 33}, {2, 3, 1, 4, 33}, {2, 1, 3, 2, 2, 33}}) {
    Case c(dims);
    c.run_forward(prop_kind::forward_training, kScale | kShift);
    c.expect_forward();
    c.run_backward(prop_kind::backward, kScale | kShift);
    c.expect_backward(kScale | kShift);
  }
}

TEST(LayerNormalizationPrimitive, ForwardTakesEveryPairOfFloatingTypes) {
  for (const dt src : {dt::f32, dt::bf16, dt::f16, dt::f64})
    for (const dt dst : {dt::f32, dt::bf16, dt::f16, dt::f64}) {
      SCOPED_TRACE(::testing::Message() << static_cast<int>(src) << " to " << static_cast<int>(dst));
      Case c({5, 7, 33});
      c.src = {c.dims, src, tag::abc};
      c.dst = {c.dims, dst, tag::abc};
      c.run_forward(prop_kind::forward_training, kScale | kShift);
      c.expect_forward();
      EXPECT_EQ(c.args.at(DNNL_ARG_MEAN).get_desc().get_data_type(), dt::f32) << "statistics are f32 whatever the data are";
    }
}

TEST(LayerNormalizationPrimitive, BackwardTakesEveryPairOfFloatingTypes) {
  for (const dt src : {dt::f32, dt::bf16, dt::f16, dt::f64})
    for (const dt diff : {dt::f32, dt::bf16, dt::f16, dt::f64}) {
      SCOPED_TRACE(::testing::Message() << static_cast<int>(src) << ", " << static_cast<int>(diff));
      Case c({5, 7, 33});
      c.src = {c.dims, src, tag::abc};
      c.dst = {c.dims, diff, tag::abc};
      c.run_backward(prop_kind::backward, kScale | kShift);
      c.expect_backward(kScale | kShift);
    }
}

TEST(LayerNormalizationPrimitive, InPlaceForwardGivesTheSameBits) {
  for (const dt type : {dt::f32, dt::bf16, dt::f16, dt::f64}) {
    Case c({5, 7, 33});
    c.src = c.dst = {c.dims, type, tag::abc};
    c.run_forward(prop_kind::forward_training, kScale | kShift);
    const Values apart = c.out(DNNL_ARG_DST);
    c.run_forward(prop_kind::forward_training, kScale | kShift, true);
    EXPECT_EQ(c.out(DNNL_ARG_DST), apart);
  }
}

TEST(LayerNormalizationPrimitive, InPlaceBackwardGivesTheSameBits) {
  for (const dt type : {dt::f32, dt::bf16, dt::f16, dt::f64}) {
    Case c({5, 7, 33});
    c.src = c.dst = {c.dims, type, tag::abc};
    c.run_backward(prop_kind::backward, kScale | kShift);
    const Values apart = c.out(DNNL_ARG_DIFF_SRC);
    c.run_backward(prop_kind::backward, kScale | kShift, true);
    EXPECT_EQ(c.out(DNNL_ARG_DIFF_SRC), apart);
  }
}

TEST(LayerNormalizationPrimitive, StatisticsMayHaveAnyLayout) {
  Case c({5, 7, 33});
  c.run_forward(prop_kind::forward_training, kScale | kShift);
  const Values mean = c.out(DNNL_ARG_MEAN), dst = c.out(DNNL_ARG_DST);
  for (const memory::desc& stat : {memory::desc({5, 7}, dt::f32, tag::tn), memory::desc({5, 7}, dt::f32, tag::nt),
                                   memory::desc({5, 7}, dt::f32, memory::dims{20, 2})}) {
    c.stat = stat;
    c.run_forward(prop_kind::forward_training, kScale | kShift);
    EXPECT_EQ(c.args.at(DNNL_ARG_MEAN).get_desc(), stat);
    EXPECT_EQ(c.out(DNNL_ARG_MEAN), mean);
    EXPECT_EQ(c.out(DNNL_ARG_DST), dst);
    c.run_backward(prop_kind::backward, kScale | kShift);
    c.expect_backward(kScale | kShift);
  }
}

TEST(LayerNormalizationPrimitive, StatisticsFollowTheLayoutOfTheDataUnlessGiven) {
  const engine cpu(engine::kind::cpu, 0);
  const memory::desc tnc({5, 7, 33}, dt::f32, tag::tnc), ntc({5, 7, 33}, dt::f32, tag::ntc);
  const auto mean_of = [&](const memory::desc& md) {
    return layer_normalization_forward::primitive_desc(cpu, prop_kind::forward_training, md, md, 1e-5f, kNone).mean_desc();
  };
  EXPECT_EQ(mean_of(tnc), memory::desc({5, 7}, dt::f32, tag::tn));
  EXPECT_EQ(mean_of(ntc), memory::desc({5, 7}, dt::f32, tag::nt));
}

TEST(LayerNormalizationPrimitive, ADescriptorTellsWhatItWasMadeOf) {
  Case c({5, 7, 33});
  const layer_normalization_forward::primitive_desc pd(c.cpu, prop_kind::forward_training, c.src, c.dst, 1e-3f, kScale);
  EXPECT_TRUE(static_cast<bool>(pd));
  EXPECT_EQ(pd.get_prop_kind(), prop_kind::forward_training);
  EXPECT_EQ(pd.get_epsilon(), 1e-3f);
  EXPECT_EQ(pd.get_flags(), kScale);
  EXPECT_EQ(pd.src_desc(), c.src);
  EXPECT_EQ(pd.dst_desc(), c.dst);
  EXPECT_EQ(pd.weights_desc(), memory::desc({33}, dt::f32, tag::x));
  EXPECT_TRUE(pd.diff_src_desc().is_zero());
  EXPECT_TRUE(pd.scratchpad_desc().is_zero()) << "mode library";
  EXPECT_EQ(pd.get_engine(), c.cpu);
}

TEST(LayerNormalizationPrimitive, TheUserMayGiveTheScratchpad) {
  Case c({50, 7, 33});
  c.run_backward(prop_kind::backward, kScale | kShift);
  const Values expected = c.out(DNNL_ARG_DIFF_SCALE);
  c.attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const layer_normalization_forward::primitive_desc hint(c.cpu, prop_kind::forward_training, c.src, c.dst, 1e-5f,
                                                         kScale | kShift);
  const layer_normalization_backward::primitive_desc pd(c.cpu, prop_kind::backward, c.src, c.dst, c.src, 1e-5f, kScale | kShift,
                                                        hint, c.attr);
  ASSERT_GT(pd.scratchpad_desc().get_size(), 0U);
  const layer_normalization_backward backward(pd);
  EXPECT_THAT(failure_of([&] { backward.execute(c.s, c.args); }),
              FailsWith(dnnl_invalid_arguments, "DNNL_ARG_SCRATCHPAD is missing"));
  c.args[DNNL_ARG_SCRATCHPAD] = memory(pd.scratchpad_desc(), c.cpu);
  fill(c.args[DNNL_ARG_DIFF_SCALE], Values(33, 0));
  backward.execute(c.s, c.args);
  EXPECT_EQ(c.out(DNNL_ARG_DIFF_SCALE), expected);
}

TEST(LayerNormalizationPrimitive, EmptyTensorsAreANoOp) {
  Case c({0, 7, 33});
  c.run_forward(prop_kind::forward_inference, kNone);
  EXPECT_TRUE(c.out(DNNL_ARG_DST).empty());
}

}  // namespace
}  // namespace primitive_test
