// The interface to the files in kernels/ops: an op's ports as kernel values, its attributes, and the dims of the loop nest.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "interface/graph.h"
#include "interface/indices.h"
#include "interface/op_schema.h"
#include "kernels/builder.h"
#include "passes/fusion/fuse.h"

namespace lamina::kernel {

// How a kernel reads an input that it does not traverse element by element.
struct InputRead {
  Dims strides;                           // per dim of the loop nest
  int64_t entries = 0, entry_stride = 0;  // of the arg
  int64_t offset = 0;                     // of the first element, in elements
};

// A tensor without elements may have any strides. Strides of 0 would mean that all its elements are the same one.
Dims strides_in_memory(const LogicalTensor& tensor);

class OpLowering {
 public:
  // How values enter and leave. `read` returns the value of an input port (computed by an earlier op, or loaded). `write`
  // receives the value of an output port. `is_needed` says whether that output has a reader.
  struct Wiring {
    std::function<Value(int port)> read;
    std::function<int(int port, const InputRead& how)> input_arg;
    std::function<void(int port, int64_t extent, const std::optional<IndexOrder>& order)> check_indices;
    std::function<int(const InputRead& how)> sorted_arg;
    std::function<void(int port, Value)> write;
    std::function<void(int port, Value)> write_column;
    std::function<bool(int port)> is_needed;
    std::function<bool(int port)> is_column;
    std::function<void(int slot, Value)> carry;
    std::function<Value(int slot)> carried;
    bool sums_only = false;
    std::function<int(int slot, const InputRead& how)> ahead_arg;
    std::function<DimMap(int port)> input_map, output_map;
    std::function<Dims(const DimMap&, const Dims& strides)> iteration_strides;
    Type float_type = Type::f32;
  };
  OpLowering(const Graph& graph, const Op& op, Builder& builder, Wiring wiring)
      : k(builder), graph_(graph), op_(op), wiring_(std::move(wiring)) {}

  Builder& k;

  // `in` converts an input to f32 (f64 in an f64 group). `in_as_is` does not convert.
  Value in(int port) { return k.cast(wiring_.read(port), wiring_.float_type); }
  Value in_as_is(int port) { return wiring_.read(port); }
  // Reads `port` from the entries along `axis` whose numbers the input `indices` holds; negative ones count from the end.
  Value in_entries(int port, size_t axis, int indices);
  // The sum of the entries of `port` whose index, in the input `indices`, is the position along the axis of output 0. `at`
  // says which axes of both have these positions.
  Value sum_by_index(int port, int indices, const IndexedAxis& at, std::optional<int64_t> ignored);
  bool has(std::string_view input_port) const { return port_of_input(input_port) >= 0; }
  Value in(std::string_view input_port) { return in(port_of_input(input_port)); }

  // An arg that reads `port` in this way.
  int input_arg(int port, const InputRead& how) const { return wiring_.input_arg(port, how); }
  // Strides per dim of the loop nest of a tensor that has `strides` along its dims, by the map of an input or output.
  Dims strides_in_nest(int port, const Dims& strides) const {
    return wiring_.iteration_strides(wiring_.input_map(port), strides);
  }
  Dims strides_of_output(int port, const Dims& strides) const {
    return wiring_.iteration_strides(wiring_.output_map(port), strides);
  }

  // Sets an output. The value is cast to the compute type of the output's dtype.
  void out(int port, Value value);
  void out(std::string_view output_port, Value value);
  bool wants(std::string_view output_port) const;

  // Sets an output that sums over every dim that it does not have. If these are not the outer dims of the loop nest, the op
  // is lowered a second time, into a separate kernel (`sums_only`). That kernel computes only these outputs and may read the
  // values that the first one carried over, a value per row in each slot.
  void out_column(std::string_view output_port, Value value);
  bool is_column(int port) const { return wiring_.is_column(port); }  // for an op that can be either
  bool sums_only() const { return wiring_.sums_only; }
  void carry(int slot, Value row_value) { wiring_.carry(slot, row_value); }
  Value carried(int slot) { return wiring_.carried(slot); }
  // A kernel that runs ahead of the op's own carries values to it, in f32. They are dense, in the order of the first kernel's
  // outer dims.
  int ahead_arg(int slot, const InputRead& how) const { return wiring_.ahead_arg(slot, how); }

  // Loads a table at the current node. It has one entry per index of the run along `axis` of input 0.
  Value table(const std::string& name, const std::vector<float>& entries, int axis);
  // Position along one axis of input 0, or in the whole row-major tensor, type s64.
  Value index_along(int axis);
  Value linear_index();
  // The same with `steps` positions from one element to the next, per axis.
  Value index_by(const Dims& steps);

  template <typename T>
  const T& attribute(std::string_view name) const {
    return op_.attribute<T>(name);
  }
  bool has_attribute(std::string_view name) const { return op_.has_attribute(name); }
  double number(std::string_view name) const { return op_.number(name); }
  const LogicalTensor& input_tensor(int port) const { return graph_.tensor(op_.inputs[static_cast<size_t>(port)]); }
  const LogicalTensor& output_tensor(int port) const { return graph_.tensor(op_.outputs[static_cast<size_t>(port)]); }
  Type float_type() const { return wiring_.float_type; }
  double row_size() const { return static_cast<double>(k.row_size()); }
  const Op& op() const { return op_; }
  OpView view() const { return {graph_, op_}; }

 private:
  int port_of_input(std::string_view name) const;  // -1 if it is absent
  int port_of_output(std::string_view name) const;

  const Graph& graph_;
  const Op& op_;
  Wiring wiring_;
};

// One entry of a family's table: the mathematics of one op kind.
struct Lowering {
  OpKind kind;
  void (*lower)(OpLowering& op);
  void (*ahead)(OpLowering& op) = nullptr;  // over the windows of a gradient; see OpLowering::ahead_arg
};

// The families, one file each.
std::vector<Lowering> elementwise_lowerings();
std::vector<Lowering> elementwise_backward_lowerings();
std::vector<Lowering> binary_lowerings();
std::vector<Lowering> norm_lowerings();
std::vector<Lowering> norm_backward_lowerings();
std::vector<Lowering> batch_norm_lowerings();
std::vector<Lowering> softmax_lowerings();
std::vector<Lowering> reduce_lowerings();
std::vector<Lowering> quantize_lowerings();
std::vector<Lowering> layout_lowerings();
std::vector<Lowering> dropout_lowerings();
std::vector<Lowering> window_lowerings();

}  // namespace lamina::kernel
