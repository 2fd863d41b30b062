#include "backends/cpu/dispatch/program_checks.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <vector>

#include "backends/cpu/program/bytes.h"
#include "backends/cpu/program/plan_program.h"

namespace lamina::cpu {

namespace {

// Larger than any memory, and small enough that products of two or three do not overflow.
constexpr int64_t kMostElements = int64_t{1} << 45, kMostExtent = int64_t{1} << 31, kMostOfTile = int64_t{1} << 16;
constexpr int64_t kMostBlocks = int64_t{1} << 24;
constexpr size_t kMostCodes = 8;  // of a kernel

bool has_dims(const Dims& dims, size_t rank) { return dims.size() == rank; }

bool is_in(int64_t value, int64_t least, int64_t most) { return value >= least && value <= most; }

// Floats from 16 bits on, and integers of whole bytes.
bool has_elements_of_numbers(DataType dtype) {
  return bits_of(dtype) >= (is_floating(dtype) ? 16 : 8) && (is_floating(dtype) || is_integer(dtype));
}

void check_rows(const AxisRowsProgram& rows, size_t tensors, int64_t extent) {
  require(rows.shape.size() < static_cast<size_t>(kMaxRank) && rows.strides.size() == tensors && is_in(extent, 0, kMostExtent),
          "rows along an axis");
  int64_t count = 1;
  for (const int64_t rest : rows.shape) {
    require(is_in(rest, 0, kMostExtent) && count <= kMostExtent, "rows along an axis");
    count *= rest;
  }
  for (const Dims& strides : rows.strides) require(has_dims(strides, rows.shape.size() + 1), "strides of rows along an axis");
}

bool fit(const Taps& taps, const ImageTensor& inputs, const ImageTensor& outputs) {
  for (size_t axis = 0; axis < taps.size(); ++axis)
    if (!taps[axis].fits(inputs.extents[axis], outputs.extents[axis])) return false;
  return true;
}

// Like the output, which is one of them.
void check_image(const ImagePort& port, const ImageTensor& output, size_t args) {
  const ImageTensor& tensor = port.tensor;
  require(port.arg < args && (tensor.dtype == DataType::f32 || tensor.dtype == DataType::bf16 || tensor.dtype == DataType::f16),
          "the type of an image");
  require(tensor.images == output.images && tensor.channels == output.channels, "images and channels");
  int64_t elements = 1;
  for (const int64_t extent : {tensor.images, tensor.channels, tensor.extents[0], tensor.extents[1], tensor.extents[2]}) {
    require(is_in(extent, 1, kMostExtent) && elements <= kMostElements / extent, "extents of an image");
    elements *= extent;
  }
  for (const int64_t stride :
       {tensor.image_stride, tensor.channel_stride, tensor.strides[0], tensor.strides[1], tensor.strides[2]})
    require(is_in(stride, 0, kMostElements), "strides of an image");
}

// The axes, outer and inner dim of rows or terms.
void check_window(const std::vector<kernel::WindowAxis>& axes, std::initializer_list<kernel::WindowDim> dims) {
  require(!axes.empty() && axes.size() <= static_cast<size_t>(kMaxRank), "axes of a window");
  int64_t rows = 1, terms = 1, extents = 1;
  for (const kernel::WindowDim& dim : dims) {
    require(is_in(dim.extent, 1, kMostExtent) && extents <= kMostExtent, "extents of a window");
    extents *= dim.extent;
  }
  for (const kernel::WindowAxis& axis : axes) {
    require(is_in(axis.rows, 1, kMostExtent) && is_in(axis.terms, 1, kMostExtent) && is_in(axis.pixels, 0, kMostExtent) &&
                is_in(axis.divisor, 1, kMostExtent) && axis.rows <= kMostBlocks / axis.terms,
            "an axis of a window");
    for (const int64_t number : {axis.per_row, axis.per_term, axis.first})
      require(is_in(number, -kMostExtent, kMostExtent), "an axis of a window");
    require(is_in(axis.left, -kMostElements, kMostElements), "a stride of a window");
    rows *= axis.rows, terms *= axis.terms;
    require(rows <= kMostExtent && terms <= kMostExtent, "extents of a window");
  }
}

}  // namespace

void require(bool holds, const char* expected) {
  if (!holds) ByteReader::fail(expected);
}

void check(const KernelProgram& program) {
  const size_t rank = program.extents.size(), args = program.args.size();
  require(rank <= static_cast<size_t>(kMaxRank) && program.outer_rank >= 0 && static_cast<size_t>(program.outer_rank) < rank,
          "dims of a kernel");
  require(program.entry_rank >= 0 && program.entry_rank <= program.outer_rank, "entries of a kernel's sums");
  const auto is_arg = [args](int arg) { return arg >= 0 && static_cast<size_t>(arg) < args; };
  require(std::all_of(program.args.begin(), program.args.end(), [&](const auto& arg) { return has_dims(arg.strides, rank); }),
          "a stride per dim");
  require(std::all_of(program.column_sums.begin(), program.column_sums.end(), is_arg) &&
              std::all_of(program.streamed.begin(), program.streamed.end(), is_arg),
          "args of a kernel");
  const bool streams = std::find(program.streams.begin(), program.streams.end(), true) != program.streams.end();
  require(streams != program.streamed.empty(), "args that are streamed");
  const size_t codes = program.streams.size();
  require(codes <= kMostCodes && program.code_without_streaming() < codes, "codes of a kernel");
  require(program.timed_codes > 0 && program.timed_codes <= codes, "codes that are timed");
  require(program.moved_bytes >= 0 && program.sharing.rows >= 0 && program.sharing.row_size >= 0, "sizes of a kernel");
  require(program.live_bytes >= 0 && program.slots > 0, "memory of live values");
}

void check(const TileProgram& program, size_t args, size_t constants) {
  const size_t loops = program.loops.size();
  const auto has_loops = [loops](const Dims& dims) { return has_dims(dims, loops); };
  require(loops > 0 && loops <= static_cast<size_t>(kMaxRank) && program.row_loop < loops, "loops of a tiled step");
  require(std::all_of(program.loops.begin(), program.loops.end(), [](int64_t extent) { return extent > 0; }),
          "extents of loops");
  require(program.strides.size() == args && program.inputs <= args && args <= kInlineArgs &&
              std::all_of(program.strides.begin(), program.strides.end(), has_loops),
          "strides of a tiled step");
  require(args + program.tile_origins.size() + program.packings.size() <= kInlineArgs &&
              std::all_of(program.tile_origins.begin(), program.tile_origins.end(), has_loops),
          "inputs of tiles");
  for (const TileProgram::Packing& packing : program.packings)
    require(packing.input < program.inputs && has_loops(packing.strides) && packing.count > 0 &&
                (packing.constant < 0 || static_cast<size_t>(packing.constant) < constants),
            "packed weights of tiles");
  for (const TileProgram::Sum& sum : program.sums)
    require(sum.arg >= program.inputs && sum.arg < args && has_loops(sum.strides), "sums of tiles");
  require(program.outer > 0 && program.wave > 0 && program.segments > 0 && program.slots > 0, "counts of tiles");
  if (!program.lengths) return;
  const TileLengthsProgram& lengths = *program.lengths;
  require(has_loops(lengths.loops) && has_loops(lengths.strides) && has_loops(lengths.numbers) && lengths.count > 0 &&
              !lengths.dims.empty() && lengths.values < args && lengths.row_loop == program.row_loop &&
              (!lengths.hidden || lengths.hidden->input < args) &&
              std::all_of(
                  lengths.offsets.begin(), lengths.offsets.end(), [&](const auto& o) { return o.input < args; }),
          "lengths of tiles");
}

void check(const ProductProgram& program) {
  const kernel::MatmulStack& of = program.matrices;
  require(of.batch.size() <= static_cast<size_t>(kMaxRank), "dims of a batch");
  int64_t products = 1;
  for (const int64_t extent : of.batch) {
    require(is_in(extent, 0, kMostExtent) && products <= kMostExtent, "extents of a batch");
    products *= extent;
  }
  for (const kernel::MatrixStack* const matrix : {&of.src, &of.weights, &of.bias, &of.dst}) {
    const bool is_absent = matrix == &of.bias && !of.has_bias;
    require(is_absent || has_dims(matrix->batch_strides, of.batch.size()), "strides of a batch");
    require(is_absent || bits_of(matrix->dtype) >= 8, "types of a product");
  }
  for (const DataType dtype :
       {program.sum_type, program.bias_type, program.stored_type, program.panel_type, program.copied_type})
    require(bits_of(dtype) >= 8, "types of a product");
  require(is_in(of.m, 0, kMostExtent) && is_in(of.n, 0, kMostExtent) && is_in(of.k, 0, kMostExtent) &&
              is_in(program.k, 0, of.k) && is_in(program.entries, 1, 2) && of.k <= program.k * program.entries &&
              is_in(products, 0, kMostExtent) && of.n * of.k <= kMostElements / std::max<int64_t>(products, 1),
          "extents of a product");
  require(is_in(program.rows, 1, kMostOfTile) && is_in(program.vectors, 1, kMostOfTile) &&
              is_in(program.columns, 1, kMostOfTile) && program.columns % program.vectors == 0 &&
              is_in(program.k_block, 1, kMostExtent) && is_in(program.row_block, 1, kMostExtent) &&
              is_in(program.column_block, 1, kMostExtent) && is_in(program.threads, 1, kMostOfTile) &&
              of.n / std::min(program.column_block, program.columns) <= kMostBlocks,
          "blocks of a product");
  require(is_in(program.packed_k, 0, kMostExtent) && is_in(program.packed_n, 0, kMostExtent) &&
              (!program.splits_panels || (program.are_packed_ahead && program.copied_type == program.panel_type)),
          "packed weights");
  require(!program.multiplies_integers ||
              (!program.scales.empty() && (program.scale_strides.empty() || has_dims(program.scale_strides, of.batch.size()))),
          "scales of a product");
}

void check(const WindowRowsProgram& program) {
  check_window(program.axes,
               {program.groups, program.outer_rows, program.inner_rows, program.outer_terms, program.inner_terms});
  require(is_in(program.rows, 1, kMostExtent) && is_in(program.element_bytes, 1, 8) && is_in(program.row_bytes, 1, 8) &&
              is_in(std::abs(program.inner_terms.left), 0, kMostExtent),
          "rows of a convolution");
  require(is_in(program.column_groups.columns, 0, kMostOfTile) && is_in(program.column_groups.step, 0, kMostExtent) &&
              is_in(program.column_group_count, 0, kMostOfTile),
          "groups of columns");
}

void check(const kernel::QuantizedMatrix& matrix, const QuantizedPanel& panel) {
  const int bits = bits_of(matrix.values.dtype);
  require((bits == 4 || bits == 8) && panel.dtype == matrix.values.dtype && bits_of(panel.scales) >= 16 &&
              bits_of(matrix.scales.dtype) >= 8 && (!matrix.zero_points || bits_of(matrix.zero_points->dtype) >= 4),
          "types of quantized weights");
  require(is_in(matrix.values.rows, 1, kMostExtent) && is_in(matrix.values.columns, 1, kMostExtent) &&
              is_in(matrix.group_rows, 1, kMostExtent) && is_in(matrix.group_columns, 1, kMostExtent) &&
              is_in(panel.run, 1, kMostExtent) && matrix.values.rows % panel.run == 0 &&
              is_in(panel.vector_bits, 32, kMostOfTile) && is_in(panel.vectors, 1, kMostOfTile) &&
              panel.has_zero_points == matrix.zero_points.has_value(),
          "groups of quantized weights");
}

void check(const TopKProgram& program) {
  check_rows(program.rows, 3, program.extent);
  require(
      is_in(program.k, 0, program.extent) && has_elements_of_numbers(program.dtype) && is_in(program.threads, 1, kMostOfTile),
      "the k of TopK");
}

void check(const RunningProgram& program) {
  check_rows(program.rows, 2, program.extent);
  require(has_elements_of_numbers(program.dtype) && is_in(program.threads, 1, kMostOfTile),
          "the type of a running sum or product");
}

void check(const RecurrenceProgram& program) {
  check_rows(program.rows, program.is_backward ? 5 : 3, program.extent);
  require(is_floating(program.dtype) && has_elements_of_numbers(program.dtype) && is_in(program.threads, 1, kMostOfTile),
          "the type of a recurrence");
}

void check(const ConvolutionProgram& program, size_t args) {
  check_window(program.axes, {program.outer_terms, program.inner_terms});
  for (const size_t arg : {program.left, program.right, program.dst, program.bias.value_or(0)})
    require(arg < args, "an arg of a convolution");
  require(is_in(program.groups, 1, kMostBlocks) && is_in(program.columns, 1, kMostBlocks) && is_in(program.weight_bytes, 1, 8),
          "groups of a convolution");
}

void check(const WindowWork& work, size_t args) {
  check_image(work.input, work.output.tensor, args);
  check_image(work.output, work.output.tensor, args);
  require(fit(work.taps, work.input.tensor, work.output.tensor) && is_in(work.threads, 1, kMostOfTile), "windows");
  if (!work.has_image()) {
    for (const TapLists& windows : work.windows) require(windows.fits(0, 0), "no windows without a gradient");
    return;
  }
  check_image(work.image, work.output.tensor, args);
  require(work.image.tensor.extents == work.output.tensor.extents && fit(work.windows, work.image.tensor, work.input.tensor),
          "windows of a gradient");
}

void check(const GroupedProgram& program) {
  const std::vector<int64_t>& parts = program.part_rows;
  require(is_in(program.rows, 1, kMostExtent) && bits_of(program.dtype) >= 8 && !parts.empty() && parts.front() > 0 &&
              std::is_sorted(parts.begin(), parts.end()) && parts.back() <= program.rows,
          "parts of groups of rows");
}

void check(const GroupedSumsProgram& program) {
  const bool is_in_range = is_in(program.terms, 0, kMostExtent) && is_in(program.part_terms, 1, kMostExtent) &&
                           bits_of(program.sums) >= 32 && bits_of(program.dtype) >= 8;
  require(!program.adds_to_dst || (program.sums == program.dtype && program.column_stride == 1), "sums of groups in dst");
  require(is_in_range, "parts of sums of groups");
}

void check(const LineProgram& program, size_t args, size_t codes) {
  check_window(program.axes, {program.images, program.columns, program.inner_terms});
  for (const size_t arg : {program.left, program.right, program.dst, program.bias.value_or(0)})
    require(arg < args, "an arg of a convolution");
  require(is_in(program.element_bytes, 1, 8) && is_in(program.lanes, 1, kMostOfTile) &&
              is_in(program.vectors, 1, kMostOfTile) && is_in(program.line_block, 1, kMostExtent) &&
              is_in(program.column_block, 1, kMostExtent) && is_in(program.chunk, 1, kMostExtent) &&
              is_in(program.threads, 1, kMostOfTile) && is_in(program.columns_of_channel, 1, program.lanes) &&
              program.lanes % program.columns_of_channel == 0,
          "blocks of a convolution");
  int64_t pixels = 0;
  for (const LineProgram::Tiles& tiles : program.tiles) {
    require(tiles.code < codes && tiles.first == pixels && is_in(tiles.pixels, 1, kMostOfTile) &&
                is_in(tiles.count, 1, kMostExtent / tiles.pixels),
            "tiles of a convolution");
    pixels += tiles.pixels * tiles.count;
    require(pixels <= kMostExtent, "tiles of a convolution");
  }
  require(pixels == program.axes.back().rows, "tiles of a convolution");
}

void check(const TapProgram& program, size_t args) {
  check_window(program.axes, {program.images, program.channels});
  for (const size_t arg : {program.left, program.right, program.dst}) require(arg < args, "an arg of a weight gradient");
  for (const int64_t bytes : {program.left_bytes, program.right_bytes, program.dst_bytes, program.sum_bytes})
    require(is_in(bytes, 1, 8), "the elements of a weight gradient");
  int64_t rows = 1, lines = 1, pixels = 1;
  for (size_t a = 0; a < program.axes.size(); ++a) {
    require(program.axes[a].pixels <= kMostExtent / std::max<int64_t>(pixels, 1), "pixels of a weight gradient");
    pixels *= program.axes[a].pixels;
    if (a + 1 < program.axes.size()) rows *= program.axes[a].rows, lines *= program.axes[a].terms;
  }
  require(rows <= kMostBlocks / lines, "lines of a weight gradient");
  require(is_in(program.lanes, 1, kMostOfTile) && is_in(program.vectors, 1, kMostOfTile / program.lanes) &&
              is_in(program.rows, 1, rows) && is_in(program.rows, 1, kMostOfTile) &&
              is_in(program.axes.back().rows, 1, kMostOfTile) && is_in(program.inner, 0, program.axes.back().terms) &&
              is_in(program.threads, 1, kMostOfTile),
          "the tiles of a weight gradient");
  const kernel::WindowAxis& last = program.axes.back();
  const int64_t most = std::max({pixels, lines * last.terms, rows * last.rows});  // of what a thread has in scratch memory
  require(most <= kMostElements / (program.lanes * program.vectors * program.sum_bytes), "the images of a weight gradient");
}

}  // namespace lamina::cpu
