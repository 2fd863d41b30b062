// In:    the graph of a partition whose shapes, strides and dtypes are all known, its ports, and its fusion groups.
// Out:   the steps that compute it, in order, and the source of the memory of each of their args. A backend sees only the
// plan.
// Keeps: values. Values between steps are in one arena, whose bytes are reused after the last read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "interface/graph.h"
#include "interface/indices.h"
#include "kernels/binding.h"
#include "kernels/capability.h"
#include "kernels/kernel_ir.h"
#include "passes/fusion/fuse.h"
#include "passes/tiling/dequantized_weights.h"
#include "passes/tiling/post_ops.h"
#include "passes/tiling/quantized_product.h"
#include "passes/tiling/tile_regions.h"

namespace lamina::kernel {

// Indices in the memory of an arg. Before the step runs, all must be in -extent..extent - 1. With an order, they are then
// sorted into the memory of another arg.
struct StepIndices {
  Op op;  // for the error
  LogicalTensor tensor;
  size_t arg = 0;
  int64_t extent = 0;
  std::optional<IndexOrder> order = std::nullopt;
  size_t sorted = 0;  // with an order: the arg
};
// Checks them and, with an order, sorts them. Throws Error(index_out_of_range).
void prepare(const StepIndices& indices, const void* memory, void* sorted);

// A generated kernel: one loop nest.
struct KernelStep {
  Kernel kernel;
  std::vector<Binding> args;  // per kernel arg
  std::vector<StepIndices> indices = {};
  std::vector<int> ops = {};  // positions of the graph's ops that it computes
  bool writes_part = false;   // of a value to which other steps write the rest
  // It may run on a part of the result of the library step before it as soon as that part is written (following_kernels.h).
  bool follows_parts = false;
};

// A library op over whole tensors, run by a primitive library of the backend.
struct LibraryStep {
  Op op;                                       // its kind, name and attributes; its value indices are not used
  std::vector<LogicalTensor> inputs, outputs;  // by port, all known; empty for absent ports
  std::vector<Binding> args;                   // of the inputs, then of the outputs, then of the operands
  // For a product or convolution of integers: the first two inputs are quantized, and this says how.
  std::optional<QuantizedProduct> quantized = std::nullopt;
  // For a product of floats whose second input is quantized: how the library dequantises it. It has no post-ops.
  std::optional<DequantizedWeights> dequantized = std::nullopt;
  // Elementwise ops that are applied before the result is stored. The output is then their result.
  std::optional<PostOps> post_ops = std::nullopt;
  std::vector<LogicalTensor> operands =
      {};                     // of `post_ops`; or of `dequantized`: its scales and zero points if these are tensors
  bool adds = false;          // a product adds to its output instead of overwriting it
  std::vector<int> ops = {};  // as of a kernel
};

struct Plan;

// An output of a tiled step to which several tiles add, in f32 and in the order of their blocks. There is one sum per entry
// of the loops before the loop over rows.
struct TileSum {
  size_t output = 0;      // output number of the step
  int loop = 0;           // the loop whose blocks are summed
  bool in_place = false;  // the sum is in the output itself
  int64_t bytes = 0;      // of one copy: there is one per segment if the rows are summed, else one
  Dims strides;           // per loop: bytes from one entry to the next
};

// Tiles that leave out columns which a causal mask hides from all their rows (TileRegion::mask). They are exact if `hidden` is
// -infinity and all values of the tile's entry are finite. Row r sees the columns before r + seen_more + the sum of the
// offsets.
struct ShorterTiles {
  std::vector<int64_t> lengths;  // numbers of columns, ascending
  std::vector<Plan> plans;       // of a full tile, per length
  struct Offset {
    size_t input;
    int sign;
  };
  int64_t seen_more = 0;
  std::vector<Offset> offsets;
  std::optional<size_t> hidden;  // input; nothing: it is known to be -infinity
  size_t values = 0;             // input
  LogicalTensor entry;           // the values that a tile reads
};

// A chain of steps over tiles: blocks of rows that are independent of each other (passes/tiling). Each tile runs a small plan
// whose ports are slices of the args. Threads take tiles, and values between the steps are in memory of the thread. If tiles
// add to sums, one thread runs all tiles of an entry, or of a segment of its rows, in order.
struct TiledStep {
  Dims loops;
  size_t row_loop = 0;   // the last loop, or the last but one; a tile has one entry of each loop before it
  int64_t rows = 0;      // of a tile
  int64_t columns = 0;   // of a tile: entries of the loop after the loop over rows
  int64_t segments = 1;  // of the rows, in whole tiles
  // The plan of a full tile; of the last block of rows if it is smaller; then both again for a smaller last block of columns.
  std::vector<Plan> plans;
  std::optional<ShorterTiles> shorter;
  std::vector<LogicalTensor> inputs, outputs;  // of whole tensors
  std::vector<Binding> args;                   // of the inputs, then of the outputs
  std::vector<Dims> strides;                   // per arg and loop: bytes from one entry to the next
  // For the further inputs of the tiles' plans, which follow those: the position (s64) of a tile's first element in a tensor.
  // Per loop, the positions from one entry to the next.
  std::vector<Dims> tile_origins;
  std::vector<TileSum> sums;
  // Computes the outputs of an entry from the sums that are not in place (finish_sums.h). It has at most one plan.
  std::vector<Plan> finish;
  std::vector<int> ops;  // as of a kernel: those whose sums `finish` completes
};

using PlanStep = std::variant<KernelStep, LibraryStep, TiledStep>;

const std::vector<Binding>& args_of(const PlanStep& step);

struct Plan {
  std::vector<LogicalTensor> inputs, outputs;  // the partition's ports
  std::vector<PlanStep> steps;
  std::vector<std::vector<float>> tables;
  int64_t positions = 0;  // the number of entries that Source::positions must have
  size_t arena_bytes = 0;
  int64_t required_bytes = 0;  // bytes of the ports, each counted once

  // Whether an output may use the memory of an input. They must have the same strides and type, and one kernel alone must
  // read the input and write the output, element for element, in its last walk over the row. After an earlier walk, the input
  // is read again.
  bool may_share(size_t input, size_t output) const;
  // Pairs of ports that may share memory, {input index, output index}. Each port is in at most one pair.
  std::vector<std::pair<size_t, size_t>> inplace_ports() const;
};

// `groups` are all groups of the graph. `regions` says in which order they run and which are tiled. Throws
// Error(invalid_graph) for a port that is both an input and an output, Error(unimplemented) for an op that cannot be a step
// on this target, and Error(out_of_memory) for an arena whose size overflows.
Plan make_plan(const Graph& graph, std::span<const ValueIndex> inputs, std::span<const ValueIndex> outputs,
               const std::vector<FusionGroup>& groups, const std::vector<TileRegion>& regions, const PlanTarget& target);

// The ops of each kernel and library step, in the order in which executables report their steps. A tiled step has those of a
// full tile, then those that finish its sums. A cast around a library step has a position after the graph's ops.
std::vector<std::vector<int>> ops_of_steps(const Plan& plan);

}  // namespace lamina::kernel
