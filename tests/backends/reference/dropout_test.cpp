// Philox compared with its authors' test vectors, Dropout's words compared with those of oneDNN, and the op itself.
#include "backends/reference/op_case.h"
#include "backends/reference/philox.h"

namespace lamina::testing {
namespace {

using reference::dropout_word;
using ::testing::Each;
using ::testing::ElementsAre;
constexpr DataType f32 = DataType::f32;
constexpr DataType u8 = DataType::u8;

TEST(Philox, GivesTheKnownAnswersOfItsAuthors) {
  EXPECT_THAT(reference::philox4x32_10({0, 0, 0, 0}, {0, 0}), ElementsAre(0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U));
  constexpr uint32_t ones = 0xffffffffU;
  EXPECT_THAT(reference::philox4x32_10({ones, ones, ones, ones}, {ones, ones}),
              ElementsAre(0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU));
  EXPECT_THAT(reference::philox4x32_10({0x243f6a88U, 0x85a308d3U, 0x13198a2eU, 0x03707344U}, {0xa4093822U, 0x299f31d0U}),
              ElementsAre(0xd16cfe09U, 0x94fdccebU, 0x5001e420U, 0x24126ea1U));
}

// The top 12 bits of the words of elements 0, 1, 2, ..., measured as thresholds of p on oneDNN 3.13.
std::vector<uint32_t> top_bits(int count, int64_t seed, int64_t offset) {
  std::vector<uint32_t> bits;
  for (int i = 0; i < count; ++i) bits.push_back(dropout_word(i, seed, offset) >> 20);
  return bits;
}

TEST(DropoutWord, IsWhatOneDnnDraws) {
  EXPECT_THAT(top_bits(12, 1, 3), ElementsAre(3103, 149, 587, 220, 3315, 2236, 444, 3213, 3281, 2884, 1452, 1509));
  EXPECT_THAT(top_bits(8, 0, int64_t{1} << 32), ElementsAre(1709, 3746, 1850, 116, 250, 1482, 154, 3446));
}

TEST(DropoutWord, DependsOnEveryBitOfSeedOffsetAndIndex) {
  const int64_t high = int64_t{1} << 40;
  EXPECT_NE(dropout_word(5, 1, 2), dropout_word(5, 1 + high, 2));
  EXPECT_NE(dropout_word(5, 1, 2), dropout_word(5, 1, 2 + high));
  EXPECT_NE(dropout_word(5, 1, 2), dropout_word(5 + high, 1, 2));
  EXPECT_NE(dropout_word(5, 1, 2), dropout_word(5, -1, 2));
}

OpCase dropout(const Numbers& src, int64_t seed, int64_t offset, double probability) {
  OpCase op(OpKind::Dropout);
  op.input({static_cast<int64_t>(src.size())}, src, f32).integer(seed).integer(offset).input({}, {probability}, f32);
  op.outputs({f32, u8});
  return op;
}

TEST(ReferenceDropout, ScalesWhatItKeeps) {
  // an element is kept if the top bit of its word is set: 3103, 149, 587, 220, 3315, 2236 of 4096
  const OpCase op = dropout({1, 2, 3, 4, 5, 6}, 1, 3, 0.5);
  EXPECT_THAT(op.result(1), ElementsAre(1, 0, 0, 0, 1, 1));
  EXPECT_THAT(op.result(0), ElementsAre(2, 0, 0, 0, 10, 12));
}

TEST(ReferenceDropout, ProbabilityZeroKeepsAllAndOneDropsAll) {
  EXPECT_THAT(dropout(Numbers(64, 3), 7, 9, 0.0).result(0), Each(3));
  EXPECT_THAT(dropout(Numbers(64, 3), 7, 9, 1.0).result(0), Each(0));
  EXPECT_THAT(dropout(Numbers(64, 3), 7, 9, 1.0).result(1), Each(0));
}

TEST(ReferenceDropout, DropsTheShareItIsTold) {
  const size_t count = 40000;
  double kept = 0;
  for (const double mask : dropout(Numbers(count, 1), 123, 0, 0.25).result(1)) kept += mask;
  EXPECT_NEAR(kept / static_cast<double>(count), 0.75, 0.01);
}

TEST(ReferenceDropout, SeedsBeyondDoublePrecisionAreToldApart) {
  const int64_t big = (int64_t{1} << 60) + 1;
  EXPECT_NE(dropout(Numbers(64, 1), big, 0, 0.5).result(1), dropout(Numbers(64, 1), big - 1, 0, 0.5).result(1));
}

// Columns 2 and 3 of rows 1 and 2 of a tensor of 3 x 5.
TEST(ReferenceDropout, APartDrawsWhatTheWholeDoes) {
  const Numbers whole = dropout(Numbers(15, 1), 1, 3, 0.5).result(1);
  OpCase part(OpKind::Dropout);
  part.input({2, 2}, Numbers(4, 1), f32).integer(1).integer(3).input({}, {0.5}, f32).integer(7);
  part.attr("steps", std::vector<int64_t>{5, 1}).outputs({f32, u8});
  EXPECT_THAT(part.result(1), ElementsAre(whole[7], whole[8], whole[12], whole[13]));
}

TEST(ReferenceDropout, TheMaskMayBeLeftOut) {
  OpCase op = dropout({1, 2, 3, 4}, 1, 3, 0.5);
  EXPECT_THAT(op.outputs({f32}).result(), ElementsAre(2, 0, 0, 0));
}

}  // namespace
}  // namespace lamina::testing
