// Layer normalisation by descriptor of s8 and u8 tensors with run-time scales.
#include "layer_norm_fixture.h"

namespace api_test {
namespace {

struct Quantized {
  Quantized(DataType src, DataType dst, bool scaled) : c(layer_norm::pass::forward, kScale | kShift) {
    const double low = src == DataType::u8 ? 0 : -100;
    numbers.size = kColumns;
    const bool quantized_src = src == DataType::s8 || src == DataType::u8,
               quantized_dst = dst == DataType::s8 || dst == DataType::u8;
    const double src_scale = scaled && quantized_src ? 0.03 : 1;
    dst_scale = scaled && quantized_dst ? 0.04 : 1;
    const Values raw = c.add(arg::src, TypedTensor(src, kShape, RandomTensor(1).uniform(kRows * kColumns, low, 120))).values();
    for (const double value : raw) numbers.src.push_back(value * static_cast<double>(static_cast<float>(src_scale)));
    numbers.scale = c.add(arg::scale, TypedTensor(DataType::f32, {kColumns}, random_values(kColumns, 2))).values();
    numbers.shift = c.add(arg::shift, TypedTensor(DataType::f32, {kColumns}, random_values(kColumns, 3))).values();
    numbers.compute_statistics();
    c.add(arg::dst, TypedTensor(dst, kShape));
    if (scaled && quantized_src) c.add(arg::src_scale, TypedTensor(DataType::f32, {1}, Values{src_scale}));
    if (scaled && quantized_dst) c.add(arg::dst_scale, TypedTensor(DataType::f32, {1}, Values{dst_scale}));
  }
  // If the quotient is half way between two integers, both are right.
  void check() {
    const TypedTensor& dst = c[arg::dst];
    const bool quantized = dst.dtype == DataType::s8 || dst.dtype == DataType::u8;
    const double low = dst.dtype == DataType::u8 ? 0 : -128, high = dst.dtype == DataType::u8 ? 255 : 127;
    const Values exact = numbers.dst();
    if (!quantized) return expect_close(dst, exact, "dst", 1, DataType::f32);
    for (size_t i = 0; i < exact.size(); ++i) {
      const double quotient = std::clamp(exact[i] / static_cast<double>(static_cast<float>(dst_scale)), low, high);
      ASSERT_NEAR(dst.at(static_cast<int64_t>(i)), quotient, 0.5 + 1e-4) << "dst[" << i << "]";
    }
  }
  Case c;
  LayerNormNumbers numbers;
  double dst_scale;
};

TEST(LayerNormDescriptor, IntegersAreScaledAtRunTime) {
  for (const DataType src : {DataType::s8, DataType::u8, DataType::f32, DataType::bf16}) {
    for (const DataType dst : {DataType::s8, DataType::u8, DataType::f32, DataType::f16, DataType::f64}) {
      for (const bool scaled : {false, true}) {
        SCOPED_TRACE(::testing::Message() << name_of(src) << " to " << name_of(dst) << (scaled ? ", scaled" : ""));
        Quantized q(src, dst, scaled);
        q.c.run();
        q.check();
      }
    }
  }
}

TEST(LayerNormDescriptor, ScalesAreReadAtEachExecution) {
  Quantized q(DataType::s8, DataType::s8, true);
  const layer_norm norm = q.c.create();
  for (const double scale : {0.02, 0.05}) {
    q.c[arg::dst_scale].set(0, scale);
    q.dst_scale = scale;
    q.c.run(norm);
    q.check();
  }
}

}  // namespace
}  // namespace api_test
