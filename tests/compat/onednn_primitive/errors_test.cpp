// Invalid input to the primitive front end throws dnnl::error with a status and lamina's message.
#include "primitive_fixture.h"

namespace primitive_test {
namespace {

using forward_pd = layer_normalization_forward::primitive_desc;
using backward_pd = layer_normalization_backward::primitive_desc;

struct Errors : ::testing::Test {
  Failure forward_failure(const memory::desc& a_src, const memory::desc& a_dst, normalization_flags flags = kNone,
                          prop_kind kind = prop_kind::forward_training, const dnnl::primitive_attr& attr = {}) {
    EXPECT_FALSE(forward_pd(cpu, kind, a_src, a_dst, 1e-5f, flags, attr, true)) << "allow_empty leaves it empty";
    return failure_of([&] { forward_pd(cpu, kind, a_src, a_dst, 1e-5f, flags, attr); });
  }
  engine cpu{engine::kind::cpu, 0};
  stream s{cpu};
  memory::desc src{{4, 8}, dt::f32, tag::nc};
};

TEST_F(Errors, UnsupportedDataTypes) {
  const memory::desc integers({4, 8}, dt::s32, tag::nc), bytes({4, 8}, dt::s8, tag::nc);
  EXPECT_THAT(forward_failure(integers, src), FailsWith(dnnl_unimplemented, "argument src has type s32"));
  EXPECT_THAT(forward_failure(src, integers), FailsWith(dnnl_unimplemented, "argument dst has type s32"));
  const forward_pd hint(cpu, prop_kind::forward_training, src, src, 1e-5f, kNone);
  EXPECT_THAT(failure_of([&] { backward_pd(cpu, prop_kind::backward, bytes, bytes, bytes, 1e-5f, kNone, hint); }),
              FailsWith(dnnl_unimplemented, "type s8"));
  const memory::desc narrow({4}, dt::bf16, tag::x);
  EXPECT_THAT(failure_of([&] { forward_pd(cpu, prop_kind::forward_training, src, src, narrow, 1e-5f, kNone); }),
              FailsWith(dnnl_unimplemented, "the statistics have data type 2, allowed is f32"));
}

TEST_F(Errors, ShapesThatDoNotGoTogether) {
  EXPECT_THAT(forward_failure(src, {{4, 9}, dt::f32, tag::nc}),
              FailsWith(dnnl_invalid_arguments, "DNNL_ARG_DST has dims 4x9, src has 4x8"));
  EXPECT_THAT(forward_failure({{8}, dt::f32, tag::x}, {{8}, dt::f32, tag::x}),
              FailsWith(dnnl_invalid_arguments, "src has 1 dims, allowed is 2 to 6"));
  const memory::desc many({int64_t{1} << 62, 17, 1}, dt::f32, memory::dims{0, 0, 1});
  EXPECT_THAT(failure_of([&] { forward_pd(cpu, prop_kind::forward_training, many, many, 1e-5f, kNone); }),
              FailsWith(dnnl_invalid_arguments, "does not fit 64 bits"));
  const memory::desc wrong({5}, dt::f32, tag::x);
  EXPECT_THAT(failure_of([&] { forward_pd(cpu, prop_kind::forward_training, src, src, wrong, 1e-5f, kNone); }),
              FailsWith(dnnl_invalid_arguments, "the statistics have dims 5, allowed is 4"));
}

TEST_F(Errors, DescriptorsThatSayNonsense) {
  EXPECT_THAT(failure_of([] { memory::desc({4, 8}, dt::f32, tag::abc); }),
              FailsWith(dnnl_invalid_arguments, "format abc is for 3 dims, the tensor has 2"));
  EXPECT_THAT(failure_of([] { memory::desc({4, -8}, dt::f32, tag::ab); }), FailsWith(dnnl_invalid_arguments, "a dim is -8"));
  EXPECT_THAT(failure_of([] { memory::desc({4, 8}, dt::f32, memory::dims{1}); }),
              FailsWith(dnnl_invalid_arguments, "2 dims, 1 strides"));
  EXPECT_THAT(failure_of([] { memory::desc({4, 8}, dt::undef, tag::ab); }),
              FailsWith(dnnl_invalid_arguments, "data type is undef"));
  EXPECT_THAT(failure_of([] { memory::desc({INT64_MAX, INT64_MAX}, dt::f32, tag::ab); }),
              FailsWith(dnnl_invalid_arguments, "does not fit 64 bits"));
  EXPECT_THAT(failure_of([] { memory::desc({1, INT64_MAX, 1, 1}, dt::f32, tag::nChw16c); }),
              FailsWith(dnnl_invalid_arguments, "does not fit 64 bits"));
  EXPECT_TRUE(memory::desc({4, 8}, dt::f32, tag::abc, true).is_zero());
}

TEST_F(Errors, FlagsAndKindsThatDoNotFit) {
  EXPECT_THAT(forward_failure(src, src, normalization_flags::fuse_norm_relu), FailsWith(dnnl_unimplemented, "flags are 8"));
  EXPECT_THAT(forward_failure(src, src, kNone, prop_kind::backward),
              FailsWith(dnnl_invalid_arguments, "propagation kind 128 is not allowed"));
  EXPECT_THAT(failure_of([&] { forward_pd(cpu, prop_kind::forward_training, src, src, -1.0f, kNone); }),
              FailsWith(dnnl_invalid_arguments, "epsilon is -1"));
  EXPECT_THAT(failure_of([&] { backward_pd(cpu, prop_kind::backward, src, src, src, 1e-5f, kNone, forward_pd()); }),
              FailsWith(dnnl_invalid_arguments, "primitive descriptor is empty"));
}

TEST_F(Errors, ScalesAreForIntegersAndOnePerTensor) {
  dnnl::primitive_attr attr;
  attr.set_scales_mask(DNNL_ARG_SRC, 0);
  EXPECT_THAT(forward_failure(src, src, kNone, prop_kind::forward_training, attr),
              FailsWith(dnnl_unimplemented, "allowed only in the forward pass, for s8 and u8"));
  EXPECT_THAT(failure_of([&] { attr.set_scales_mask(DNNL_ARG_DST, 2); }),
              FailsWith(dnnl_unimplemented, "mask is 2, allowed is 0"));
  EXPECT_THAT(failure_of([&] { attr.set_scales_mask(DNNL_ARG_MEAN, 0); }), FailsWith(dnnl_invalid_arguments, "argument 49"));
}

TEST_F(Errors, ArgumentsOfAnExecution) {
  const layer_normalization_forward forward({cpu, prop_kind::forward_inference, src, src, 1e-5f, kScale});
  const memory data(src, cpu), scale({{8}, dt::f32, tag::x}, cpu);
  const auto execute = [&](const std::unordered_map<int, memory>& args) {
    return failure_of([&] { forward.execute(s, args); });
  };
  EXPECT_THAT(execute({{DNNL_ARG_SRC, data}, {DNNL_ARG_DST, data}}),
              FailsWith(dnnl_invalid_arguments, "argument DNNL_ARG_SCALE is missing"));
  EXPECT_THAT(execute({{DNNL_ARG_SRC, data}, {DNNL_ARG_DST, data}, {DNNL_ARG_SCALE, memory()}}),
              FailsWith(dnnl_invalid_arguments, "the memory is empty"));
  EXPECT_THAT(execute({{DNNL_ARG_SRC, data}, {DNNL_ARG_DST, memory({{4, 8}, dt::f32, tag::cn}, cpu)}, {DNNL_ARG_SCALE, scale}}),
              FailsWith(dnnl_invalid_arguments, "DNNL_ARG_DST has another shape, type or layout"));
  EXPECT_THAT(execute({{DNNL_ARG_SRC, memory(src, cpu, DNNL_MEMORY_NONE)}, {DNNL_ARG_DST, data}, {DNNL_ARG_SCALE, scale}}),
              FailsWith(dnnl_invalid_arguments, "the memory of argument src is null"));
  EXPECT_THAT(
      failure_of([&] { forward.execute(stream(), {{DNNL_ARG_SRC, data}, {DNNL_ARG_DST, data}, {DNNL_ARG_SCALE, scale}}); }),
      FailsWith(dnnl_invalid_arguments, "the stream is empty"));
  EXPECT_THAT(failure_of([&] { dnnl::primitive().execute(s, {}); }),
              FailsWith(dnnl_invalid_arguments, "the primitive is empty"));
}

TEST_F(Errors, ThereIsNoGpu) {
  EXPECT_EQ(engine::get_count(engine::kind::gpu), 0U);
  EXPECT_THAT(failure_of([] { engine(engine::kind::gpu, 0); }), FailsWith(dnnl_unimplemented, "engine kind gpu"));
  EXPECT_THAT(failure_of([] { engine(engine::kind::cpu, 1); }), FailsWith(dnnl_invalid_arguments, "engine index is 1"));
  EXPECT_THAT(failure_of([&] { memory(src, engine()); }), FailsWith(dnnl_invalid_arguments, "the engine is empty"));
}

}  // namespace
}  // namespace primitive_test
