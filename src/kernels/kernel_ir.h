// The kernel IR: one fused loop nest over [outer dims] x [inner dims] and an SSA body.
//
// Inner dims are the axes that some node of the body reduces. A kernel without reductions has one inner dim, the contiguous
// one. A *row* is one point of the outer dims. Every node is either a value per row or a value per element of a row, and has
// a phase: the number of passes over the row that must be complete before it can be computed. Threads, vectors and devices
// are not part of a kernel; they are decided by the schedule of a backend.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "interface/data_type.h"
#include "interface/logical_tensor.h"
#include "kernels/math/map_op.h"

namespace lamina::kernel {

// The types of arithmetic, each a data type. Values of the other data types (floats of 16 and 8 bits, integers of 8 and 4) are
// computed in f32, and are converted only by loads and stores. Integers wrap around.
#define LAMINA_KERNEL_TYPES(use) use(f32) use(f64) use(s32) use(s64) use(boolean) use(u16) use(u32) use(u64) use(s16)

enum class Type {
#define LAMINA_ENUMERATOR(name) name,
  LAMINA_KERNEL_TYPES(LAMINA_ENUMERATOR)
#undef LAMINA_ENUMERATOR
};
DataType data_type_of(Type type);
inline bool is_real(Type type) { return type == Type::f32 || type == Type::f64; }
bool is_integer(Type type);  // boolean is none
bool is_signed_integer(Type type);

// The type in which values of `dtype` are computed: itself, or f32.
Type compute_type(DataType dtype);

enum class NodeKind {
  load,        // element of arg `arg`
  load_entry,  // the same, in the entry that operand 0 numbers; `value` where operand 1 (boolean, may be absent) is false
  // f64: the sum of elements of arg `arg`, in the entries that the elements of arg `order` from operand 0 to operand 1 - 1
  // number, one after the other. `value` is the average number of entries in a sum, and decides nothing but speed.
  sum_entries,
  constant,    // `value`
  index,       // sum over dims of coefficients[d] * i_d, type s64
  map,         // `op` of the operands
  reduce,      // `reduction` of operand 0 over the inner dims: a value per row
  moments,     // mean and biased variance of operand 0 over the inner dims; read through the three nodes below
  mean,        // operand 0: moments
  variance,    // operand 0: moments
  center,      // operand 0 minus the mean of operand 1 (moments), with the mean's rounding error taken out; times operand 2, if
               // given
  store,       // operand 0 to arg `arg`
  column_sum,  // sum of operand 0 over all rows, or those of an entry, to arg `arg`: a value per inner position
  // sum of operand 0 over each segment of the row, to arg `arg`. The arg varies along the first inner dims; a segment is a run
  // of the others, one at least.
  segment_sum
};

// What a node costs to compute once its operands are known, from cheap to expensive.
enum class CostClass {
  simple,    // a few instructions, or a load
  division,  // a division or a square root: tens of cycles
  function,  // exp, tanh, ...: tens of instructions
  random     // a random word
};

enum class Reduction { sum, maximum, minimum, product };

using NodeIndex = int;

struct Node {
  NodeKind kind;
  Type type = Type::f32;
  MapOp op = MapOp::add;
  Reduction reduction = Reduction::sum;
  std::array<NodeIndex, 3> operands = {-1, -1, -1};
  double value = 0;                  // constant, power, load_entry, sum_entries
  DataType dtype = DataType::undef;  // round_to
  int arg = -1;                      // load, load_entry, sum_entries, store, column_sum, segment_sum
  int order = -1;                    // sum_entries
  Dims coefficients;                 // index: one per dim
  bool per_element = false;          // else a value per row
  int phase = 0;
};

struct Arg {
  std::string name;  // the name of a tensor ("t42") or of a table ("scales7")
  DataType dtype = DataType::f32;
  bool output = false;
  // Written by column_sum: strides of outer dims are 0; or not 0 in the dims of Kernel::entry_rank alone, with sums per entry.
  bool column = false;
  Dims strides;              // in elements, per dim; 0 where the tensor does not vary
  std::vector<float> table;  // the data of a constant that is part of the kernel; else empty
  int64_t entries = 0,
          entry_stride = 0;  // load_entry, sum_entries: how many entries there are, and elements from one to the next
};

struct Kernel {
  std::string name;    // readable: add_layer_norm_gelu_f32
  Dims extents;        // outer dims, then inner dims
  int outer_rank = 0;  // how many dims are outer; extents.size() - outer_rank >= 1 are inner
  // How many of the outer dims, from the first, number the entries of column sums: rows that agree in them are one entry. No
  // block of a column sum has rows of two entries.
  int entry_rank = 0;
  std::vector<Arg> args;
  std::vector<Node> nodes;  // operands before users
  bool has_row_reduction() const;
  bool has_column_sum() const;
  bool has_segment_sum() const;
  bool computes_in_f64() const;             // values per element, or the results of reductions
  int phase_count() const;                  // passes over a row
  int64_t row_count() const;                // product of the outer extents
  int64_t entry_count() const;              // entries of column sums, 1 without such dims
  bool sums_entries(const Arg& arg) const;  // a column sum per entry
  int64_t row_size() const;                 // product of the inner extents
  const Node& node(NodeIndex i) const { return nodes[static_cast<size_t>(i)]; }
  const Arg& arg(int a) const { return args[static_cast<size_t>(a)]; }
};

// Elements from the first that the kernel may access to the last, inclusive.
int64_t span_of(const Kernel& kernel, const Arg& arg);
int operand_count(const Node& node);
bool is_load(const Node& node);       // load or load_entry
bool reads_arg(const Node& node);     // these, or sum_entries
bool writes_arg(const Node& node);    // store, column_sum or segment_sum: a node without a value
bool reduces_rows(const Node& node);  // reduce, moments or segment_sum: has partial results along a row
// The first dim of the segments that end in `arg`, an arg of a segment sum.
size_t first_segment_dim(const Kernel& kernel, const Arg& arg);
// The bytes of all args. One that is read by index counts as if each read were of another entry, but only once as a whole.
int64_t moved_bytes(const Kernel& kernel);
// Legal integers in an arg of a kernel that reads by index. `sorted`: they are those of sort_indices (interface/indices.h).
struct IndexRange {
  int64_t first, last;
  bool sorted = false;
};
std::optional<IndexRange> index_range(const Kernel& kernel, int arg);
// Per node: whether it varies along a row and `root` depends on it.
std::vector<bool> element_nodes_of(const Kernel& kernel, NodeIndex root);
// The type of the args that vary along a row and on which `root` depends: bf16 or f16 if all have that type, f16 if both
// occur, else undef.
DataType data_precision(const Kernel& kernel, NodeIndex root);
const char* name_of(MapOp op);
const char* name_of(Type type);
const char* name_of(CostClass cost);
// As math/map_ops.def says; see cost_classes in loop_plan.h for values made of random words.
CostClass cost_of(const Node& node);
// The result type of a map with these operand types. `chosen`: the type in the node, for a cast.
Type result_of(MapOp op, Type first, Type second, Type chosen);
// Describes what is wrong with the type of the node or of its operands, which precede it in the kernel; or "".
std::string type_fault(const Kernel& kernel, const Node& node);

// One line per node: `%3 = multiply %1, %2 : f32 row phase 1`. With `with_outer` false, the text omits the tensors' names and
// everything that a compiled kernel gets at run time (outer extents and strides). That text is the part of the key of code
// caches that describes the kernel's structure.
std::string print(const Kernel& kernel, bool with_outer = true);

// Checks operands, types, phases, levels and args. Throws Error(runtime_error) with the text of the kernel: a fault is a bug
// in the lowering.
void verify(const Kernel& kernel);

}  // namespace lamina::kernel
