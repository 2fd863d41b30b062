// Quantisation with run-time scales and zero points: per tensor, along an axis, by groups; alone and fused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backends/cpu/support/cpu_check.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f16 = DataType::f16;
constexpr DataType s8 = DataType::s8, u8 = DataType::u8, s32 = DataType::s32;

// The axis that the scales vary along: none, an outer axis, the innermost axis.
struct Along {
  std::string qtype;
  int64_t axis;
  Dims scales;
};

std::vector<Along> ways() {
  return {{"per_tensor", 1, {1}}, {"per_channel", 0, {6}}, {"per_channel", 1, {5}}, {"per_channel", -1, {70}}};
}

const Dims kShape{6, 5, 70};

TEST(DynamicQuantizeKernels, MatchTheReference) {
  for (const Along& along : ways()) {
    for (const DataType dtype : {u8, s8}) {
      for (const DataType zps : {DataType::undef, s32, u8, s8}) {
        SCOPED_TRACE(join(along.qtype, " along ", along.axis, " to ", name_of(dtype), " zps ", name_of(zps)));
        GraphBuilder g;
        std::vector<uint64_t> inputs{g.input(f32, kShape), g.input(f32, along.scales)};
        if (zps != DataType::undef) inputs.push_back(g.input(zps, along.scales));
        g.op(OpKind::DynamicQuantize, inputs, {{"qtype", along.qtype}, {"axis", along.axis}}, dtype);
        expect_one_kernel(expect_cpu_matches_reference(g.finish()));
      }
    }
  }
}

TEST(DynamicQuantizeKernels, TakesOneZeroPointForAllChannels) {
  GraphBuilder g;
  const std::vector<uint64_t> inputs{g.input(f32, kShape), g.input(f32, {5}), g.input(s32, {1})};
  g.op(OpKind::DynamicQuantize, inputs, {{"qtype", std::string("per_channel")}, {"axis", int64_t{1}}}, u8);
  expect_one_kernel(expect_cpu_matches_reference(g.finish()));
}

TEST(DynamicDequantizeKernels, MatchTheReference) {
  for (const Along& along : ways()) {
    for (const DataType dtype : {f32, bf16, f16}) {
      for (const bool zero_points : {false, true}) {
        SCOPED_TRACE(join(along.qtype, " along ", along.axis, " to ", name_of(dtype)));
        GraphBuilder g;
        std::vector<uint64_t> inputs{g.input(u8, kShape), g.input(dtype, along.scales)};
        if (zero_points) inputs.push_back(g.input(u8, along.scales));
        g.op(OpKind::DynamicDequantize, inputs, {{"qtype", along.qtype}, {"axis", along.axis}}, dtype);
        expect_one_kernel(expect_cpu_matches_reference(g.finish(), 256));
      }
    }
  }
}

TEST(DynamicDequantizeKernels, TakeGroupsAlongAnyAxis) {
  for (const Dims& group : {Dims{1, 1, 10}, Dims{1, 5, 1}, Dims{3, 1, 1}, Dims{2, 1, 35}, Dims{6, 5, 70}}) {
    for (const bool zero_points : {false, true}) {
      SCOPED_TRACE(join("groups of ", describe(group)));
      GraphBuilder g;
      const Dims scales{6 / group[0], 5 / group[1], 70 / group[2]};
      std::vector<uint64_t> inputs{g.input(s8, kShape), g.input(f32, scales)};
      if (zero_points) inputs.push_back(g.input(s8, scales));
      const std::vector<int64_t> group_shape(group.begin(), group.end());
      g.op(OpKind::DynamicDequantize, inputs, {{"qtype", std::string("per_group")}, {"group_shape", group_shape}}, f32);
      expect_one_kernel(expect_cpu_matches_reference(g.finish(), 256));
    }
  }
}

