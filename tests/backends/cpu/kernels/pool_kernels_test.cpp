// Pools and their gradients: every attribute, both formats, one to three spatial axes, any strides.
#include <gmock/gmock.h>

#include <limits>

#include "backends/cpu/library/image_check.h"
#include "backends/cpu/support/kernels_alone.h"

namespace lamina::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f16 = DataType::f16, f64 = DataType::f64, s32 = DataType::s32;
constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

// Windows and their images; the extents exclude batch and channels.
struct Pool {
  std::string name;
  Dims spatial, kernel, strides, pads_begin, pads_end;
  Dims dilations = {};  // only for MaxPool
  std::string rounding_type = "floor", auto_pad = "None";
  bool exclude_pad = false;
};

void PrintTo(const Pool& pool, std::ostream* out) { *out << pool.name; }

const std::vector<OpKind> kKinds{OpKind::MaxPool, OpKind::AvgPool, OpKind::MaxPoolBackward, OpKind::AvgPoolBackward};

bool is_backward(OpKind kind) { return kind == OpKind::MaxPoolBackward || kind == OpKind::AvgPoolBackward; }
bool is_average(OpKind kind) { return kind == OpKind::AvgPool || kind == OpKind::AvgPoolBackward; }

Attributes attributes_of(OpKind kind, const Pool& pool, const std::string& format) {
  Attributes attributes{{"kernel", pool.kernel},     {"strides", pool.strides},   {"pads_begin", pool.pads_begin},
                        {"pads_end", pool.pads_end}, {"auto_pad", pool.auto_pad}, {"data_format", format}};
  if (is_average(kind)) attributes["exclude_pad"] = pool.exclude_pad;
  if (!is_average(kind) && !pool.dilations.empty()) attributes["dilations"] = pool.dilations;
  if (!is_backward(kind)) attributes["rounding_type"] = pool.rounding_type;
  return attributes;
}

// Returns the output shape of the forward op for `src`.
Dims pooled(OpKind kind, const Pool& pool, const std::string& format, const Dims& src) {
  GraphBuilder g;
  const OpKind forward = is_average(kind) ? OpKind::AvgPool : OpKind::MaxPool;
  g.op(forward, {g.input(f32, src)}, attributes_of(forward, pool, format));
  const Graph graph = g.finish();
  return *graph.tensor(graph.outputs()[0]).shape;
}

struct Tensors {
  DataType dtype = f32;
  std::string format = "NXC";
  int64_t images = 2, channels = 19;
  StridesOf strides = dense_strides;
};

Graph graph_of(OpKind kind, const Pool& pool, const Tensors& tensors) {
  const Dims src = image_shape(tensors.format, tensors.images, tensors.channels, pool.spatial);
  const Dims dst = pooled(kind, pool, tensors.format, src);
  Attributes attributes = attributes_of(kind, pool, tensors.format);
  GraphBuilder g;
  std::vector<uint64_t> inputs;
  if (kind != OpKind::AvgPoolBackward) inputs.push_back(g.input(tensors.dtype, src, tensors.strides(src)));
  if (is_backward(kind)) inputs.push_back(g.input(tensors.dtype, dst, tensors.strides(dst)));
  if (kind == OpKind::AvgPoolBackward) attributes["src_shape"] = src;
  const auto result = g.op(kind, inputs, attributes);
  set_layout(g.tensor(result), is_backward(kind) ? src : dst, tensors.strides);
  return g.finish();
}

// By the library or a kernel, whichever is faster, and by a kernel.
void expect_right(const Graph& graph, const std::map<uint64_t, Buffer>& given) {
  const double error = graph.tensor(graph.inputs()[0]).dtype == f64 ? 1e-14 : 1e-6;
  for (const Backend* const backend : {&cpu_backend(), &kernels_alone()})
    expect_library_matches_reference(graph, error, given, 1, *backend);
}

void expect_all_kinds_match(const Pool& pool, const Tensors& tensors) {
  for (const OpKind kind : kKinds) {
    SCOPED_TRACE(join(name_of(kind), " ", pool.name, " ", tensors.format, " ", name_of(tensors.dtype), ", ", tensors.channels,
                      " channels"));
    expect_right(graph_of(kind, pool, tensors), {});
  }
}

// ---- windows

class PoolWindows : public ::testing::TestWithParam<Pool> {};

TEST_P(PoolWindows, MatchesTheReferenceInEveryFormat) {
  for (const char* const format : {"NXC", "NCX"})
    for (const int64_t channels : {1, 19, 32}) expect_all_kinds_match(GetParam(), {f32, format, 2, channels});
}

