// Norms as frameworks call them: gamma, beta and statistics each have the data's type or f32, and statistics may be 1 /
// sqrt(variance + epsilon). They run on the CPU and in the interpreter of the kernel IR; the GPU tests run them too.
#include <gtest/gtest.h>

#include "backends/cpu/support/cpu_check.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f16 = DataType::f16;
const Attributes kRstd{{"stats_kind", std::string("rstd")}};

Attributes with_rstd(Attributes attributes) {
  attributes.insert(kRstd.begin(), kRstd.end());
  return attributes;
}

struct Mix {
  DataType data, affine, statistics;
};

const std::vector<Mix> kMixes{{bf16, bf16, f32}, {bf16, f32, bf16}, {f16, f16, f16},
                              {f16, f16, f32},   {f16, f32, f16},   {f32, f32, f32}};

TEST(NormStatistics, LayerNormInAnyMix) {
  for (const Mix& m : kMixes) {
    GraphBuilder g;
    g.multi(OpKind::LayerNorm, {g.input(m.data, {7, 70}), g.input(m.affine, {70}), g.input(m.affine, {70})}, kRstd,
            {m.data, m.statistics, m.statistics});
    expect_one_kernel(expect_cpu_matches_reference(g.finish(), 8));
  }
}

TEST(NormStatistics, LayerNormBackwardInAnyMix) {
  for (const Mix& m : kMixes) {
    GraphBuilder g;
    g.multi(OpKind::LayerNormBackward,
            {g.input(m.data, {7, 70}), g.input(m.data, {7, 70}), g.input(m.statistics, {7}), g.input(m.statistics, {7}),
             g.input(m.affine, {70})},
            kRstd, {m.data, m.affine, m.affine});
    expect_one_kernel(expect_cpu_matches_reference(g.finish(), 64));
  }
}

TEST(NormStatistics, GroupNormGivesInverseDeviations) {
  GraphBuilder g;
  g.multi(OpKind::GroupNorm, {g.input(bf16, {3, 10, 12}), g.input(bf16, {12}), g.input(bf16, {12})},
          with_rstd({{"groups", int64_t{4}}}), {bf16, f32, f32});
  expect_cpu_matches_reference(g.finish(), 8);
}

TEST(NormStatistics, BackwardOfGroupsAndChannelsTakeInverseDeviations) {
  GraphBuilder g;
  const auto x = g.input(f32, {3, 10, 12}), dy = g.input(f32, {3, 10, 12});
  g.multi(OpKind::GroupNormBackward, {x, dy, g.input(f32, {3, 4}), g.input(f32, {3, 4}), g.input(f32, {12})},
          with_rstd({{"groups", int64_t{4}}}), {f32, f32, f32});
  g.multi(OpKind::BatchNormTrainingBackward, {x, dy, g.input(f32, {12}), g.input(f32, {12}), g.input(f32, {12})},
          with_rstd({{"epsilon", 0.01F}}), {f32, f32, f32});
  expect_cpu_matches_reference(g.finish(), 64);
}

}  // namespace
}  // namespace lamina::testing