// Values around every tie of the smallest steps, and special values: each element equals a division and a rounding. For scales
// near the largest number, the inverse has fewer digits, so the neighbouring integer is accepted too.
TEST(DynamicQuantizeKernels, TheQuotientIsThatOfADivision) {
  std::vector<float> scales{0.25f,     0.375f,           0.1f,   1.0f / 3, 3e-5f, 7.77e7f, 0x1.fffffep-3f, 1e38f,
                            0x1p-126f, 0x1.fffffcp-127f, 1e-39f, -1e-39f,  1e-45f};
  for (const float scale : scales) {
    std::vector<float> x{0, -0.0f, INFINITY, -INFINITY, NAN, 3e38f, -3e38f, 1e-40f};
    for (int step = -260; step < 260; ++step) {
      const float tie = static_cast<float>((step + 0.5) * static_cast<double>(scale));
      for (const float value : {tie, std::nextafter(tie, -INFINITY), std::nextafter(tie, INFINITY)}) x.push_back(value);
    }
    const auto count = static_cast<int64_t>(x.size());
    for (const DataType dtype : {u8, s8}) {
      GraphBuilder g;
      const auto src = g.input(f32, {count}), scale_of = g.input(f32, {1});
      const auto dst = g.op(OpKind::DynamicQuantize, {src, scale_of}, {}, dtype);
      const Graph graph = g.finish();
      std::map<uint64_t, Buffer> given{{src, buffer_for(graph.tensor(*graph.find_value(src)))},
                                       {scale_of, buffer_for(graph.tensor(*graph.find_value(scale_of)))}};
      std::memcpy(given[src].data(), x.data(), x.size() * sizeof(float));
      std::memcpy(given[scale_of].data(), &scale, sizeof scale);
      const RunResult result = expect_cpu_matches_reference(graph, 4, 1, given);
      for (size_t i = 0; i < x.size(); ++i) {
        uint8_t expected = 0;
        store_from_double(dtype, &expected, 0, static_cast<double>(x[i] / scale));
        const auto got = static_cast<uint8_t>(result.buffers.at(dst)[i]);
        if (scale < 0x1p100f) {
          EXPECT_EQ(got, expected) << x[i] << " / " << scale << " as " << name_of(dtype);
        }
      }
    }
  }
}

// A ReLU before it may make NaN 0: whole vectors of 64 elements, and the rest of the row.
TEST(QuantizeKernels, TheQuotientOfARelu) {
  const std::vector<float> special{0, -0.0f, INFINITY, -INFINITY, NAN, 3e38f, -3e38f, 1e-40f, -1e-40f, 1, -1, 127, 1e9f};
  constexpr int64_t kCount = 150;
  for (const float scale : {0.25f, 0.1f, 1.7347f, -0.1f, 1e-38f, 1e38f, 1e-39f}) {
    for (const int64_t zero_point : {0, 3}) {
      for (const DataType dtype : {u8, s8}) {
        SCOPED_TRACE(join(scale, " + ", zero_point, " as ", name_of(dtype)));
        GraphBuilder g;
        const auto src = g.input(f32, {kCount});
        const auto dst = g.op(OpKind::Quantize, {g.op(OpKind::ReLU, {src})},
                              {{"scales", std::vector<float>{scale}}, {"zps", std::vector<int64_t>{zero_point}}}, dtype);
        const Graph graph = g.finish();
        std::map<uint64_t, Buffer> given{{src, buffer_for(graph.tensor(*graph.find_value(src)))}};
        std::vector<float> x(kCount);
        for (size_t i = 0; i < x.size(); ++i) x[i] = special[i % special.size()];
        std::memcpy(given[src].data(), x.data(), x.size() * sizeof(float));
        const RunResult result = expect_cpu_matches_reference(graph, 4, 1, given);
        for (size_t i = 0; i < x.size(); ++i) {
          const float relu = x[i] > 0 || std::isnan(x[i]) ? x[i] : 0;
          uint8_t expected = 0;
          store_from_double(dtype, &expected, 0, static_cast<double>(relu / scale + static_cast<float>(zero_point)));
          EXPECT_EQ(static_cast<uint8_t>(result.buffers.at(dst)[i]), expected) << x[i];
        }
      }
    }
  }
}

