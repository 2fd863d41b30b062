// Layer normalisation by descriptor (include/graph/layer_norm.h): every pass, flag, output, type and layout, compared with the
// formulas in double, and with the graph interface bit by bit.
#include <thread>

#include "layer_norm_fixture.h"

namespace api_test {
namespace {

TEST(LayerNormDescriptor, ForwardTakesEveryCombinationOfFlags) {
  for (uint32_t flags = 0; flags < 8; ++flags) {
    for (const DataType type : kFloats) {
      SCOPED_TRACE(::testing::Message() << "flags " << flags << ", " << name_of(type));
      Forward f(flags, type, type, type == DataType::f64 ? type : DataType::f32);
      f.c.run();
      expect_close(f.c[arg::dst], f.numbers.dst(), "dst");
    }
  }
}

TEST(LayerNormDescriptor, ForwardJoinsAnyTypesOfSrcDstAndTheRest) {
  for (const DataType src : kFloats)
    for (const DataType dst : kFloats)
      for (const DataType small : kFloats) {
        SCOPED_TRACE(::testing::Message() << name_of(src) << " to " << name_of(dst) << " with " << name_of(small));
        Forward f(kScale | kShift, src, dst, small);
        f.c.what.outputs = lamina_layer_norm_output_dst | lamina_layer_norm_output_stats;
        f.c.add(arg::mean, TypedTensor(small, {5, 7}));
        f.c.add(arg::variance, TypedTensor(small, {5, 7}));
        f.c.run();
        const DataType wide = computed_in({src, dst});
        expect_close(f.c[arg::dst], f.numbers.dst(), "dst", 1, wide);
        expect_close(f.c[arg::mean], f.numbers.mean, "mean", 1, wide);
        expect_close(f.c[arg::variance], f.numbers.variance, "variance", 1, wide);
      }
}

TEST(LayerNormDescriptor, StatisticsMayHaveAnyStridesAndTrailingOnes) {
  Forward f(kScale | kShift, DataType::f32, DataType::f32, DataType::f32);
  f.c.what.outputs = lamina_layer_norm_output_dst | lamina_layer_norm_output_stats;
  f.c.add(arg::mean, TypedTensor(DataType::f32, {5, 7}, Dims{1, 5}));
  f.c.add(arg::variance, TypedTensor(DataType::f32, {5, 7, 1}, Dims{21, 3, 1}));
  f.c.run();
  expect_close(f.c[arg::mean], f.numbers.mean, "mean");
  expect_close(f.c[arg::variance], f.numbers.variance, "variance");
}

TEST(LayerNormDescriptor, SrcAndDstMayHaveDifferentStrides) {
  Forward plain(kScale | kShift, DataType::f32, DataType::f32, DataType::f32);
  plain.c.run();
  const std::vector<std::pair<Dims, Dims>> strides = {
      {{7 * 40, 40, 1}, {33, 5 * 33, 1}}, {{33, 5 * 33, 1}, {1, 5, 35}}, {{1, 5, 35}, {7 * 66, 66, 2}}};
  for (const auto& [src, dst] : strides) {
    Forward f(kScale | kShift, DataType::f32, DataType::f32, DataType::f32, src);
    f.c.add(arg::dst, TypedTensor(DataType::f32, kShape, dst));
    f.c.run();
    expect_same(f.c[arg::dst], plain.c[arg::dst], "dst");
  }
}

TEST(LayerNormDescriptor, SeveralAxesAreNormalisedAndScaleMayBeFlat) {
  for (const uint32_t flags : {kScale | kShift, kScale, kShift}) {
    for (const bool flat : {false, true}) {
      Case c(layer_norm::pass::forward, flags);
      c.what.begin_norm_axis = 1;
      LayerNormNumbers numbers;
      numbers.size = 7 * 33;
      numbers.src = c.add(arg::src, TypedTensor(DataType::f32, kShape, random_values(kRows * kColumns, 1))).values();
      numbers.compute_statistics();
      const Dims small = flat ? Dims{7 * 33} : Dims{7, 33};
      if ((flags & kScale) != 0)
        numbers.scale = c.add(arg::scale, TypedTensor(DataType::f32, small, random_values(231, 2))).values();
      if ((flags & kShift) != 0)
        numbers.shift = c.add(arg::shift, TypedTensor(DataType::f32, small, random_values(231, 3))).values();
      c.add(arg::dst, TypedTensor(DataType::f32, kShape));
      c.run();
      expect_close(c[arg::dst], numbers.dst(), "dst");
    }
  }
}

TEST(LayerNormDescriptor, InPlaceForwardGivesTheSameBits) {
  for (const DataType type : kFloats) {
    for (const uint32_t flags : {0U, kScale, kShift, kScale | kShift, kStats}) {
      SCOPED_TRACE(::testing::Message() << "flags " << flags << ", " << name_of(type));
      Forward f(flags, type, type, DataType::f32);
      const layer_norm norm = f.c.create();
      f.c.run(norm);
      ASSERT_TRUE(norm.may_share(arg::src, arg::dst));
      TypedTensor both = f.c[arg::src];
      const auto data = [&](arg position) { return f.c.what.tensors.count(position) != 0 ? f.c[position].data() : nullptr; };
      const engine cpu(engine::kind::cpu, 0);
      norm.execute(stream(cpu), {{arg::src, both.data()},
                                 {arg::dst, both.data()},
                                 {arg::scale, data(arg::scale)},
                                 {arg::shift, data(arg::shift)},
                                 {arg::mean, data(arg::mean)},
                                 {arg::variance, data(arg::variance)}});
      expect_same(both, f.c[arg::dst], "dst");
    }
  }
}

// ---- backward

TEST(LayerNormDescriptor, BackwardTakesEveryCombinationOfFlags) {
  for (uint32_t flags = 0; flags < 8; ++flags) {
    for (const DataType type : kFloats) {
      SCOPED_TRACE(::testing::Message() << "flags " << flags << ", " << name_of(type));
      Backward b(flags, type, type, type, type == DataType::f64 ? type : DataType::f32);
      b.c.run();
      b.check();
    }
  }
}

TEST(LayerNormDescriptor, ConstantStatisticsPassTheGradientThrough) {
  for (const uint32_t flags : {kStats, kStats | kScale, kStats | kShift, kStats | kScale | kShift}) {
    for (const DataType type : kFloats) {
      SCOPED_TRACE(::testing::Message() << "flags " << flags << ", " << name_of(type));
      Backward b(flags, type, type, type, type == DataType::f64 ? type : DataType::f32);
      b.c.what.flags |= lamina_layer_norm_stats_are_constant;
      b.c.run();
      Values expected;
      for (size_t i = 0; i < b.numbers.src.size(); ++i)
        expected.push_back(b.numbers.diff_dst[i] * b.numbers.scale_at(i) * b.numbers.rstd(i / kColumns));
      expect_close(b.c[arg::diff_src], expected, "diff_src");
      b.check_columns();
    }
  }
}

TEST(LayerNormDescriptor, BackwardJoinsAnyTypes) {
  for (const DataType src : kFloats)
    for (const DataType diff : kFloats)
      for (const DataType small : kFloats) {
        SCOPED_TRACE(::testing::Message() << name_of(src) << ", " << name_of(diff) << " with " << name_of(small));
        Backward b(kStats | kScale | kShift, src, diff, src, small);
        b.c.run();
        b.check(computed_in({src, diff}));
      }
}

TEST(LayerNormDescriptor, BackwardWritesOnlyTheOutputsOfTheMask) {
  constexpr uint32_t kAll =
      lamina_layer_norm_output_diff_src | lamina_layer_norm_output_diff_scale | lamina_layer_norm_output_diff_shift;
  Backward all(kStats | kScale | kShift, DataType::f32, DataType::f32, DataType::f32, DataType::f32);
  all.c.run();
  for (uint32_t mask = 1; mask < 8; ++mask) {
    Backward b(kStats | kScale | kShift, DataType::f32, DataType::f32, DataType::f32, DataType::f32);
    b.c.what.outputs = mask * lamina_layer_norm_output_diff_src;
    ASSERT_LE(b.c.what.outputs, kAll);
    const TypedTensor untouched = b.c[arg::diff_src];
    b.c.run();
    const std::array<arg, 3> outputs = {arg::diff_src, arg::diff_scale, arg::diff_shift};
    for (size_t i = 0; i < 3; ++i) {
      if ((mask >> i & 1) != 0)
        expect_same(b.c[outputs[i]], all.c[outputs[i]], "a wanted output");
      else
        EXPECT_EQ(b.c[outputs[i]].at(0), untouched.at(0)) << "output " << i << " was written, mask " << mask;
    }
  }
}

TEST(LayerNormDescriptor, StatisticsMayBeRstdOrStd) {
  for (const auto kind : {layer_norm::stats_kind::rstd, layer_norm::stats_kind::std}) {
    Backward b(kStats | kScale | kShift, DataType::f32, DataType::f32, DataType::f32, DataType::f32);
    b.c.what.stats = kind;
    Values given;
    for (size_t row = 0; row < kRows; ++row)
      given.push_back(kind == layer_norm::stats_kind::rstd ? b.numbers.rstd(row) : 1 / b.numbers.rstd(row));
    b.c.add(arg::variance, TypedTensor(DataType::f32, {5, 7}, given));
    b.c.run();
    b.check();
  }
}

TEST(LayerNormDescriptor, SrcMayBeNormalisedAlready) {
  Backward b(kStats | kScale | kShift, DataType::f32, DataType::f32, DataType::f32, DataType::f32);
  Values normalized, deviation;
  for (size_t i = 0; i < b.numbers.src.size(); ++i) normalized.push_back(b.numbers.normalized(i));
  for (size_t row = 0; row < kRows; ++row) deviation.push_back(1 / b.numbers.rstd(row));
  b.c.what.flags |= kNormalized;
  b.c.what.stats = layer_norm::stats_kind::std;
  b.c.what.tensors.erase(arg::mean);
  b.c.add(arg::src, TypedTensor(DataType::f32, kShape, normalized));
  b.c.add(arg::variance, TypedTensor(DataType::f32, {5, 7}, deviation));
  b.c.run();
  b.check();
}

TEST(LayerNormDescriptor, InPlaceBackwardGivesTheSameBits) {
  for (const DataType type : kFloats) {
    SCOPED_TRACE(name_of(type));
    Backward b(kStats | kScale | kShift, type, type, type, DataType::f32);
    const layer_norm norm = b.c.create();
    b.c.run(norm);
    ASSERT_TRUE(norm.may_share(arg::diff_dst, arg::diff_src));
    TypedTensor both = b.c[arg::diff_dst];
    const engine cpu(engine::kind::cpu, 0);
    norm.execute(stream(cpu), {{arg::src, b.c[arg::src].data()},
                               {arg::diff_dst, both.data()},
                               {arg::diff_src, both.data()},
                               {arg::scale, b.c[arg::scale].data()},
                               {arg::mean, b.c[arg::mean].data()},
                               {arg::variance, b.c[arg::variance].data()},
                               {arg::diff_scale, b.c[arg::diff_scale].data()},
                               {arg::diff_shift, b.c[arg::diff_shift].data()}});
    expect_same(both, b.c[arg::diff_src], "diff_src");
  }
}

// ---- compared with the graph interface

TEST(LayerNormDescriptor, GivesTheBitsOfTheGraphInterface) {
  Forward f(kScale | kShift, DataType::f32, DataType::f32, DataType::f32);
  f.c.run();
  const TypedTensor dst = f.c[arg::dst];
  const logical_tensor x(0, data_type::f32, kShape, layout_type::strided), gamma = f32(1, {kColumns}),
                                                                           beta = f32(2, {kColumns});
  const logical_tensor y(3, data_type::f32, kShape, layout_type::strided);
  const op norm = op(0, op::kind::LayerNorm, {x, gamma, beta}, {y}, "norm").set_attr(op::attr::keep_stats, false);
  TypedTensor out(DataType::f32, kShape);
  const engine cpu(engine::kind::cpu, 0);
  only_partition_of({norm})
      .compile({x, gamma, beta}, {y}, cpu)
      .execute(stream(cpu),
               {{x, cpu, f.c[arg::src].data()}, {gamma, cpu, f.c[arg::scale].data()}, {beta, cpu, f.c[arg::shift].data()}},
               {{y, cpu, out.data()}});
  expect_same(out, dst, "dst");
}

// ---- sizes, threads, workspace

TEST(LayerNormDescriptor, EmptyTensorsAreANoOp) {
  const engine cpu(engine::kind::cpu, 0);
  const layer_norm norm({.tensors = {{arg::src, f32(0, {0, 8})}, {arg::dst, f32(0, {0, 8})}}}, cpu);
  float scale[8] = {}, shift[8] = {};
  norm.execute(stream(cpu), {{arg::scale, scale}, {arg::shift, shift}});
}

// Strides of 0 would mark per-row values: nothing may be written for these rows.
TEST(LayerNormDescriptor, RowsWithoutElementsMayHaveAnyStrides) {
  const engine cpu(engine::kind::cpu, 0);
  const logical_tensor rows(0, data_type::f32, dims{4, 0}, dims{1, 0});
  const layer_norm norm({.tensors = {{arg::src, rows}, {arg::dst, rows}}}, cpu);
  float untouched[4] = {1, 2, 3, 4};
  norm.execute(stream(cpu), {{arg::dst, untouched}});
  EXPECT_THAT(untouched, ::testing::ElementsAre(1, 2, 3, 4));
}

TEST(LayerNormDescriptor, TensorsLeftOutAreDense) {
  const engine cpu(engine::kind::cpu, 0);
  const layer_norm norm({.outputs = lamina_layer_norm_output_dst | lamina_layer_norm_output_stats,
                         .tensors = {{arg::src, f32(0, {4, 8})}, {arg::dst, f32(0, {4, 8})}}},
                        cpu);
  EXPECT_EQ(norm.query(arg::mean).get_dims(), dims{4});
  EXPECT_EQ(norm.query(arg::scale).get_dims(), dims{8});
  EXPECT_EQ(norm.query(arg::scale).get_data_type(), data_type::f32);
  EXPECT_EQ(norm.query(arg::diff_src).get_id(), SIZE_MAX) << "an argument that is not used";
}

TEST(LayerNormDescriptor, ManyThreadsExecuteOneDescriptor) {
  Backward b(kStats | kScale | kShift, DataType::f32, DataType::f32, DataType::f32, DataType::f32);
  const layer_norm norm = b.c.create();
  b.c.run(norm);
  std::vector<Case> cases(4, b.c);
  std::vector<std::thread> threads;
  for (Case& each : cases) {
    threads.emplace_back([&each, &norm] {
      for (int i = 0; i < 20; ++i) each.run(norm);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (Case& each : cases) {
    for (const arg output : {arg::diff_src, arg::diff_scale, arg::diff_shift})
      expect_same(each[output], b.c[output], "an output");
  }
}

TEST(LayerNormDescriptor, WorkspaceMayBeMisalignedAndIsNotOverrun) {
  Backward b(kStats | kScale | kShift, DataType::f32, DataType::f32, DataType::f32, DataType::f32);
  const layer_norm norm = b.c.create();
  b.c.run(norm);
  const size_t size = norm.get_workspace_size();
  ASSERT_GT(size, 0U) << "column sums need memory between blocks of rows";
  std::vector<unsigned char> bytes(size + 8, 0xab);
  Case again = b.c;
  std::vector<void*> memory(lamina_layer_norm_arg_count, nullptr);
  for (const auto& entry : again.what.tensors) memory[static_cast<size_t>(entry.first)] = again[entry.first].data();
  const engine cpu(engine::kind::cpu, 0);
  const stream s(cpu);
  ASSERT_EQ(lamina_layer_norm_execute(norm.get(), s.get(), memory.data(), bytes.data() + 3, size), lamina_success)
      << lamina_last_error();
  expect_same(again[arg::diff_scale], b.c[arg::diff_scale], "diff_scale");
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(bytes[i], 0xab);
  for (size_t i = size + 3; i < bytes.size(); ++i) EXPECT_EQ(bytes[i], 0xab);
}

}  // namespace
}  // namespace api_test
