// How work is cut into tiles, only from shapes and types.
#pragma once

#include <vector>

#include "backends/cpu/library/onednn/convolution_shape.h"

namespace lamina::cpu::onednn {

// A part of an image along the slab axis with its positions: over `image_rows` rows from `image_begin`, with a pad of
// `pad_begin` in front, the window has `position_rows` positions.
struct Slab {
  int64_t image_begin, image_rows, position_begin, position_rows, pad_begin;
};

// The cut of an image: slabs, and slices of the output channels. It is independent of other images, so that bits are too.
struct Cut {
  std::vector<Slab> slabs;
  int64_t slice;  // channels; the last slice may have fewer
};
enum class Factors { floats, integers, integers_with_zero_point };
// The cuts to try in turn, each with fewer tiles. oneDNN may have no fast code for the last slab of one, which is smaller, with
// the packed weights of the others.
std::vector<Cut> cuts_of(const ConvolutionShape& shape, Factors factors);
Cut whole_image(const ConvolutionShape& shape);

// The cut of the gradient of weights, which is a sum over all images: blocks of whole images or slabs of one, and slices of
// the channels of the positions.
struct Block {
  int64_t image, images;
  Slab slab;
};
struct SumCut {
  std::vector<Block> blocks;
  int64_t slice;
};
SumCut sum_cut_of(const ConvolutionShape& shape);
SumCut whole_sum(const ConvolutionShape& shape);

// A slab in the form of oneDNN's window parameters, per spatial axis.
struct SlabWindow {
  Dims image, positions, strides, dilations, pads_begin, pads_end;
};
SlabWindow window_in(const ConvolutionShape& shape, const Slab& slab);

}  // namespace lamina::cpu::onednn