// The inverse of a subnormal scale is infinite, and 0 times infinity is NaN. The first of the 70 elements are 0.
TEST(DynamicQuantizeKernels, ScalesNearTheEndsOfTheRange) {
  for (const float scale : {1e-39f, 1e-45f, 1e38f}) {
    for (const Along& along : ways()) {
      for (const OpKind kind : {OpKind::DynamicQuantize, OpKind::Quantize, OpKind::DynamicDequantize, OpKind::Dequantize}) {
        SCOPED_TRACE(join(name_of(kind), ", scale ", scale, " ", along.qtype, " along ", along.axis));
        const bool quantizes = kind == OpKind::DynamicQuantize || kind == OpKind::Quantize;
        const std::vector<float> scales(static_cast<size_t>(along.scales[0]), scale);
        Attributes attributes{{"qtype", along.qtype}, {"axis", along.axis}};
        GraphBuilder g;
        const uint64_t src = g.input(quantizes ? f32 : s8, kShape);
        std::vector<uint64_t> inputs{src};
        if (has_constant_scales(kind)) {
          attributes.insert({{"scales", scales}, {"zps", std::vector<int64_t>(scales.size(), 3)}});
        } else {
          inputs.push_back(g.input(f32, along.scales));
        }
        g.op(kind, inputs, attributes, quantizes ? s8 : f32);
        const Graph graph = g.finish();
        std::map<uint64_t, Buffer> given;
        for (const uint64_t id : inputs) {
          const LogicalTensor& tensor = graph.tensor(*graph.find_value(id));
          Buffer& buffer = given.emplace(id, buffer_for(tensor)).first->second;
          for (int64_t i = 0; i < tensor.span(); ++i) {
            const double step = static_cast<double>(i % 70 < 10 ? 0 : i % 120 - 60) * (quantizes ? double{scale} * 1.25 : 1);
            store_from_double(tensor.dtype, buffer.data(), i, id == src ? step : double{scale});
          }
        }
        expect_one_kernel(expect_cpu_matches_reference(graph, 0, 1, given));
      }
    }
  }
}

// DynamicDequantize -> LayerNorm -> DynamicQuantize
TEST(DynamicQuantizeKernels, ANormBetweenThemIsOneKernel) {
  for (const Along& along : {Along{"per_tensor", 1, {1}}, Along{"per_channel", 0, {37}}, Along{"per_channel", 1, {200}}}) {
    SCOPED_TRACE(join(along.qtype, " along ", along.axis));
    const Attributes attributes{{"qtype", along.qtype}, {"axis", along.axis}};
    GraphBuilder g;
    const auto x = g.op(OpKind::DynamicDequantize,
                        {g.input(u8, {37, 200}), g.input(f32, along.scales), g.input(u8, along.scales)}, attributes, f32);
    const auto y = g.op(OpKind::LayerNorm, {x, g.input(f32, {200}), g.input(f32, {200})}, {{"keep_stats", false}});
    g.op(OpKind::DynamicQuantize, {y, g.input(f32, along.scales), g.input(s32, along.scales)}, attributes, s8);
    expect_one_kernel(expect_cpu_matches_reference(g.finish()));
  }
}

// Groups of 40 columns: the norm's rows are split into (groups, members of a group).
TEST(DynamicDequantizeKernels, GroupsBeforeANormAreOneKernel) {
  GraphBuilder g;
  const Attributes groups{{"qtype", std::string("per_group")}, {"group_shape", std::vector<int64_t>{1, 40}}};
  const auto x = g.op(OpKind::DynamicDequantize, {g.input(s8, {37, 200}), g.input(f32, {37, 5})}, groups, f32);
  g.op(OpKind::LayerNorm, {x, g.input(f32, {200}), g.input(f32, {200})}, {{"keep_stats", false}});
  expect_one_kernel(expect_cpu_matches_reference(g.finish(), 16));
}

}  // namespace
}  // namespace lamina::testing
