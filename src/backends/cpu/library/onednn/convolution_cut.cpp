#include "backends/cpu/library/onednn/convolution_cut.h"

#include <algorithm>

#include "backends/cpu/dispatch/primitive.h"
#include "backends/cpu/library/onednn/dense_block.h"

namespace lamina::cpu::onednn {

namespace {

constexpr double kMaxTiles = 32;
constexpr int64_t kMinSlice = 64, kSliceStep = 32;  // channels

// For an image. The call of a tile costs less than a microsecond.
constexpr double kTileOperations = 1.5e6;    // multiplications and additions that justify a separate tile
constexpr double kIntegerOperations = 48e5;  // of integers: an instruction multiplies four for each float
constexpr double kChannelOperations = 4e5;   // of integers, if each channel is alone: an instruction multiplies one in four
constexpr double kBorderOperations = 16e6;   // of integers, if the call also finds what a zero point adds at the border
constexpr double kTileBytes = 128 << 10;     // bytes read and written that justify a separate tile
constexpr int64_t kMinPositions = 32;        // that share a tile's pass over the weights
constexpr int64_t kMinPositionsOfSlab = 16;  // the same without slices: else there would be no other tile
// per output element, so that copying slices to their destination is cheap in comparison
constexpr double kMinOperations = 1024;

// For a sum.
constexpr double kBlockOperations = 16.0e6, kBlockBytes = 512 << 10;
constexpr double kMinPositionsOfBlock = 512;    // so that writing and reading its partial gradient is cheap in comparison
constexpr double kMinElementsOfGradient = 0.5;  // that a block reads per element of its partial gradient

int64_t pad_end(const ConvolutionShape& shape, size_t axis) {
  return (shape.position_extents[axis] - 1) * shape.strides[axis] + shape.reach(axis) - shape.image_extents[axis] -
         shape.pads_begin[axis];
}

bool has_pads(const ConvolutionShape& shape) {
  for (size_t axis = 0; axis < shape.spatial_rank(); ++axis)
    if (shape.pads_begin[axis] > 0 || pad_end(shape, axis) > 0) return true;
  return false;
}

double tile_operations(const ConvolutionShape& shape, Factors factors) {
  if (factors == Factors::floats) return kTileOperations;
  if (factors == Factors::integers_with_zero_point && has_pads(shape)) return kBorderOperations;
  return shape.groups > 1 && shape.groups == shape.image.dims[1] ? kChannelOperations : kIntegerOperations;
}

bool may_see_a_pad_alone(const ConvolutionShape& shape) {
  const size_t axis = shape.slab_axis;
  return shape.pads_begin[axis] >= shape.reach(axis) || pad_end(shape, axis) >= shape.reach(axis);
}

std::vector<Slab> slabs_of_positions(const ConvolutionShape& shape, int64_t rows) {
  const size_t axis = shape.slab_axis;
  const int64_t extent = shape.position_extents[axis], image = shape.image_extents[axis];
  if (may_see_a_pad_alone(shape)) rows = extent;
  std::vector<Slab> slabs;
  for (int64_t first = 0; first < extent; first += rows) {
    const int64_t count = std::min(rows, extent - first);
    const int64_t from = first * shape.strides[axis] - shape.pads_begin[axis];
    const int64_t to = from + (count - 1) * shape.strides[axis] + shape.reach(axis);
    const int64_t begin = std::max<int64_t>(from, 0), end = first + count < extent ? std::min(to, image) : image;
    slabs.push_back({begin, end - begin, first, count, begin - from});
  }
  return slabs;
}

// Slabs start at multiples of the stride, which oneDNN's fastest code requires.
std::vector<Slab> slabs_of_image(const ConvolutionShape& shape, int64_t rows) {
  const size_t axis = shape.slab_axis;
  const int64_t extent = shape.image_extents[axis], stride = shape.strides[axis], height = rows * stride;
  std::vector<Slab> slabs;
  for (int64_t begin = 0; begin < extent; begin += height) {
    const int64_t end = std::min(begin + height, extent);
    // The positions from the first window that ends in the slab (or the last that starts before it) to the last that starts
    // in it.
    const int64_t from = begin + shape.pads_begin[axis], to = end - 1 + shape.pads_begin[axis];
    const int64_t last = std::min(to / stride, shape.position_extents[axis] - 1);
    const int64_t reaching_in = parts(std::max<int64_t>(from - shape.reach(axis) + 1, 0), stride);
    const int64_t first = std::min({reaching_in, from / stride, last});
    slabs.push_back({begin, end - begin, first, last - first + 1, from - first * stride});
  }
  return slabs;
}

// The unit of slabs: rows of positions, or strides of the image if the image is computed.
int64_t row_count(const ConvolutionShape& shape) {
  const size_t axis = shape.slab_axis;
  return shape.makes_image() ? parts(shape.image_extents[axis], shape.strides[axis]) : shape.position_extents[axis];
}

// Slabs of `rows` positions (the last may have fewer) with the part of the image that they need; or, if the image is
// computed, of `rows` strides of the image with the positions that contribute to them.
std::vector<Slab> slabs_of(const ConvolutionShape& shape, int64_t rows) {
  return shape.makes_image() ? slabs_of_image(shape, rows) : slabs_of_positions(shape, rows);
}

int64_t channels_made(const ConvolutionShape& shape) {
  return shape.makes_image() ? shape.image.dims[1] : shape.positions.dims[1];
}

// The channels per slice for at most `slices` slices.
int64_t slice_of(int64_t channels, int64_t slices) {
  return std::min(channels, std::max(kMinSlice, parts(channels, slices * kSliceStep) * kSliceStep));
}

// The number of tiles for `images` images, if a tile has this number of operations or bytes.
int64_t wanted_tiles(const ConvolutionShape& shape, int64_t images, double operations, double bytes) {
  const auto elements = static_cast<double>(shape.image_elements() + shape.position_elements());
  const double moved = elements * static_cast<double>(bytes_of(shape.image.dtype, 1));
  const double worth = static_cast<double>(images) * std::max(shape.operations() / operations, moved / bytes);
  return static_cast<int64_t>(std::clamp(worth, 1.0, kMaxTiles));
}

// Whether tiles may have a part of the output channels.
bool has_slices(const ConvolutionShape& shape) {
  const int64_t made = shape.makes_image() ? shape.image_elements() : shape.position_elements();
  return shape.groups == 1 && channels_made(shape) > kMinSlice &&
         shape.operations() >= kMinOperations * static_cast<double>(made);
}

// Neighbouring slabs both copy the overlap of their windows, which may add at most half, if the input is copied.
int64_t least_rows_to_copy(const ConvolutionShape& shape) {
  const size_t axis = shape.slab_axis;
  const AxesInOrder& read = shape.makes_image() ? shape.positions : shape.image;
  Dims extents = read.dims;
  extents[0] = 1;
  if (is_block(read, extents)) return 1;
  return parts(2 * std::max<int64_t>(shape.reach(axis) - shape.strides[axis], 0), shape.strides[axis]);
}

int64_t slab_rows(const ConvolutionShape& shape, int64_t tiles) {
  const int64_t rows = row_count(shape);
  const int64_t positions_of_row =
      shape.position_elements() / shape.positions.dims[1] / shape.position_extents[shape.slab_axis];
  const int64_t positions = has_slices(shape) ? kMinPositions : kMinPositionsOfSlab;
  const int64_t least = std::max({int64_t{1}, least_rows_to_copy(shape), parts(positions, positions_of_row)});
  return parts(rows, std::clamp<int64_t>(rows / least, 1, tiles));
}

Slab whole_slab(const ConvolutionShape& shape) { return slabs_of(shape, row_count(shape))[0]; }

std::vector<Block> blocks_of(const ConvolutionShape& shape, int64_t count) {
  const int64_t batch = shape.batch(), rows = row_count(shape);
  std::vector<Block> blocks;
  if (count <= batch) {
    const int64_t images = parts(batch, count);
    for (int64_t image = 0; image < batch; image += images)
      blocks.push_back({image, std::min(images, batch - image), whole_slab(shape)});
    return blocks;
  }
  std::vector<Slab> slabs = slabs_of(shape, parts(rows, std::min(rows, count / batch)));
  const int64_t reach = shape.reach(shape.slab_axis);
  if (std::any_of(slabs.begin(), slabs.end(), [reach](const Slab& slab) { return slab.image_rows < reach; }))
    slabs = {whole_slab(shape)};
  for (int64_t image = 0; image < batch; ++image)
    for (const Slab& slab : slabs) blocks.push_back({image, 1, slab});
  return blocks;
}

double most_blocks(const ConvolutionShape& shape) {
  const auto images = static_cast<double>(shape.batch());
  const double positions = images * static_cast<double>(shape.position_elements() / shape.positions.dims[1]);
  const double elements = images * static_cast<double>(shape.image_elements() + shape.position_elements());
  return std::min(positions / kMinPositionsOfBlock,
                  elements / (kMinElementsOfGradient * static_cast<double>(shape.weight_elements())));
}

}  // namespace

std::vector<Cut> cuts_of(const ConvolutionShape& shape, Factors factors) {
  int64_t tiles = wanted_tiles(shape, 1, tile_operations(shape, factors), kTileBytes);
  if (tiles > 1) tiles += tiles % 2;  // few tiles are divided evenly among an even number of threads
  std::vector<Cut> cuts;
  do {
    Cut cut{slabs_of(shape, slab_rows(shape, tiles)), channels_made(shape)};
    if (has_slices(shape)) cut.slice = slice_of(cut.slice, std::max<int64_t>(tiles / std::ssize(cut.slabs), 1));
    cuts.push_back(std::move(cut));
    tiles /= 2;
  } while (tiles > 1);
  return cuts;
}

Cut whole_image(const ConvolutionShape& shape) { return {{whole_slab(shape)}, channels_made(shape)}; }

SumCut sum_cut_of(const ConvolutionShape& shape) {
  const int64_t tiles = wanted_tiles(shape, shape.batch(), kBlockOperations, kBlockBytes);
  const auto blocks = static_cast<int64_t>(std::clamp(most_blocks(shape), 1.0, static_cast<double>(tiles)));
  const int64_t channels = shape.positions.dims[1];
  SumCut cut{blocks_of(shape, blocks), channels};
  if (shape.groups == 1) cut.slice = slice_of(channels, std::max<int64_t>(tiles / std::ssize(cut.blocks), 1));
  return cut;
}

SumCut whole_sum(const ConvolutionShape& shape) { return {{{0, shape.batch(), whole_slab(shape)}}, shape.positions.dims[1]}; }

SlabWindow window_in(const ConvolutionShape& shape, const Slab& slab) {
  SlabWindow window{{}, shape.position_extents, shape.strides, shape.dilations, shape.pads_begin, {}};
  window.positions[shape.slab_axis] = slab.position_rows;
  window.pads_begin[shape.slab_axis] = slab.pad_begin;
  for (size_t axis = 0; axis < shape.spatial_rank(); ++axis) {
    window.image.push_back(axis == shape.slab_axis ? slab.image_rows : shape.image_extents[axis]);
    window.dilations[axis] -= 1;  // oneDNN's 0 means dense
    window.pads_end.push_back((window.positions[axis] - 1) * shape.strides[axis] + shape.reach(axis) - window.image[axis] -
                              window.pads_begin[axis]);
  }
  return window;
}

}  // namespace lamina::cpu::onednn
