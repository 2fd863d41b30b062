#include "backends/cpu/dispatch/windows/image_tensor.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/dispatch/windows/narrow_floats.h"
#include "backends/cpu/dispatch/windows/transpose.h"

namespace lamina::cpu {

namespace {

constexpr int64_t kChunk = 256;  // pixels whose channels are transposed at a time

int64_t element_bytes(DataType dtype) { return bits_of(dtype) / 8; }

// ---- runs of elements, with equal strides in the tensor, contiguous as f32

struct Run {
  DataType dtype;
  char* at;
  int64_t stride;  // in elements

  bool is_plain() const { return dtype == DataType::f32 && stride == 1; }
  Run from(int64_t element) const { return {dtype, at + element * stride * element_bytes(dtype), stride}; }
  Run alone() const { return {dtype, at, 1}; }
};

void load(const Run& run, int64_t count, float* to) {
  if (run.is_plain()) {
    std::memcpy(to, run.at, static_cast<size_t>(count) * sizeof(float));
  } else if (run.stride == 1) {
    widen(run.dtype, run.at, to, count);
  } else {
    for (int64_t i = 0; i < count; ++i) load(run.from(i).alone(), 1, to + i);
  }
}

void store(const Run& run, int64_t count, const float* from) {
  if (run.is_plain()) {
    std::memcpy(run.at, from, static_cast<size_t>(count) * sizeof(float));
  } else if (run.stride == 1) {
    narrow(run.dtype, from, run.at, count);
  } else {
    for (int64_t i = 0; i < count; ++i) store(run.from(i).alone(), 1, from + i);
  }
}

// ---- rows of pixels: as long as the stride between pixels is constant

struct Row {
  DataType dtype;
  char* at;  // the first channel of the first pixel
  int64_t pixels, stride, channels, channel_stride;

