// Resampling: every mode and coordinate rule by hand, and the gradient by differences.
#include <limits>

#include "backends/reference/gradient_check.h"
#include "support/random_tensor.h"

namespace lamina::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
constexpr DataType f32 = DataType::f32;
constexpr DataType s32 = DataType::s32;

Attribute list(std::vector<int64_t> values) { return values; }

OpCase line(const Numbers& src, int64_t size, const char* mode, const char* coordinates = "half_pixel") {
  OpCase op(OpKind::Interpolate);
  op.input({1, static_cast<int64_t>(src.size()), 1}, src, f32).attr("mode", mode).outputs({f32});
  op.attr("sizes", list({size})).attr("coordinate_transformation_mode", coordinates);
  return op;
}

TEST(ReferenceInterpolate, TakesTheNearestPixel) {
  EXPECT_THAT(line({1, 2}, 4, "nearest").result(), ElementsAre(1, 1, 2, 2));
  // x = 0.5, 2.5: a tie selects the later pixel
  EXPECT_THAT(line({1, 2, 3, 4}, 2, "nearest").result(), ElementsAre(2, 4));
  // x = 0, 1.5, 3 with align_corners
  EXPECT_THAT(line({1, 2, 3, 4}, 3, "nearest", "align_corners").result(), ElementsAre(1, 3, 4));
  EXPECT_THAT(line({1, 2, 3}, 1, "nearest", "align_corners").result(), ElementsAre(1));
}

TEST(ReferenceInterpolate, WeighsTheTwoPixelsAround) {
  // x = -0.25, 0.25, 0.75, 1.25, clamped at the ends
  EXPECT_THAT(line({0, 4}, 4, "linear").result(), ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(line({0, 4, 8, 12}, 2, "linear").result(), ElementsAre(2, 10));
  // x = 0, 0.5, 1, 1.5, 2
  EXPECT_THAT(line({0, 4, 6}, 5, "linear", "align_corners").result(), ElementsAre(0, 2, 4, 5, 6));
  EXPECT_THAT(line({3, 4, 6}, 1, "linear", "align_corners").result(), ElementsAre(3));
}

TEST(ReferenceInterpolate, MultipliesTheWeightsOfItsAxes) {
  OpCase op(OpKind::Interpolate);
  op.input({1, 1, 2, 2}, {0, 4, 8, 12}, f32).attr("mode", "bilinear").attr("data_format", "NCX").outputs({f32});
  op.attr("scales", Attribute(std::vector<float>{1.5F, 2.0F}));
  EXPECT_EQ(op.run()[0].shape, Dims({1, 1, 3, 4}));
  EXPECT_THAT(op.result(), ElementsAre(0, 1, 3, 4, 4, 5, 7, 8, 8, 9, 11, 12));
}

TEST(ReferenceInterpolate, KeepsSamplesAndChannelsApart) {
  // NXC: two samples, two pixels, two channels
  OpCase op(OpKind::Interpolate);
  op.input({2, 2, 2}, {0, 10, 4, 50, 100, 1, 104, 1}, f32).attr("mode", "linear").attr("sizes", list({4})).outputs({f32});
  EXPECT_THAT(op.result(), ElementsAre(0, 10, 1, 20, 3, 40, 4, 50, 100, 1, 101, 1, 103, 1, 104, 1));
}

TEST(ReferenceInterpolate, DoesNotReadWhatHasNoWeight) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_THAT(line({1, inf}, 3, "linear", "align_corners").result(), ElementsAre(1, inf, inf));
  EXPECT_THAT(line({1, 2, inf}, 5, "linear", "align_corners").result(), ElementsAre(1, 1.5, 2, inf, inf));
}

TEST(ReferenceInterpolate, ChecksTheSizesThatItIsGivenAtRunTime) {
  OpCase op(OpKind::Interpolate);
  op.input({1, 2, 1}, {1, 2}, f32).input({1}, {4}, s32).attr("mode", "nearest").output_shape({1, 4, 1}).outputs({f32});
  EXPECT_THAT(op.result(), ElementsAre(1, 1, 2, 2));
  op.set(1, {3});
  try {
    op.run();
    FAIL() << "took another size than it was compiled for";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("input sizes holds [3], allowed is [4]"));
  }
}

TEST(ReferenceInterpolateBackward, AgreesWithDifferences) {
  const Dims src{2, 2, 3, 4, 2};  // NCX with three spatial axes
  const Numbers x(96, 0.5);
  for (const char* mode : {"nearest", "linear", "trilinear"})
    for (const char* coordinates : {"half_pixel", "align_corners"}) {
      const auto resample = [&](OpKind kind) {
        OpCase op(kind);
        op.input(src, x, f32).attr("mode", mode).attr("coordinate_transformation_mode", coordinates);
        return op.attr("sizes", list({5, 2, 3})).attr("data_format", "NCX").outputs({f32});
      };
      const OpCase forward = resample(OpKind::Interpolate);
      const Dims dst = forward.run()[0].shape;
      Numbers dy = RandomTensor(9).uniform(120, -8, 8);
      for (double& value : dy) value = std::floor(value);
      OpCase backward = resample(OpKind::InterpolateBackward);
      expect_close(backward.input(dst, dy, f32).result(), exact_gradient(forward, 0, dy), 1e-9);
    }
}

}  // namespace
}  // namespace lamina::testing
