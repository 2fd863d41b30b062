#include "backends/cpu/library/cells/cell_tensor.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/library/cells/transpose.h"
#include "backends/cpu/library/narrow_floats.h"

namespace lamina::cpu {

namespace {

constexpr int64_t kChunk = 256;  // cells whose channels are turned at a time

int64_t element_bytes(DataType dtype) { return bits_of(dtype) / 8; }

// ---- runs of elements, equally far apart in the tensor, next to each other as f32

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

// ---- rows of cells: as long as cells are equally far from each other

struct Row {
  DataType dtype;
  char* at;  // the first channel of the first cell
  int64_t cells, stride, channels, channel_stride;

  char* element(int64_t cell, int64_t channel) const {
    return at + (cell * stride + channel * channel_stride) * element_bytes(dtype);
  }
  Run cell(int64_t i) const { return {dtype, element(i, 0), channel_stride}; }
  Run channel(int64_t i, int64_t first_cell) const { return {dtype, element(first_cell, i), stride}; }
  bool has_cells_together() const { return channel_stride == 1 && channels > 1; }
};

// body(row, its lanes in the copy) for every row of the box.
template <typename Lane, typename Body>
void for_each_row(const CellTensor& tensor, const void* memory, const ChannelBlock& block, const Box& box, Lane* copy,
                  const Body& body) {
  int64_t first = block.image * tensor.image_stride + block.first * tensor.channel_stride;
  Row row{tensor.dtype, nullptr, 1, 1, block.channels, tensor.channel_stride};
  std::array<int64_t, 3> counts{1, 1, 1};  // of the axes that rows do not run along
  bool runs_on = true;
  for (size_t axis = box.size(); axis-- > 0;) {
    const int64_t extent = box[axis].size(), stride = tensor.strides[axis];
    first += box[axis].begin * stride;
    runs_on = runs_on && (row.cells == 1 || extent == 1 || stride == row.cells * row.stride);
    if (runs_on && row.cells == 1) row.stride = stride;
    (runs_on ? row.cells : counts[axis]) *= extent;
  }
  for (int64_t i = 0; i < counts[0]; ++i)
    for (int64_t j = 0; j < counts[1]; ++j)
      for (int64_t k = 0; k < counts[2]; ++k, copy += row.cells * lanes_of_copy(block.channels)) {
        const int64_t at = first + i * tensor.strides[0] + j * tensor.strides[1] + k * tensor.strides[2];
        row.at = static_cast<char*>(const_cast<void*>(memory)) + at * element_bytes(tensor.dtype);
        body(row, copy);
      }
}

bool is_dense(const Row& row, int64_t lanes) { return row.channels == lanes && (row.stride == lanes || row.cells == 1); }

void load_cells(const Row& row, int64_t lanes, float* copy) {
  if (is_dense(row, lanes)) return load(row.cell(0), row.cells * lanes, copy);
  for (int64_t i = 0; i < row.cells; ++i) load(row.cell(i), row.channels, copy + i * lanes);
}

void store_cells(const Row& row, int64_t lanes, const float* copy) {
  if (is_dense(row, lanes)) return store(row.cell(0), row.cells * lanes, copy);
  for (int64_t i = 0; i < row.cells; ++i) store(row.cell(i), row.channels, copy + i * lanes);
}

// Channels of one group of lanes and cells of one chunk at a time: body(first cell, cells, first channel, channels).
template <typename Body>
void for_each_chunk(const Row& row, const Body& body) {
  for (int64_t cell = 0; cell < row.cells; cell += kChunk)
    for (int64_t channel = 0; channel < row.channels; channel += kLeastLanes)
      body(cell, std::min(kChunk, row.cells - cell), channel, std::min(kLeastLanes, row.channels - channel));
}

void load_channels(const Row& row, int64_t lanes, float* copy) {
  for_each_chunk(row, [&](int64_t cell, int64_t cells, int64_t channel, int64_t channels) {
    float* const to = copy + cell * lanes + channel;
    const Run run = row.channel(channel, cell);
    if (run.is_plain()) return transpose(run.at, row.channel_stride, to, lanes, channels, cells);
    float chunk[kLeastLanes * kChunk];
    for (int64_t i = 0; i < channels; ++i) load(row.channel(channel + i, cell), cells, chunk + i * kChunk);
    transpose(chunk, kChunk, to, lanes, channels, cells);
  });
}

void store_channels(const Row& row, int64_t lanes, const float* copy) {
  for_each_chunk(row, [&](int64_t cell, int64_t cells, int64_t channel, int64_t channels) {
    const float* const from = copy + cell * lanes + channel;
    const Run run = row.channel(channel, cell);
    if (run.is_plain()) return transpose(from, lanes, run.at, row.channel_stride, cells, channels);
    float chunk[kLeastLanes * kChunk];
    transpose(from, lanes, chunk, kChunk, cells, channels);
    for (int64_t i = 0; i < channels; ++i) store(row.channel(channel + i, cell), cells, chunk + i * kChunk);
  });
}

}  // namespace

CellTensor as_cells(const LogicalTensor& tensor, bool channels_last) {
  const Dims &shape = *tensor.shape, &strides = tensor.strides;
  const size_t channel_axis = channels_last ? shape.size() - 1 : 1, first = channels_last ? 1 : 2, axes = shape.size() - 2;
  CellTensor cells{tensor.dtype, shape[0], shape[channel_axis], strides[0], strides[channel_axis], {1, 1, 1}, {0, 0, 0}};
  for (size_t i = 0; i < axes; ++i) {
    cells.extents[3 - axes + i] = shape[first + i];
    cells.strides[3 - axes + i] = strides[first + i];
  }
  return cells;
}

bool has_lanes(const CellTensor& tensor) {
  if (tensor.channel_stride != 1) return false;
  if (tensor.dtype == DataType::bf16) return tensor.channels >= kLeastLanesOfBf16;
  return tensor.dtype == DataType::f32 && tensor.channels >= kLeastLanes;
}

LaneCells lanes_in_place(const CellTensor& tensor, void* memory, const ChannelBlock& block) {
  const int64_t at = block.image * tensor.image_stride + block.first;
  const int64_t bytes = element_bytes(tensor.dtype);
  return {static_cast<char*>(memory) + at * bytes, bytes, tensor.strides, 0};
}

void copy_to_lanes(const CellTensor& tensor, const void* memory, const ChannelBlock& block, const Box& box, float* copy) {
  const int64_t lanes = lanes_of_copy(block.channels);
  if (block.channels != lanes) std::fill_n(copy, cell_count(box) * lanes, 0.0F);
  for_each_row(tensor, memory, block, box, copy, [&](const Row& row, float* to) {
    row.has_cells_together() ? load_cells(row, lanes, to) : load_channels(row, lanes, to);
  });
}

void copy_from_lanes(const CellTensor& tensor, void* memory, const ChannelBlock& block, const Box& box, const float* copy) {
  const int64_t lanes = lanes_of_copy(block.channels);
  for_each_row(tensor, memory, block, box, copy, [&](const Row& row, const float* from) {
    row.has_cells_together() ? store_cells(row, lanes, from) : store_channels(row, lanes, from);
  });
}

}  // namespace lamina::cpu
