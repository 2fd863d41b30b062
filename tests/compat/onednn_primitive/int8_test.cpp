// Layer normalization of s8 and u8 tensors with run-time scales, executed by argument index.
#include "primitive_fixture.h"

namespace primitive_test {
namespace {

struct Int8Case {
  Int8Case(dt from, dt to) : src_md(dims, from, tag::tnc), dst_md(dims, to, tag::tnc) {}

  static bool is_integer(dt type) { return type == dt::s8 || type == dt::u8; }

  // `scaled` sides have a scale, given at execution.
  void run(bool src_scaled, bool dst_scaled, prop_kind kind = prop_kind::forward_inference) {
    dnnl::primitive_attr attr;
    if (src_scaled) attr.set_scales_mask(DNNL_ARG_SRC, 0);
    if (dst_scaled) attr.set_scales_mask(DNNL_ARG_DST, 0);
    const layer_normalization_forward::primitive_desc pd(cpu, kind, src_md, dst_md, 1e-5f, kScale | kShift, attr);
    std::unordered_map<int, memory> args;
    const auto add = [&](int index, const memory::desc& desc, const Values& values) {
      args[index] = memory(desc, cpu);
      return fill(args[index], values);
    };
    const double low = src_md.get_data_type() == dt::u8 ? 0 : -100;
    const Values stored = add(DNNL_ARG_SRC, src_md, RandomTensor(1).uniform(5 * 7 * 33, low, 100));
    numbers.size = 33;
    numbers.scale = add(DNNL_ARG_SCALE, pd.weights_desc(), RandomTensor(2).uniform(33, -2, 2));
    numbers.shift = add(DNNL_ARG_SHIFT, pd.weights_desc(), RandomTensor(3).uniform(33, -2, 2));
    const memory::desc one({1}, dt::f32, tag::x);
    if (src_scaled) src_scale = add(DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC, one, {0.03})[0];
    if (dst_scaled) dst_scale = add(DNNL_ARG_ATTR_SCALES | DNNL_ARG_DST, one, {0.04})[0];
    if (kind == prop_kind::forward_training) {
      add(DNNL_ARG_MEAN, pd.mean_desc(), {});
      add(DNNL_ARG_VARIANCE, pd.variance_desc(), {});
    }
    add(DNNL_ARG_DST, dst_md, {});
    numbers.src.clear();
    for (const double value : stored) numbers.src.push_back(value * src_scale);
    numbers.compute_statistics();
    layer_normalization_forward(pd).execute(s, args);
    s.wait();
    dst = read(args[DNNL_ARG_DST]);
    if (kind == prop_kind::forward_training) mean = read(args[DNNL_ARG_MEAN]);
  }

  void check() const {
    const dt type = dst_md.get_data_type();
    const Values exact = numbers.dst();
    if (!is_integer(type)) return expect_close(dst, exact, type, "dst");
    const double low = type == dt::u8 ? 0 : -128, high = type == dt::u8 ? 255 : 127;
    for (size_t i = 0; i < exact.size(); ++i)
      ASSERT_NEAR(dst[i], std::clamp(exact[i] / dst_scale, low, high), 0.5 + 1e-4) << "dst[" << i << "]";
  }

  memory::dims dims{5, 7, 33};
  memory::desc src_md, dst_md;
  LayerNormNumbers numbers;
  double src_scale = 1, dst_scale = 1;
  Values dst, mean;
  engine cpu{engine::kind::cpu, 0};
  stream s{cpu};
};

TEST(LayerNormalizationInt8, ForwardTakesRunTimeScalesOfSrcAndDst) {
  for (const dt src : {dt::s8, dt::u8, dt::f32, dt::bf16, dt::f16})
    for (const dt dst : {dt::s8, dt::u8, dt::f32, dt::bf16, dt::f16}) {
      if (!Int8Case::is_integer(src) && !Int8Case::is_integer(dst)) continue;
      for (const bool scaled : {false, true}) {
        SCOPED_TRACE(::testing::Message() << static_cast<int>(src) << " to " << static_cast<int>(dst)
                                          << (scaled ? ", scaled" : ""));
        Int8Case c(src, dst);
        c.run(scaled && Int8Case::is_integer(src), scaled && Int8Case::is_integer(dst));
        c.check();
      }
    }
}

TEST(LayerNormalizationInt8, StatisticsAreThoseOfTheScaledSource) {
  Int8Case c(dt::s8, dt::s8);
  c.run(true, true, prop_kind::forward_training);
  c.check();
  expect_close(c.mean, c.numbers.mean, dt::f32, "mean");
}

TEST(LayerNormalizationInt8, ScalesMustBeGivenAtExecution) {
  const engine cpu(engine::kind::cpu, 0);
  stream s(cpu);
  const memory::desc bytes({4, 8}, dt::s8, tag::nc);
  dnnl::primitive_attr attr;
  attr.set_scales_mask(DNNL_ARG_SRC, 0);
  const layer_normalization_forward forward({cpu, prop_kind::forward_inference, bytes, bytes, 1e-5f, kNone, attr});
  const memory data(bytes, cpu);
  EXPECT_THAT(failure_of([&] { forward.execute(s, {{DNNL_ARG_SRC, data}, {DNNL_ARG_DST, data}}); }),
              FailsWith(dnnl_invalid_arguments, "argument DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC is missing"));
}

TEST(LayerNormalizationInt8, InPlaceGivesTheSameNumbers) {
  const engine cpu(engine::kind::cpu, 0);
  stream s(cpu);
  const memory::desc bytes({4, 80}, dt::s8, tag::nc);
  const layer_normalization_forward forward({cpu, prop_kind::forward_inference, bytes, bytes, 1e-5f, kNone});
  const memory data(bytes, cpu), apart(bytes, cpu);
  fill(data, RandomTensor(1).uniform(320, -100, 100));
  forward.execute(s, {{DNNL_ARG_SRC, data}, {DNNL_ARG_DST, apart}});
  forward.execute(s, {{DNNL_ARG_SRC, data}, {DNNL_ARG_DST, data}});
  EXPECT_EQ(read(data), read(apart));
}

}  // namespace
}  // namespace primitive_test
