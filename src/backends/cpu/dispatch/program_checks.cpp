#include "backends/cpu/dispatch/program_checks.h"

#include <algorithm>
#include <cstdint>

#include "backends/cpu/program/bytes.h"
#include "backends/cpu/program/plan_program.h"

namespace lamina::cpu {

namespace {

// Larger than any memory, and small enough that products of two or three do not overflow.
constexpr int64_t kMostElements = int64_t{1} << 45, kMostExtent = int64_t{1} << 31, kMostOfTile = int64_t{1} << 16;
constexpr int64_t kMostBlocks = int64_t{1} << 24;

bool has_dims(const Dims& dims, size_t rank) { return dims.size() == rank; }

bool is_in(int64_t value, int64_t least, int64_t most) { return value >= least && value <= most; }

}  // namespace

void require(bool holds, const char* expected) {
  if (!holds) ByteReader::fail(expected);
}

void check(const KernelProgram& program) {
  const size_t rank = program.extents.size(), args = program.args.size();
  require(rank <= static_cast<size_t>(kMaxRank) && program.outer_rank >= 0 && static_cast<size_t>(program.outer_rank) < rank,
          "dims of a kernel");
  const auto is_arg = [args](int arg) { return arg >= 0 && static_cast<size_t>(arg) < args; };
  require(std::all_of(program.args.begin(), program.args.end(), [&](const auto& arg) { return has_dims(arg.strides, rank); }),
          "a stride per dim");
  require(std::all_of(program.column_sums.begin(), program.column_sums.end(), is_arg) &&
              std::all_of(program.streamed.begin(), program.streamed.end(), is_arg),
          "args of a kernel");
  require(program.moved_bytes >= 0 && program.sharing.rows >= 0 && program.sharing.row_size > 0, "sizes of a kernel");
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
  for (const DataType dtype : {program.sum_type, program.bias_type, program.panel_type, program.copied_type})
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
  require(is_in(program.packed_k, 0, kMostExtent) && is_in(program.packed_n, 0, kMostExtent), "packed weights");
  require(!program.multiplies_integers ||
              (!program.scales.empty() && (program.scale_strides.empty() || has_dims(program.scale_strides, of.batch.size()))),
          "scales of a product");
}

}  // namespace lamina::cpu
