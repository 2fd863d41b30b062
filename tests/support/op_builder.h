// A fluent builder of single ops for schema tests. Ports have the names of the schema; a port without a shape has unknown rank.
// The builder checks nothing until error_of, check or shapes_of is called.
//
//   const auto op = an_op(OpKind::LayerNorm).input("src", f32, {2, 3, 8}).output("dst", f32).attr("begin_norm_axis", 1);
//   EXPECT_EQ(error_of(op), "");
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interface/op_schema.h"
#include "interface/status.h"

namespace lamina::testing {

class OpBuilder {
 public:
  explicit OpBuilder(OpKind kind) { op_.kind = kind, op_.name = "op0"; }

  OpBuilder& named(std::string name) { return op_.name = std::move(name), *this; }

  OpBuilder& attr(const std::string& name, Attribute value) { return op_.attributes[name] = std::move(value), *this; }
  OpBuilder& attr(const std::string& name, bool value) { return attr(name, Attribute(value)); }
  OpBuilder& attr(const std::string& name, int value) { return attr(name, Attribute(int64_t{value})); }
  OpBuilder& attr(const std::string& name, double value) { return attr(name, Attribute(static_cast<float>(value))); }
  OpBuilder& attr(const std::string& name, const char* value) { return attr(name, Attribute(std::string(value))); }
  OpBuilder& attr(const std::string& name, std::vector<int64_t> value) { return attr(name, Attribute(std::move(value))); }
  OpBuilder& floats(const std::string& name, std::vector<float> value) { return attr(name, Attribute(std::move(value))); }
  OpBuilder& without_attr(const std::string& name) { return op_.attributes.erase(name), *this; }

  // Adds a port by name. A repeated name appends to a variadic port and replaces any other port.
  OpBuilder& input(const std::string& port, DataType dtype, std::optional<Dims> shape = std::nullopt) {
    return inputs_.push_back({port, tensor(dtype, std::move(shape))}), *this;
  }
  OpBuilder& output(const std::string& port, DataType dtype, std::optional<Dims> shape = std::nullopt) {
    return outputs_.push_back({port, tensor(dtype, std::move(shape))}), *this;
  }
  OpBuilder& without_input(const std::string& port) { return erase(inputs_, port), *this; }
  OpBuilder& without_output(const std::string& port) { return erase(outputs_, port), *this; }
  // Adds ports beyond those that the schema has.
  OpBuilder& surplus_inputs(int count) { return surplus_inputs_ = count, *this; }
  OpBuilder& surplus_outputs(int count) { return surplus_outputs_ = count, *this; }

  // Returns the op with defaults filled in, as a view that is valid while this builder exists.
  OpView view() const {
    filled_ = op_;
    fill_defaults(filled_);
    const OpSchema& schema = schema_of(op_.kind);
    return {filled_, schema, tensors(schema.inputs, inputs_, surplus_inputs_),
            tensors(schema.outputs, outputs_, surplus_outputs_)};
  }

 private:
  struct NamedTensor {
    std::string port;
    LogicalTensor tensor;
  };

  static LogicalTensor tensor(DataType dtype, std::optional<Dims> shape) {
    LogicalTensor result;
    result.id = 0;
    result.dtype = dtype;
    result.shape = std::move(shape);
    return result;
  }
  static void erase(std::deque<NamedTensor>& tensors, const std::string& port) {
    std::erase_if(tensors, [&](const NamedTensor& given) { return given.port == port; });
  }

  // Tensors by port number; nullptr for a port that is omitted before a given one.
  std::vector<const LogicalTensor*> tensors(const std::vector<PortSpec>& ports, const std::deque<NamedTensor>& given,
                                            int surplus) const {
    std::vector<const LogicalTensor*> by_position;
    for (const NamedTensor& named : given) {
      size_t position = port_position(ports, filled_.attributes, named.port);
      if (position == SIZE_MAX)
        position = std::max(count_existing(ports), by_position.size());  // with these attributes, the port is one too many
      if (!ports.empty() && ports.back().name == named.port && ports.back().presence == Presence::variadic)
        position = std::max(position, by_position.size());
      if (position >= by_position.size()) by_position.resize(position + 1, nullptr);
      by_position[position] = &named.tensor;
    }
    static const LogicalTensor extra = tensor(DataType::f32, std::nullopt);
    const size_t existing = count_existing(ports);
    if (surplus > 0 && by_position.size() < existing) by_position.resize(existing, nullptr);
    for (int i = 0; i < surplus; ++i) by_position.push_back(&extra);
    return by_position;
  }
  size_t count_existing(const std::vector<PortSpec>& ports) const {
    size_t count = 0;
    for (const PortSpec& port : ports)
      if (!port.exists_when || port.exists_when->holds(filled_.attributes)) ++count;
    return count;
  }

  Op op_;
  mutable Op filled_;
  std::deque<NamedTensor> inputs_, outputs_;
  int surplus_inputs_ = 0, surplus_outputs_ = 0;
};

inline OpBuilder an_op(OpKind kind) { return OpBuilder(kind); }

// Returns the message of check_op or of shape inference, "" if both succeed.
inline std::string error_of(const OpBuilder& builder) {
  try {
    const OpView view = builder.view();
    check_op(view);
    for (size_t i = 0; i < view.input_count(); ++i)
      if (view.input_at(i) != nullptr && !view.input_at(i)->shape) return "";
    if (view.schema().infer_shapes) view.schema().infer_shapes(view);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline Status status_of(const OpBuilder& builder) {
  try {
    check_op(builder.view());
  } catch (const Error& error) {
    return error.status();
  }
  return Status::success;
}

// Returns the inferred shapes of the outputs that exist for the op's attributes. Throws Error.
inline std::map<std::string, Dims> shapes_of(const OpBuilder& builder) {
  const OpView view = builder.view();
  check_op(view);
  std::map<std::string, Dims> shapes;
  for (const auto& [port, shape] : view.schema().infer_shapes(view))
    if (port_position(view.schema().outputs, view.op().attributes, port) != SIZE_MAX) shapes[port] = shape;
  return shapes;
}

using Shapes = std::map<std::string, Dims>;

}  // namespace lamina::testing
