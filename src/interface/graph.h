// A graph of operations: ops connected by values (logical tensors). Two ports with the same tensor id are connected.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "interface/logical_tensor.h"
#include "interface/op.h"

namespace lamina {

enum class EngineKind : int { any = 0, cpu = 1, gpu = 2 };
enum class FpMathMode : int { strict = 0, bf16 = 1, f16 = 2, any = 3, tf32 = 4 };

// One operand position: an op (its position in Graph::ops()) and a port.
struct Port {
  int op = -1;
  int port = -1;
  bool operator==(const Port&) const = default;
};

struct Value {
  LogicalTensor tensor;
  Port producer;                // op -1: a graph input
  std::vector<Port> consumers;  // in op order; an op that reads it twice is listed twice
  // For a graph input: the value of every element at every execution (Graph::set_constant). Absent: unknown.
  std::optional<double> constant = {};
};

class Graph {
 public:
  // Adds an op after checking it against its schema (defaults are filled in; older kinds are kept). The tensor of an omitted
  // port has the id kNoTensor. Tensors of the same id must agree (dtype, known shape, layout, property); the more precise
  // description wins. If a consumer of an inner tensor declares another shape than its producer, the producer's shape is
  // kept, with a warning in `warnings()`. Returns the op's position. Throws Error and then leaves the graph unchanged.
  int add_op(uint64_t id, OpKind kind, std::string name, Attributes attributes, std::span<const LogicalTensor> inputs,
             std::span<const LogicalTensor> outputs);

  // Declares that every element of a graph input is `value` at every execution, so that passes may compile it in; a partition
  // that has compiled it in has no port for it. An op of the graph must read the tensor, no op may produce it, and its
  // property must be constant, host_scalar or undef (which becomes constant). `value` is rounded to the tensor's type. Throws
  // Error and then leaves the graph unchanged.
  void set_constant(uint64_t tensor_id, double value);

  // Orders ops topologically (stable), checks for cycles and for tensors with two producers, and infers shapes. Throws
  // Error(invalid_graph) and then leaves the graph unchanged. No op can be added afterwards.
  void finalize();
  bool is_finalized() const { return finalized_; }

  const std::vector<Op>& ops() const { return ops_; }
  const Op& op(int position) const { return ops_[static_cast<size_t>(position)]; }
  const std::vector<Value>& values() const { return values_; }
  const Value& value(ValueIndex index) const { return values_[static_cast<size_t>(index)]; }
  const LogicalTensor& tensor(ValueIndex index) const { return value(index).tensor; }
  std::optional<ValueIndex> find_value(uint64_t tensor_id) const;

  // Values that an op reads and no op produces, in order of first use.
  std::vector<ValueIndex> inputs() const;
  // Values that no op reads, or that an End op marks, in the order of ops.
  std::vector<ValueIndex> outputs() const;

  const std::vector<std::string>& warnings() const { return warnings_; }

  // Input and output tensors of an op by the schema's port name; nullptr if the port is omitted.
  const LogicalTensor* input(const Op& op, std::string_view port) const;
  const LogicalTensor* output(const Op& op, std::string_view port) const;
  ValueIndex input_value(const Op& op, std::string_view port) const;  // kNoValue if omitted
  ValueIndex output_value(const Op& op, std::string_view port) const;

  // Overwrites what is known about a value (used by shape inference and by the driver's overrides).
  void set_tensor(ValueIndex index, LogicalTensor tensor) { values_[static_cast<size_t>(index)].tensor = std::move(tensor); }
  // Infers every shape and stride that follows from the graph inputs. With `forget_inner`, shapes of produced values are
  // cleared first. Throws Error(invalid_shape) naming the op.
  void infer_shapes(bool forget_inner = false);

  EngineKind engine_kind = EngineKind::cpu;
  FpMathMode fpmath_mode = FpMathMode::strict;
  bool fpmath_apply_to_int = false;

 private:
  friend class GraphEditor;  // passes rewrite a graph through it (passes/core/graph_editor.h)
  // The parts of the graph that are restored when add_op fails.
  struct Touched {
    ValueIndex value;
    LogicalTensor tensor;
    Port producer;
    size_t consumer_count;
  };
  struct Undo {
    size_t op_count;
    size_t value_count;
    size_t warning_count;
    std::vector<Touched> touched;
  };

  ValueIndex intern(const LogicalTensor& tensor, bool is_output, const Op& op, size_t port);
  void connect(Op& op, int position, std::span<const LogicalTensor> inputs, std::span<const LogicalTensor> outputs);
  Undo remember(std::span<const LogicalTensor> inputs, std::span<const LogicalTensor> outputs) const;
  void restore(Undo undo) noexcept;
  void order_ops();
  bool is_graph_output(const Value& value) const;
  void take_inferred_shape(const Op& op, const std::string& port, ValueIndex index, const Dims& shape, bool forget_inner);
  Value& value_of(ValueIndex index) { return values_[static_cast<size_t>(index)]; }

  std::vector<Op> ops_;
  std::vector<Value> values_;
  std::unordered_map<uint64_t, ValueIndex> value_by_id_;
  std::unordered_map<uint64_t, int> op_by_id_;
  std::vector<std::string> warnings_;
  bool finalized_ = false;
};

}  // namespace lamina
