// In:    the graph of a partition whose shapes, strides and dtypes are all known, its ports, and its fusion groups.
// Out:   the steps that compute it, in order, and where the memory behind each of their args comes from. The plan is all that a
//        backend gets to see.
// Keeps: values. What passes between steps lies in one arena, reused by lifetime.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "interface/graph.h"
#include "kernels/capability.h"
#include "kernels/kernel_ir.h"
#include "passes/fusion/fuse.h"
#include "passes/tiling/following_ops.h"
#include "passes/tiling/quantized_product.h"
#include "passes/tiling/tile_regions.h"

namespace lamina::kernel {

// Where an arg's memory comes from.
struct Binding {
  // none: a port that is left out; positions: 0, 1, 2, ... as s32.
  enum class Source { none, input, output, arena, table, positions } source = Source::none;
  size_t index = 0;   // port, byte offset in the arena, or table number
  int64_t bytes = 0;  // from the first byte of that memory
};

// Generated: one loop nest.
struct KernelStep {
  Kernel kernel;
  std::vector<Binding> args;  // per kernel arg
};

// One heavy op over whole tensors, run by a primitive library of the backend.
struct LibraryStep {
  Op op;                                       // its kind, name and attributes; its value indices mean nothing here
  std::vector<LogicalTensor> inputs, outputs;  // by port, all known; an empty port where one is left out
  std::vector<Binding> args;                   // of the inputs, then of the outputs, then of the operands of what follows
  // A product or convolution of integers: the first two inputs are what was to be dequantised, and this is how.
  std::optional<QuantizedProduct> quantized = std::nullopt;
  // What is done to each element before it is stored; the output is its result then.
  std::optional<FollowingOps> following = std::nullopt;
  std::vector<LogicalTensor> operands = {};  // of these, in their order
  bool adds = false;                         // a product: to what its output holds, instead of writing it
};

struct Plan;

// An output of a tiled step to which several tiles add, in f32, in the order of their blocks: for one entry of the loops before
// that of the rows.
struct TileSum {
  size_t output = 0;      // of the step
  int loop = 0;           // over whose blocks it is summed
  bool in_place = false;  // in the output itself
  int64_t bytes = 0;      // of one copy: there is one, or one for each segment of the rows where it is summed over these
  Dims strides;           // per loop: bytes from one entry to the next
};

// A chain of steps over tiles: blocks of rows that do not see each other (passes/tiling). Each tile is a small plan of its own,
// whose ports are slices of the args; threads take tiles, and what lies between its steps is the thread's. Where tiles add to
// sums, a thread takes all those of an entry, or of a segment of its rows, in order.
struct TiledStep {
  Dims loops;
  size_t row_loop = 0;   // the last, or the last but one; of the loops before it a tile has one entry
  int64_t rows = 0;      // of a tile
  int64_t columns = 0;   // of a tile: entries of the loop behind that of the rows
  int64_t segments = 1;  // of the rows, in whole tiles
  // Of a whole tile; of the last block of rows, where it is smaller; then both for the last block of columns, likewise.
  std::vector<Plan> plans;
  std::vector<LogicalTensor> inputs, outputs;  // whole
  std::vector<Binding> args;                   // of the inputs, then of the outputs
  std::vector<Dims> strides;                   // per arg and loop: bytes from one entry to the next
  // Of further inputs of the tiles' plans, behind those: s64, the position of a tile's first element in a tensor; per loop,
  // from one entry to the next.
  std::vector<Dims> firsts;
  std::vector<TileSum> sums;
  // Makes the outputs of an entry out of those sums that are not in place (finish_sums.h); none or one.
  std::vector<Plan> finish;
};

using PlanStep = std::variant<KernelStep, LibraryStep, TiledStep>;

const std::vector<Binding>& args_of(const PlanStep& step);

struct Plan {
  std::vector<LogicalTensor> inputs, outputs;  // the partition's ports
  std::vector<PlanStep> steps;
  std::vector<std::vector<float>> tables;
  int64_t positions = 0;  // as many Source::positions must have
  size_t arena_bytes = 0;
  int64_t required_bytes = 0;  // bytes of the ports, each once

  // An output may take the memory of an input that has its strides and type when one kernel alone reads the one, element for
  // element, and writes the other in its last walk over the row: earlier, a later walk would read the input again.
  bool may_share(size_t input, size_t output) const;
  // Such pairs, {input index, output index}, each port in one at most.
  std::vector<std::pair<size_t, size_t>> inplace_ports() const;
};

// `groups` are all of the graph's, `regions` say in which order they run and what is tiled. Throws Error(invalid_graph) for a
// port that is both an input and an output, Error(unimplemented) for an op that can be no step on this target,
// Error(out_of_memory) for an arena that has no size.
Plan make_plan(const Graph& graph, std::span<const ValueIndex> inputs, std::span<const ValueIndex> outputs,
               const std::vector<FusionGroup>& groups, const std::vector<TileRegion>& regions, const PlanTarget& target);

// Bytes that a step reads and writes in main memory, each arg once.
int64_t moved_bytes(const Kernel& kernel);
int64_t moved_bytes(const PlanStep& step);

}  // namespace lamina::kernel