TEST_P(PoolWindows, MatchesTheReferenceInSixteenBits) {
  for (const char* const format : {"NXC", "NCX"})
    for (const DataType dtype : {bf16, f16, f64}) expect_all_kinds_match(GetParam(), {dtype, format});
}

TEST_P(PoolWindows, MatchesTheReferenceInIntegers) {
  for (const char* const format : {"NXC", "NCX"})
    for (const DataType dtype : {DataType::u8, DataType::s8})
      expect_right(graph_of(OpKind::MaxPool, GetParam(), {dtype, format}), {});
}

TEST_P(PoolWindows, MatchesTheReferenceWithAnyStrides) {
  for (const char* const format : {"NXC", "NCX"})
    for (const StridesOf strides : {part_of_larger, axis_1_innermost, every_second})
      expect_all_kinds_match(GetParam(), {f32, format, 2, 16, strides});
  expect_all_kinds_match(GetParam(), {bf16, "NXC", 2, 16, every_second});
}

INSTANTIATE_TEST_SUITE_P(
    Steps, PoolWindows,
    ::testing::Values(Pool{"line", {17}, {3}, {2}, {1}, {1}}, Pool{"square", {9, 11}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
                      Pool{"cube", {5, 6, 7}, {2, 3, 2}, {2, 1, 2}, {0, 1, 1}, {1, 1, 0}},
                      Pool{"global", {7, 7}, {7, 7}, {1, 1}, {0, 0}, {0, 0}},
                      Pool{"one_pixel", {6, 5}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
                      Pool{"apart", {11, 10}, {2, 2}, {4, 3}, {0, 0}, {0, 0}},
                      Pool{"excluding_pads", {8, 9}, {3, 4}, {1, 2}, {1, 2}, {1, 1}, {}, "floor", "None", true},
                      Pool{"dilated", {13, 12}, {3, 2}, {2, 1}, {2, 3}, {1, 0}, {2, 3}},
                      Pool{"dilated_into_the_pads", {13}, {3}, {1}, {3}, {3}, {3}},
                      Pool{"rounded_up", {10, 11}, {3, 3}, {2, 3}, {0, 1}, {0, 0}, {}, "ceil"},
                      Pool{"rounded_up_excluding_pads", {10, 11}, {3, 3}, {2, 3}, {1, 1}, {1, 0}, {}, "ceil", "None", true},
                      Pool{"same_upper", {10, 7}, {4, 3}, {3, 2}, {9, 9}, {9, 9}, {}, "floor", "SAME_UPPER", true},
                      Pool{"same_lower", {10, 7}, {4, 3}, {3, 2}, {9, 9}, {9, 9}, {2, 1}, "floor", "SAME_LOWER"},
                      Pool{"valid", {10, 7}, {4, 3}, {3, 2}, {9, 9}, {9, 9}, {}, "floor", "VALID"},
                      Pool{"cropped", {12, 9}, {3, 2}, {2, 2}, {1, 0}, {-4, -3}},
                      Pool{"wide_pads", {4, 3}, {6, 7}, {1, 2}, {5, 6}, {5, 6}}),
    [](const auto& test) { return test.param.name; });

// Slabs of rows and blocks of channels: each image has several tiles.
TEST(PoolStep, DividesLargeImages) {
  for (const char* const format : {"NXC", "NCX"})
    for (const int64_t channels : {40, 288}) {
      const Pool square{"square", {61, 47}, {3, 3}, {2, 1}, {1, 1}, {1, 1}, {}, "floor", "None", true};
      expect_all_kinds_match(square, {f32, format, 1, channels});
      expect_all_kinds_match(square, {bf16, format, 1, channels});
    }
  expect_all_kinds_match({"apart", {90, 70}, {1, 2}, {9, 3}, {0, 0}, {0, 0}}, {f32, "NXC", 1, 256});
  expect_all_kinds_match({"line", {40000}, {5}, {3}, {2}, {2}}, {f32, "NCX", 1, 3});
}

// Windows that overlap enough for the library to share partial results.
TEST(PoolStep, SharesTheWorkOfLargeWindows) {
  for (const char* const format : {"NXC", "NCX"})
    for (const DataType dtype : {f32, bf16})
      for (const int64_t channels : {19, 64}) {
        expect_all_kinds_match({"square", {15, 14}, {9, 8}, {1, 1}, {4, 4}, {4, 3}, {}, "floor", "None", true},
                               {dtype, format, 1, channels});
        expect_all_kinds_match({"cube", {7, 8, 9}, {5, 4, 5}, {1, 2, 1}, {2, 1, 2}, {2, 1, 2}}, {dtype, format, 1, channels});
      }
}

TEST(PoolStep, SumsLongWindowsAccurately) {
  const Pool line{"line", {30000}, {30000}, {1}, {0}, {0}};
  GraphBuilder g;
  const auto x = g.input(f32, {1, 30000, 1});
  g.op(OpKind::AvgPool, {x}, attributes_of(OpKind::AvgPool, line, "NXC"));
  Buffer tenths = buffer_of(g.tensor(x), std::vector<double>(30000, 0.1));
  expect_right(g.finish(), {{x, tenths}});
}

// Equal addends: the error of every addition has the same sign.
TEST(PoolStep, SumsEqualAddendsAccurately) {
  for (const Dims& windows : {Dims{4, 8}, Dims{33, 1}, Dims{1, 60}, Dims{64, 1}, Dims{5, 13}, Dims{64, 64}})
    for (const OpKind kind : {OpKind::AvgPool, OpKind::AvgPoolBackward}) {
      SCOPED_TRACE(join(name_of(kind), " ", describe(windows)));
      const Pool pool{"plane", {70, 66}, windows, {1, 1}, {0, 0}, {0, 0}};
      const Graph graph = graph_of(kind, pool, {f32, "NXC", 1, 1});
      const LogicalTensor& input = graph.tensor(graph.inputs()[0]);
      const std::vector<double> tenths(static_cast<size_t>(input.element_count()), 0.1);
      expect_right(graph, {{input.id, buffer_of(input, tenths)}});
    }
}

TEST(PoolStep, ImagesDoNotSeeEachOther) {
  const Pool square{"square", {23, 19}, {3, 3}, {2, 2}, {1, 1}, {1, 1}};
  for (const OpKind kind : kKinds)
    for (const char* const format : {"NXC", "NCX"})
      for (const DataType dtype : {f32, bf16}) {
        const auto of_batch = [&](int64_t images) { return graph_of(kind, square, {dtype, format, images, 37}); };
        expect_images_do_not_see_each_other(of_batch, 5);
      }
}

TEST(PoolStep, TakesTheShapeOfTheGradientFromAnInput) {
  const Pool square{"square", {6, 7}, {2, 2}, {2, 2}, {0, 0}, {0, 0}};
  GraphBuilder g;
  const auto diff_dst = g.input(f32, {2, 3, 3, 5}), shape = g.input(s32, {4});
  const auto diff_src = g.op(OpKind::AvgPoolBackward, {diff_dst, shape}, attributes_of(OpKind::AvgPoolBackward, square, "NXC"));
  g.tensor(diff_src).shape = Dims{2, 6, 7, 5};
  expect_library_matches_reference(g.finish(), 1e-6, {{shape, buffer_of(g.tensor(shape), {2, 6, 7, 5})}});
}

TEST(PoolStep, RunsOverFourSpatialAxes) {
  expect_all_kinds_match({"four", {4, 5, 3, 4}, {2, 3, 2, 2}, {1, 2, 1, 2}, {0, 1, 0, 1}, {1, 1, 0, 0}}, {f32, "NXC", 2, 3});
}

// ---- maxima of values that are hard to compare: images of one line and one channel, windows of two

Graph line(OpKind kind, DataType dtype, int64_t extent, int64_t stride, const std::string& rounding_type = "floor") {
  return graph_of(kind, {"line", {extent}, {2}, {stride}, {0}, {0}, {}, rounding_type}, {dtype, "NXC", 1, 1});
}

TEST(MaxPoolStep, NanWinsAndMinusInfinityIsANumber) {
  for (const DataType dtype : {f32, bf16, f16, f64}) {
    const std::vector<double> got = results_of(line(OpKind::MaxPool, dtype, 7, 1), {{kNaN, 1, -kInf, -kInf, kInf, kNaN, 2}});
    EXPECT_THAT(std::vector(got.begin() + 1, got.begin() + 4), ElementsAre(1, -kInf, kInf));
    EXPECT_TRUE(std::isnan(got[0]) && std::isnan(got[4]) && std::isnan(got[5]));
  }
}

TEST(MaxPoolStep, AWindowOfNothingGivesTheNeutralValue) {
  // windows of one pixel, stride 2, rounded up: the third begins after the last pixel
  Pool past_the_end{"past_the_end", {4}, {1}, {2}, {0}, {0}, {}, "ceil"};
  const Tensors one{f32, "NXC", 1, 1};
  EXPECT_THAT(results_of(graph_of(OpKind::MaxPool, past_the_end, one), {{1, 2, 3, 4}}), ElementsAre(1, 3, -kInf));
  EXPECT_THAT(results_of(graph_of(OpKind::MaxPoolBackward, past_the_end, one), {{1, 2, 3, 4}, {5, 6, 7}}),
              ElementsAre(5, 0, 6, 0));
  EXPECT_THAT(results_of(graph_of(OpKind::AvgPool, past_the_end, one), {{1, 2, 3, 4}}), ElementsAre(1, 3, 0));
  past_the_end.exclude_pad = true;
  const std::vector<double> mean = results_of(graph_of(OpKind::AvgPool, past_the_end, one), {{1, 2, 3, 4}});
  EXPECT_THAT(std::vector(mean.begin(), mean.begin() + 2), ElementsAre(1, 3));
  EXPECT_TRUE(std::isnan(mean[2]));
}

TEST(MaxPoolBackwardStep, GoesToTheFirstMaximum) {
  for (const DataType dtype : {f32, bf16, f16, f64}) {
    EXPECT_THAT(results_of(line(OpKind::MaxPoolBackward, dtype, 4, 1), {{7, 7, 1, 7}, {1, 8, 64}}), ElementsAre(1, 8, 0, 64));
    EXPECT_THAT(results_of(line(OpKind::MaxPoolBackward, dtype, 4, 2), {{-kInf, -kInf, 0, -0.0}, {1, 8}}),
                ElementsAre(1, 0, 8, 0));
    EXPECT_THAT(results_of(line(OpKind::MaxPoolBackward, dtype, 6, 2), {{kNaN, 9, 9, kNaN, kNaN, kNaN}, {1, 8, 64}}),
                ElementsAre(1, 0, 0, 8, 64, 0));
  }
}

// A pixel that is the maximum of many windows has their sum, which may be as small as a term. A plain sum in f32 is too coarse.
TEST(MaxPoolBackwardStep, SumsManyWindowsAccurately) {
  for (const Dims& windows : {Dims{4, 4}, Dims{5, 5}, Dims{8, 4}, Dims{9, 8}, Dims{16, 16}}) {
    SCOPED_TRACE(describe(windows));
    const Pool square{"square", {24, 26}, windows, {1, 1}, {0, 0}, {0, 0}};
    expect_right(graph_of(OpKind::MaxPoolBackward, square, {f32, "NXC", 4, 50}), {});
  }
}

TEST(MaxPoolBackwardStep, SumsLargeAndSmallGradients) {
  const Pool tens{"tens", {19}, {10}, {1}, {0}, {0}}, fifties{"fifties", {99}, {50}, {1}, {0}, {0}};
  for (const Pool& pool : {tens, fifties}) {
    const auto count = static_cast<size_t>(pool.kernel[0]);
    std::vector<double> src(2 * count - 1), ones(count, 1), cancel(count, 0), beyond(count, 0);
    src[count - 1] = 1;  // in all windows
    cancel[0] = 1e8, cancel[1] = 1, cancel[count - 1] = -1e8;
    beyond[0] = 3e38, beyond[1] = -2e38;
    const auto sum_of = [&](const std::vector<double>& diff_dst) {
      return results_of(graph_of(OpKind::MaxPoolBackward, pool, {f32, "NXC", 1, 1}), {src, diff_dst})[count - 1];
    };
    EXPECT_EQ(sum_of(ones), static_cast<double>(count));
    EXPECT_EQ(sum_of(cancel), 1);
    EXPECT_NEAR(sum_of(beyond), 1e38, 1e31);
    ones[3] = kInf;
    EXPECT_EQ(sum_of(ones), kInf);
    ones[5] = kNaN;
    EXPECT_TRUE(std::isnan(sum_of(ones)));
  }
}

// The data has few distinct values: nearly every window has ties, in all of its axes.
TEST(MaxPoolBackwardStep, BreaksTiesAsTheReference) {
  std::mt19937 random(3);
  for (const char* const format : {"NXC", "NCX"})
    for (const DataType dtype : {f32, bf16}) {
      const Pool cube{"cube", {5, 6, 7}, {3, 2, 3}, {2, 1, 2}, {1, 0, 1}, {1, 1, 1}};
      const Graph graph = graph_of(OpKind::MaxPoolBackward, cube, {dtype, format, 2, 18});
      const LogicalTensor& src = graph.tensor(graph.inputs()[0]);
      std::vector<double> values(static_cast<size_t>(src.element_count()));
      for (double& value : values) value = static_cast<double>(random() % 3);
      expect_right(graph, {{src.id, buffer_of(src, values)}});
    }
}

}  // namespace
}  // namespace lamina::testing
