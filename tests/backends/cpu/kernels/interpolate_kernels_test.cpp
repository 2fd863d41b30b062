// Interpolation and its gradient: every mode and coordinate rule, both formats, one to three spatial axes, any strides.
#include <gmock/gmock.h>

#include <limits>

#include "backends/cpu/library/image_check.h"
#include "backends/cpu/support/kernels_alone.h"

namespace lamina::testing {
namespace {

using ::testing::ElementsAre;
constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f16 = DataType::f16, s32 = DataType::s32;
constexpr double kInf = std::numeric_limits<double>::infinity();

// Images that are enlarged or reduced; extents exclude batch and channels.
struct Resampling {
  std::string name;
  Dims from, to;
};

void PrintTo(const Resampling& resampling, std::ostream* out) { *out << resampling.name; }

struct Tensors {
  DataType dtype = f32;
  std::string format = "NXC";
  int64_t images = 2, channels = 19;
  StridesOf strides = dense_strides;
};

Graph graph_of(OpKind kind, const Resampling& resampling, Attributes attributes, const Tensors& tensors) {
  const Dims src = image_shape(tensors.format, tensors.images, tensors.channels, resampling.from);
  const Dims dst = image_shape(tensors.format, tensors.images, tensors.channels, resampling.to);
  attributes["data_format"] = tensors.format;
  if (!attributes.contains("scales")) attributes["sizes"] = resampling.to;
  GraphBuilder g;
  std::vector<uint64_t> inputs{g.input(tensors.dtype, src, tensors.strides(src))};
  if (kind == OpKind::InterpolateBackward) inputs.push_back(g.input(tensors.dtype, dst, tensors.strides(dst)));
  const auto result = g.op(kind, inputs, attributes);
  set_layout(g.tensor(result), kind == OpKind::Interpolate ? dst : src, tensors.strides);
  return g.finish();
}

// By the library or a kernel, whichever is faster, and by a kernel.
void expect_right(const Graph& graph) {
  for (const Backend* const backend : {&cpu_backend(), &kernels_alone()})
    expect_library_matches_reference(graph, 1e-6, {}, 1, *backend);
}

void expect_both_kinds_match(const Resampling& resampling, const Attributes& attributes, const Tensors& tensors) {
  for (const OpKind kind : {OpKind::Interpolate, OpKind::InterpolateBackward}) {
    SCOPED_TRACE(join(name_of(kind), " ", resampling.name, " ", to_string(attributes.at("mode")), " ", tensors.format, " ",
                      name_of(tensors.dtype), ", ", tensors.channels, " channels"));
    expect_right(graph_of(kind, resampling, attributes, tensors));
  }
}

class InterpolateExtents : public ::testing::TestWithParam<Resampling> {};

TEST_P(InterpolateExtents, MatchesTheReferenceInEveryModeFormatAndType) {
  for (const char* const mode : {"nearest", "linear", "bilinear", "trilinear"})
    for (const char* const coordinates : {"half_pixel", "align_corners"})
      for (const char* const format : {"NXC", "NCX"})
        for (const DataType dtype : {f32, bf16, f16})
          for (const int64_t channels : {1, 19})
            expect_both_kinds_match(GetParam(), {{"mode", mode}, {"coordinate_transformation_mode", coordinates}},
                                    {dtype, format, 2, channels});
}

TEST_P(InterpolateExtents, MatchesTheReferenceWithAnyStrides) {
  for (const char* const format : {"NXC", "NCX"})
    for (const DataType dtype : {f32, bf16})
      for (const StridesOf strides : {part_of_larger, axis_1_innermost, every_second})
        expect_both_kinds_match(GetParam(), {{"mode", "linear"}}, {dtype, format, 2, 16, strides});
}

INSTANTIATE_TEST_SUITE_P(Steps, InterpolateExtents,
                         ::testing::Values(Resampling{"line", {7}, {12}}, Resampling{"doubled", {5, 6}, {10, 12}},
                                           Resampling{"halved", {10, 12}, {5, 6}}, Resampling{"odd", {9, 4}, {4, 13}},
                                           Resampling{"cube", {3, 4, 5}, {5, 7, 2}}, Resampling{"the_same", {4, 6}, {4, 6}},
                                           Resampling{"to_one_pixel", {5, 4}, {1, 1}},
                                           Resampling{"from_one_pixel", {1, 1}, {4, 5}}),
                         [](const auto& test) { return test.param.name; });

TEST(InterpolateStep, TakesScalesForSizes) {
  for (const char* const mode : {"nearest", "linear"})
    expect_both_kinds_match({"scaled", {7, 5}, {10, 3}}, {{"mode", mode}, {"scales", std::vector<float>{1.5F, 0.7F}}}, {});
}

TEST(InterpolateStep, TakesSizesFromAnInput) {
  GraphBuilder g;
  const auto src = g.input(f32, {2, 3, 4, 5}), sizes = g.input(s32, {2});
  const auto dst = g.op(OpKind::Interpolate, {src, sizes}, {{"mode", "bilinear"}});
  g.tensor(dst).shape = Dims{2, 6, 7, 5};
  expect_library_matches_reference(g.finish(), 1e-6, {{sizes, buffer_of(g.tensor(sizes), {6, 7})}});
}

// Slabs of rows and blocks of channels: each image has several tiles.
TEST(InterpolateStep, DividesLargeImages) {
  for (const char* const format : {"NXC", "NCX"})
    for (const int64_t channels : {3, 288})
      expect_both_kinds_match({"square", {31, 27}, {61, 50}}, {{"mode", "bilinear"}}, {f32, format, 1, channels});
  expect_both_kinds_match({"line", {20000}, {30000}}, {{"mode", "linear"}}, {f32, "NCX", 1, 3});
}

// Each pixel of the gradient is a sum of hundreds of equal addends.
TEST(InterpolateStep, SumsLargeFactorsAccurately) {
  for (const char* const mode : {"nearest", "linear"})
    for (const Resampling& factor : {Resampling{"line", {3}, {2000}}, Resampling{"plane", {2, 3}, {60, 31}}}) {
      SCOPED_TRACE(join(mode, " ", factor.name));
      const Graph graph = graph_of(OpKind::InterpolateBackward, factor, {{"mode", mode}}, {f32, "NXC", 1, 1});
      const LogicalTensor& input = graph.tensor(graph.inputs()[1]);
      const std::vector<double> tenths(static_cast<size_t>(input.element_count()), 0.1);
      for (const Backend* const backend : {&cpu_backend(), &kernels_alone()})
        expect_library_matches_reference(graph, 1e-6, {{input.id, buffer_of(input, tenths)}}, 1, *backend);
    }
}

TEST(InterpolateStep, ImagesDoNotSeeEachOther) {
  for (const OpKind kind : {OpKind::Interpolate, OpKind::InterpolateBackward})
    for (const char* const format : {"NXC", "NCX"})
      for (const DataType dtype : {f32, bf16}) {
        const auto of_batch = [&](int64_t images) {
          return graph_of(kind, {"square", {13, 9}, {20, 22}}, {{"mode", "bilinear"}}, {dtype, format, images, 37});
        };
        expect_images_do_not_see_each_other(of_batch, 5);
      }
}

// ---- on a line of one channel

std::vector<double> resampled(const std::vector<double>& src, int64_t size, const char* mode, const char* coordinates) {
  const Resampling line{"line", {static_cast<int64_t>(src.size())}, {size}};
  return results_of(graph_of(OpKind::Interpolate, line, {{"mode", mode}, {"coordinate_transformation_mode", coordinates}},
                             {f32, "NXC", 1, 1}),
                    {src});
}

TEST(InterpolateStep, TakesTheLaterOfTwoEquallyNearPixels) {
  EXPECT_THAT(resampled({1, 2, 3, 4}, 2, "nearest", "half_pixel"), ElementsAre(2, 4));
  EXPECT_THAT(resampled({1, 2, 3, 4}, 3, "nearest", "align_corners"), ElementsAre(1, 3, 4));
}

TEST(InterpolateStep, DoesNotReadWhatHasNoWeight) {
  EXPECT_THAT(resampled({1, kInf}, 3, "linear", "align_corners"), ElementsAre(1, kInf, kInf));
  EXPECT_THAT(resampled({1, 2, kInf}, 5, "linear", "align_corners"), ElementsAre(1, 1.5, 2, kInf, kInf));
}

}  // namespace
}  // namespace lamina::testing