  char* element(int64_t pixel, int64_t channel) const {
    return at + (pixel * stride + channel * channel_stride) * element_bytes(dtype);
  }
  Run pixel(int64_t i) const { return {dtype, element(i, 0), channel_stride}; }
  Run channel(int64_t i, int64_t first_pixel) const { return {dtype, element(first_pixel, i), stride}; }
  bool has_adjacent_pixels() const { return channel_stride == 1 && channels > 1; }
};

// Calls body(row, its lanes in the copy) for every row of the box.
template <typename Lane, typename Body>
void for_each_row(const ImageTensor& tensor, const void* memory, const ChannelBlock& block, const Box& box, Lane* copy,
                  const Body& body) {
  int64_t first = block.image * tensor.image_stride + block.first * tensor.channel_stride;
  Row row{tensor.dtype, nullptr, 1, 1, block.channels, tensor.channel_stride};
  std::array<int64_t, 3> counts{1, 1, 1};  // of the axes that are not part of rows
  bool runs_on = true;
  for (size_t axis = box.size(); axis-- > 0;) {
    const int64_t extent = box[axis].size(), stride = tensor.strides[axis];
    first += box[axis].begin * stride;
    runs_on = runs_on && (row.pixels == 1 || extent == 1 || stride == row.pixels * row.stride);
    if (runs_on && row.pixels == 1) row.stride = stride;
    (runs_on ? row.pixels : counts[axis]) *= extent;
  }
  for (int64_t i = 0; i < counts[0]; ++i)
    for (int64_t j = 0; j < counts[1]; ++j)
      for (int64_t k = 0; k < counts[2]; ++k, copy += row.pixels * lanes_of_copy(block.channels)) {
        const int64_t at = first + i * tensor.strides[0] + j * tensor.strides[1] + k * tensor.strides[2];
        row.at = static_cast<char*>(const_cast<void*>(memory)) + at * element_bytes(tensor.dtype);
        body(row, copy);
      }
}

bool is_dense(const Row& row, int64_t lanes) { return row.channels == lanes && (row.stride == lanes || row.pixels == 1); }

void load_pixels(const Row& row, int64_t lanes, float* copy) {
  if (is_dense(row, lanes)) return load(row.pixel(0), row.pixels * lanes, copy);
  for (int64_t i = 0; i < row.pixels; ++i) load(row.pixel(i), row.channels, copy + i * lanes);
}

void store_pixels(const Row& row, int64_t lanes, const float* copy) {
  if (is_dense(row, lanes)) return store(row.pixel(0), row.pixels * lanes, copy);
  for (int64_t i = 0; i < row.pixels; ++i) store(row.pixel(i), row.channels, copy + i * lanes);
}

// Calls body(first pixel, pixels, first channel, channels) for one group of lanes and one chunk of pixels at a time.
template <typename Body>
void for_each_chunk(const Row& row, const Body& body) {
  for (int64_t pixel = 0; pixel < row.pixels; pixel += kChunk)
    for (int64_t channel = 0; channel < row.channels; channel += kMinLanes)
      body(pixel, std::min(kChunk, row.pixels - pixel), channel, std::min(kMinLanes, row.channels - channel));
}

void load_channels(const Row& row, int64_t lanes, float* copy) {
  for_each_chunk(row, [&](int64_t pixel, int64_t pixels, int64_t channel, int64_t channels) {
    float* const to = copy + pixel * lanes + channel;
    const Run run = row.channel(channel, pixel);
    if (run.is_plain()) return transpose(run.at, row.channel_stride, to, lanes, channels, pixels);
    float chunk[kMinLanes * kChunk];
    for (int64_t i = 0; i < channels; ++i) load(row.channel(channel + i, pixel), pixels, chunk + i * kChunk);
    transpose(chunk, kChunk, to, lanes, channels, pixels);
  });
}

void store_channels(const Row& row, int64_t lanes, const float* copy) {
  for_each_chunk(row, [&](int64_t pixel, int64_t pixels, int64_t channel, int64_t channels) {
    const float* const from = copy + pixel * lanes + channel;
    const Run run = row.channel(channel, pixel);
    if (run.is_plain()) return transpose(from, lanes, run.at, row.channel_stride, pixels, channels);
    float chunk[kMinLanes * kChunk];
    transpose(from, lanes, chunk, kChunk, pixels, channels);
    for (int64_t i = 0; i < channels; ++i) store(row.channel(channel + i, pixel), pixels, chunk + i * kChunk);
  });
}

}  // namespace

bool has_lanes(const ImageTensor& tensor) {
  if (tensor.channel_stride != 1) return false;
  if (tensor.dtype == DataType::bf16) return tensor.channels >= kMinLanesOfBf16;
  return tensor.dtype == DataType::f32 && tensor.channels >= kMinLanes;
}

LanePixels lanes_in_place(const ImageTensor& tensor, void* memory, const ChannelBlock& block) {
  const int64_t at = block.image * tensor.image_stride + block.first;
  const int64_t bytes = element_bytes(tensor.dtype);
  return {static_cast<char*>(memory) + at * bytes, bytes, tensor.strides, 0};
}

void copy_to_lanes(const ImageTensor& tensor, const void* memory, const ChannelBlock& block, const Box& box, float* copy) {
  const int64_t lanes = lanes_of_copy(block.channels);
  if (block.channels != lanes) std::fill_n(copy, pixel_count(box) * lanes, 0.0F);
  for_each_row(tensor, memory, block, box, copy, [&](const Row& row, float* to) {
    row.has_adjacent_pixels() ? load_pixels(row, lanes, to) : load_channels(row, lanes, to);
  });
}

void copy_from_lanes(const ImageTensor& tensor, void* memory, const ChannelBlock& block, const Box& box, const float* copy) {
  const int64_t lanes = lanes_of_copy(block.channels);
  for_each_row(tensor, memory, block, box, copy, [&](const Row& row, const float* from) {
    row.has_adjacent_pixels() ? store_pixels(row, lanes, from) : store_channels(row, lanes, from);
  });
}

}  // namespace lamina::cpu
