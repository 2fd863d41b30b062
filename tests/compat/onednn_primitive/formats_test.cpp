// Memory descriptors, and layer normalization of tensors in plain, strided and blocked formats.
#include "primitive_fixture.h"

namespace primitive_test {
namespace {

using ::testing::ElementsAre;

TEST(MemoryDesc, PlainTagsAreStrides) {
  EXPECT_THAT(memory::desc({2, 3, 4}, dt::f32, tag::tnc).get_strides(), ElementsAre(12, 4, 1));
  EXPECT_THAT(memory::desc({2, 3, 4}, dt::f32, tag::ntc).get_strides(), ElementsAre(4, 8, 1));
  EXPECT_THAT(memory::desc({2, 3, 4, 5}, dt::f32, tag::nhwc).get_strides(), ElementsAre(60, 1, 15, 3));
  EXPECT_EQ(memory::desc({2, 3}, dt::f32, tag::nc), memory::desc({2, 3}, dt::f32, tag::ab));
  EXPECT_EQ(memory::desc({2, 3}, dt::f32, tag::nc), memory::desc({2, 3}, dt::f32, memory::dims{3, 1}));
  EXPECT_NE(memory::desc({2, 3}, dt::f32, tag::nc), memory::desc({2, 3}, dt::f32, tag::cn));
}

TEST(MemoryDesc, BlockedTagsArePaddedToWholeBlocks) {
  const memory::desc desc({2, 20, 3, 5}, dt::bf16, tag::nChw16c);
  EXPECT_THAT(desc.get_padded_dims(), ElementsAre(2, 32, 3, 5));
  EXPECT_THAT(desc.get_strides(), ElementsAre(480, 240, 80, 16));
  EXPECT_THAT(desc.get_inner_blks(), ElementsAre(16));
  EXPECT_THAT(desc.get_inner_idxs(), ElementsAre(1));
  EXPECT_EQ(desc.get_size(), 2U * 32 * 3 * 5 * 2);
}

TEST(MemoryDesc, EveryTagAddressesEveryElementOnce) {
  for (int number = 2; number < static_cast<int>(tag::format_tag_last); ++number) {
    for (size_t rank = 1; rank <= 6; ++rank) {
      memory::dims dims;
      for (size_t d = 0; d < rank; ++d) dims.push_back(static_cast<int64_t>(d) % 3 + 2);
      const memory::desc desc(dims, dt::u8, static_cast<tag>(number), true);
      if (desc.is_zero()) continue;  // the tag has another rank
      std::vector<bool> seen(desc.get_size(), false);
      for (int64_t i = 0; i < count_of(dims); ++i) {
        const auto offset = static_cast<size_t>(offset_of(desc, i));
        ASSERT_LT(offset, seen.size()) << "tag " << number;
        ASSERT_FALSE(seen[offset]) << "tag " << number;
        seen[offset] = true;
      }
    }
  }
}

// Expects the same bits with the layouts `src` and `dst` as with the plain one.
void expect_same_as_plain(const memory::dims& dims, const memory::desc& src, const memory::desc& dst,
                          const memory::desc& stat = {}) {
  Case plain(dims), c(dims);
  c.src = src;
  c.dst = dst;
  c.stat = stat;
  plain.run_forward(prop_kind::forward_training, kScale | kShift);
  c.run_forward(prop_kind::forward_training, kScale | kShift);
  EXPECT_EQ(c.out(DNNL_ARG_DST), plain.out(DNNL_ARG_DST));
  EXPECT_EQ(c.out(DNNL_ARG_MEAN), plain.out(DNNL_ARG_MEAN));
  EXPECT_EQ(c.out(DNNL_ARG_VARIANCE), plain.out(DNNL_ARG_VARIANCE));
  plain.run_backward(prop_kind::backward, kScale | kShift);
  c.run_backward(prop_kind::backward, kScale | kShift);
  EXPECT_EQ(c.out(DNNL_ARG_DIFF_SRC), plain.out(DNNL_ARG_DIFF_SRC));
  c.expect_backward(kScale | kShift);  // column sums add rows in memory order
}

TEST(LayerNormalizationFormats, SrcAndDstMayBeStrided) {
  const memory::dims dims{5, 7, 33};
  const memory::desc gaps(dims, dt::f32, memory::dims{7 * 48, 48, 1}), swapped(dims, dt::f32, tag::ntc),
      far(dims, dt::f32, tag::cba);
  for (const memory::desc& src : {gaps, swapped, far})
    for (const memory::desc& dst : {gaps, swapped, far}) expect_same_as_plain(dims, src, dst);
}

TEST(LayerNormalizationFormats, SrcAndDstMayBeBlockedAlongAnotherDim) {
  const memory::dims dims{2, 32, 3, 20};
  const memory::desc plain(dims, dt::f32, tag::nchw), by16(dims, dt::f32, tag::nChw16c), by8(dims, dt::f32, tag::nChw8c);
  for (const memory::desc& src : {plain, by16, by8})
    for (const memory::desc& dst : {plain, by16, by8}) expect_same_as_plain(dims, src, dst);
}

TEST(LayerNormalizationFormats, StatisticsMayBeBlockedToo) {
  const memory::dims dims{2, 32, 3, 20};
  expect_same_as_plain(dims, {dims, dt::f32, tag::nChw16c}, {dims, dt::f32, tag::nChw16c}, {{2, 32, 3}, dt::f32, tag::nCw8c});
}

TEST(LayerNormalizationFormats, TheNormalisedDimMayBeBlocked) {
  const memory::dims dims{6, 48};
  for (const tag blocked : {tag::aB16b, tag::aB8b, tag::ba}) {
    Case c(dims);
    c.src = {dims, dt::f32, blocked};
    c.run_forward(prop_kind::forward_training, kScale | kShift);
    c.expect_forward();
    c.dst = c.src;
    c.run_forward(prop_kind::forward_training, kScale);
    c.expect_forward();
    c.run_backward(prop_kind::backward, kScale | kShift);
    c.expect_backward(kScale | kShift);
  }
}

TEST(LayerNormalizationFormats, BlocksOfTwoDims) {
  const memory::dims dims{16, 32, 3, 5};
  expect_same_as_plain(dims, {dims, dt::f32, tag::NChw16n16c}, {dims, dt::f32, tag::ABcd8b8a});
}

TEST(LayerNormalizationFormats, InPlaceWorksInBlockedFormats) {
  Case c({2, 32, 3, 20});
  c.src = c.dst = {c.dims, dt::f32, tag::nChw16c};
  c.run_forward(prop_kind::forward_training, kScale | kShift);
  const Values apart = c.out(DNNL_ARG_DST);
  c.run_forward(prop_kind::forward_training, kScale | kShift, true);
  EXPECT_EQ(c.out(DNNL_ARG_DST), apart);
}

TEST(LayerNormalizationFormats, InPlaceNeedsOneFormat) {
  Case c({2, 32, 3, 20});
  c.src = {c.dims, dt::f32, tag::nChw16c};
  c.run_forward(prop_kind::forward_inference, kNone);
  const memory same_memory(c.dst, c.cpu, c.args[DNNL_ARG_SRC].get_data_handle());
  c.args[DNNL_ARG_DST] = same_memory;
  const layer_normalization_forward forward({c.cpu, prop_kind::forward_inference, c.src, c.dst, 1e-5f, kNone});
  EXPECT_THAT(failure_of([&] { forward.execute(c.s, c.args); }),
              FailsWith(dnnl_invalid_arguments, "dst uses the memory of src"));
}

TEST(LayerNormalizationFormats, FormatAnyBecomesThatOfSrc) {
  const engine cpu(engine::kind::cpu, 0);
  const memory::desc src({2, 32, 3, 20}, dt::bf16, tag::nChw16c), any({2, 32, 3, 20}, dt::f32, tag::any);
  const layer_normalization_forward::primitive_desc pd(cpu, prop_kind::forward_training, src, any, 1e-5f, kNone);
  EXPECT_EQ(pd.dst_desc(), memory::desc({2, 32, 3, 20}, dt::f32, tag::nChw16c));
}

TEST(LayerNormalizationFormats, BlocksThatWouldBePaddedAreRefused) {
  Case c({2, 20, 3, 5});
  c.src = {c.dims, dt::f32, tag::nChw16c};
  EXPECT_THAT(failure_of([&] { c.run_forward(prop_kind::forward_training, kNone); }),
              FailsWith(dnnl_unimplemented, "dim 1 has 20 elements, which blocks of 16 would pad"));
}

}  // namespace
}  // namespace primitive_test
