#include "interface/graph.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "interface/data_type.h"
#include "interface/op_schema.h"
#include "interface/status.h"

namespace lamina {
namespace {

// A port in messages: its number, or its name where inference knows it. Text is built only after a failure.
struct PortPlace {
  const Op& op;
  const char* side;
  size_t number = 0;
  std::string_view name = {};

  std::string part() const { return name.empty() ? join(side, ' ', number) : join(side, ' ', name); }
  // `message` follows the port's name: "input 0" + " has rank 13".
  [[noreturn]] void fail(Status status, const std::string& message) const {
    throw Error(status, place_of(op, part()), part() + message);
  }
};

// ---- merging what two ports declare about one tensor

[[noreturn]] void fail_disagreement(const PortPlace& where, uint64_t id, const std::string& what, const std::string& given,
                                    const std::string& known) {
  where.fail(Status::invalid_graph,
             join(": tensor ", id, " has ", what, ' ', given, ", allowed is ", known, ", as at another port"));
}

// Merges what two ports declare about one tensor. If shapes or strides disagree and `lenient` is set, `preferred` wins.
struct Merge {
  const PortPlace& where;
  bool lenient;
  std::string warning = {};

  LogicalTensor operator()(const LogicalTensor& preferred, const LogicalTensor& other) {
    LogicalTensor merged = preferred;
    merge_type(merged, other);
    merge_property(merged, other);
    if (merge_shape(merged, other)) merge_layout(merged, other);
    drop_strides_of_another_rank(merged, other);
    return merged;
  }

 private:
  void merge_type(LogicalTensor& merged, const LogicalTensor& other) const {
    if (merged.dtype == DataType::undef) merged.dtype = other.dtype;
    if (other.dtype != DataType::undef && other.dtype != merged.dtype)
      fail_disagreement(where, other.id, "type", std::string(name_of(other.dtype)), std::string(name_of(merged.dtype)));
  }

  void merge_property(LogicalTensor& merged, const LogicalTensor& other) const {
    if (merged.property == PropertyType::undef) merged.property = other.property;
    if (other.property != PropertyType::undef && other.property != merged.property)
      fail_disagreement(where, other.id, "property", name_of(other.property), name_of(merged.property));
  }

  bool merge_shape(LogicalTensor& merged, const LogicalTensor& other) {
    if (!other.shape) return true;
    if (!merged.shape) {
      merged.shape = other.shape;
      return true;
    }
    if (dims_agree(*merged.shape, *other.shape)) {
      merged.shape = joined_dims(*merged.shape, *other.shape);
      return true;
    }
    return disagree(merged, other, "shape", describe(*other.shape), describe(*merged.shape));
  }

  void merge_layout(LogicalTensor& merged, const LogicalTensor& other) {
    const bool vague = merged.layout == LayoutType::undef || merged.layout == LayoutType::any;
    const bool other_vague = other.layout == LayoutType::undef || other.layout == LayoutType::any;
    if (vague) {
      if (!other_vague || merged.layout == LayoutType::undef) merged.layout = other.layout;
      if (!other_vague) merged.strides = other.strides;
      return;
    }
    if (other_vague) return;
    if (merged.layout != other.layout) {
      disagree(merged, other, "layout", name_of(other.layout), name_of(merged.layout));
    } else if (merged.strides.empty()) {
      merged.strides = other.strides;
    } else if (!other.strides.empty() && !dims_agree(merged.strides, other.strides)) {
      disagree(merged, other, "strides", describe(other.strides), describe(merged.strides));
    } else if (!other.strides.empty()) {
      merged.strides = joined_dims(merged.strides, other.strides);
    }
  }

  // Fails, or drops the strides, if one port declares the shape and the other declares strides of another rank.
  void drop_strides_of_another_rank(LogicalTensor& merged, const LogicalTensor& other) {
    if (!merged.shape || merged.strides.empty() || merged.strides.size() == merged.shape->size()) return;
    disagree(merged, other, "strides", describe(merged.strides), join("shape ", describe(*merged.shape)));
    merged.strides.clear();
    merged.layout = LayoutType::undef;
  }

  bool disagree(const LogicalTensor& merged, const LogicalTensor& other, const std::string& what, const std::string& given,
                const std::string& known) {
    if (!lenient) fail_disagreement(where, other.id, what, given, known);
    warning = join(describe(where.op), ": ", where.part(), ": tensor ", merged.id, " has ", what, ' ', given,
                   " at its consumer and ", known, " at its producer; lamina uses the latter");
    return false;
  }
};

// Applies to tensors without elements too: other code multiplies parts of their shape.
bool counts_elements(const Dims& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims)
    if (__builtin_mul_overflow(count, std::max<int64_t>(dim, 1), &count)) return false;
  return true;
}

void check_dims(const LogicalTensor& tensor, const PortPlace& where) {
  if (tensor.rank() > kMaxRank)
    where.fail(Status::invalid_shape, join(" has rank ", tensor.rank(), ", allowed is 0..", kMaxRank));
  for (int64_t dim : *tensor.shape)
    if (dim < 0 && dim != kUnknownDim)
      where.fail(Status::invalid_shape, join(" has shape ", describe(*tensor.shape), ", allowed is no negative extent"));
  if (tensor.has_full_shape() && !counts_elements(*tensor.shape))
    where.fail(Status::invalid_shape, ": " + too_many_elements(*tensor.shape));
}

void check_strides(const LogicalTensor& tensor, const PortPlace& where) {
  for (int64_t stride : tensor.strides)
    if (stride < 0 && stride != kUnknownDim)
      where.fail(Status::invalid_shape, join(" has strides ", describe(tensor.strides), ", allowed is no negative stride"));
  if (!tensor.strides.empty() && tensor.shape && tensor.strides.size() != tensor.shape->size())
    where.fail(Status::invalid_shape,
               join(" has ", tensor.strides.size(), " strides, allowed is ", tensor.shape->size(), ", one per extent"));
  if (!tensor.has_full_shape() || !tensor.has_strides()) return;
  const int64_t span = tensor.span();
  if (is_data_type(tensor.dtype)) bytes_of(tensor.dtype, span);
}

// Rejects properties that no tensor may have, and drops strides that carry no information (the dumps' notation for unknown
// strides).
LogicalTensor checked_tensor(LogicalTensor tensor, const PortPlace& where) {
  const bool unknown_strides = std::find(tensor.strides.begin(), tensor.strides.end(), kUnknownDim) != tensor.strides.end();
  if (tensor.layout != LayoutType::strided || unknown_strides) tensor.strides.clear();
  if (tensor.shape) check_dims(tensor, where);
  check_strides(tensor, where);
  return tensor;
}

// ---- order

// Iterative depth-first walk over the producers of ops; keeps the given order where it is already topological.
class TopologicalOrder {
 public:
  TopologicalOrder(const std::vector<Op>& ops, const std::vector<Value>& values)
      : ops_(ops), values_(values), state_(ops.size(), State::untouched), next_input_(ops.size(), 0) {}

  std::vector<int> run() {
    order_.reserve(ops_.size());
    for (size_t op = 0; op < ops_.size(); ++op) visit(static_cast<int>(op));
    return std::move(order_);
  }

 private:
  enum class State { untouched, open, done };

  void visit(int root) {
    if (state(root) == State::done) return;
    push(root);
    while (!stack_.empty()) {
      const int op = stack_.back();
      const int producer = next_open_producer(op);
      if (producer >= 0) {
        if (state(producer) == State::open) fail_cycle(producer);
        push(producer);
        continue;
      }
      state(op) = State::done;
      order_.push_back(op);
      stack_.pop_back();
    }
  }

  int next_open_producer(int op) {
    const std::vector<ValueIndex>& inputs = ops_[static_cast<size_t>(op)].inputs;
    size_t& next = next_input_[static_cast<size_t>(op)];
    while (next < inputs.size()) {
      const ValueIndex value = inputs[next++];
      if (value == kNoValue) continue;
      const int producer = values_[static_cast<size_t>(value)].producer.op;
      if (producer >= 0 && state(producer) != State::done) return producer;
    }
    return -1;
  }

  [[noreturn]] void fail_cycle(int start) const {
    std::string path;
    auto at = std::find(stack_.begin(), stack_.end(), start);
    for (; at != stack_.end(); ++at) path = describe(ops_[static_cast<size_t>(*at)]) + " -> " + path;
    throw Error(Status::invalid_graph,
                join("the graph has a cycle: ", path, describe(ops_[static_cast<size_t>(stack_.back())])));
  }

  State& state(int op) { return state_[static_cast<size_t>(op)]; }
  void push(int op) {
    state(op) = State::open;
    stack_.push_back(op);
  }

  const std::vector<Op>& ops_;
  const std::vector<Value>& values_;
  std::vector<State> state_;
  std::vector<size_t> next_input_;
  std::vector<int> stack_;
  std::vector<int> order_;
};

// ---- inference

// The tensor with the shape inferred by its producer. A strided tensor without strides becomes dense.
LogicalTensor with_shape(const LogicalTensor& tensor, const Dims& shape) {
  LogicalTensor result = tensor;
  if (result.shape != shape) {
    if (!result.shape || !dims_agree(*result.shape, shape)) result.strides.clear();
    result.shape = shape;
  }
  return result.layout == LayoutType::strided ? made_dense(std::move(result)) : result;
}

bool all_ranks_known(const OpView& view) {
  for (size_t i = 0; i < view.input_count(); ++i)
    if (view.input_at(i) != nullptr && !view.input_at(i)->shape) return false;
  return true;
}

}  // namespace

ValueIndex Graph::intern(const LogicalTensor& tensor, bool is_output, const Op& op, size_t port) {
  const std::optional<ValueIndex> known = find_value(tensor.id);
  if (!known) {
    const auto index = static_cast<ValueIndex>(values_.size());
    values_.push_back({tensor, {}, {}});
    value_by_id_.emplace(tensor.id, index);
    return index;
  }
  Value& value = value_of(*known);
  const PortPlace where{op, is_output ? "output" : "input", port};
  Merge merge{where, is_output || value.producer.op >= 0};
  value.tensor = is_output ? merge(tensor, value.tensor) : merge(value.tensor, tensor);
  if (!merge.warning.empty()) warnings_.push_back(merge.warning);
  return *known;
}

namespace {

void round_numbers(Attributes& attributes, std::span<const LogicalTensor> inputs, std::span<const LogicalTensor> outputs) {
  const auto is_f64 = [](const LogicalTensor& tensor) { return tensor.dtype == DataType::f64; };
  const bool has_f64_tensor =
      std::any_of(inputs.begin(), inputs.end(), is_f64) || std::any_of(outputs.begin(), outputs.end(), is_f64);
  for (auto& [name, value] : attributes)
    if (const auto* wide = std::get_if<double>(&value)) value = number_attribute(*wide, has_f64_tensor);
}

}  // namespace

int Graph::add_op(uint64_t id, OpKind kind, std::string name, Attributes attributes, std::span<const LogicalTensor> inputs,
                  std::span<const LogicalTensor> outputs) {
  Op op{id, kind, std::move(name), std::move(attributes), {}, {}};
  if (op.name.empty()) op.name = join(name_of(kind), '_', id);
  if (finalized_) throw Error(Status::invalid_graph, place_of(op), "the graph is finalized, no op can be added");
  if (op_by_id_.contains(id))
    throw Error(Status::invalid_graph, place_of(op),
                join("op id ", id, " is used by ", describe(ops_[static_cast<size_t>(op_by_id_.at(id))])));
  fill_defaults(op);
  round_numbers(op.attributes, inputs, outputs);
  const int position = static_cast<int>(ops_.size());
  auto undo = remember(inputs, outputs);
  try {
    connect(op, position, inputs, outputs);
    check_op(OpView(*this, op));
    ops_.push_back(std::move(op));
    op_by_id_.emplace(id, position);
  } catch (...) {
    restore(std::move(undo));
    throw;
  }
  return position;
}

Graph::Undo Graph::remember(std::span<const LogicalTensor> inputs, std::span<const LogicalTensor> outputs) const {
  Undo undo{ops_.size(), values_.size(), warnings_.size(), {}};
  for (const auto& side : {inputs, outputs})
    for (const LogicalTensor& tensor : side)
      if (const auto found = find_value(tensor.id)) {
        const Value& known = value(*found);
        undo.touched.push_back({*found, known.tensor, known.producer, known.consumers.size()});
      }
  return undo;
}

// Allocates no memory: it runs after an allocation has failed, too.
void Graph::restore(Undo undo) noexcept {
  for (size_t i = undo.value_count; i < values_.size(); ++i) value_by_id_.erase(values_[i].tensor.id);
  values_.erase(values_.begin() + static_cast<std::ptrdiff_t>(undo.value_count), values_.end());
  warnings_.erase(warnings_.begin() + static_cast<std::ptrdiff_t>(undo.warning_count), warnings_.end());
  ops_.erase(ops_.begin() + static_cast<std::ptrdiff_t>(undo.op_count), ops_.end());
  for (Touched& before : undo.touched) {
    Value& touched = value_of(before.value);
    touched.tensor = std::move(before.tensor);
    touched.producer = before.producer;
    touched.consumers.erase(touched.consumers.begin() + static_cast<std::ptrdiff_t>(before.consumer_count),
                            touched.consumers.end());
  }
}

void Graph::connect(Op& op, int position, std::span<const LogicalTensor> inputs, std::span<const LogicalTensor> outputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_empty_port()) {
      op.inputs.push_back(kNoValue);
      continue;
    }
    op.inputs.push_back(intern(checked_tensor(inputs[i], {op, "input", i}), false, op, i));
    value_of(op.inputs.back()).consumers.push_back({position, static_cast<int>(i)});
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].is_empty_port()) {
      op.outputs.push_back(kNoValue);
      continue;
    }
    const PortPlace where{op, "output", i};
    op.outputs.push_back(intern(checked_tensor(outputs[i], where), true, op, i));
    Value& value = value_of(op.outputs.back());
    if (value.producer.op >= 0) {
      const bool same_op = value.producer.op == position;
      const std::string other = same_op ? "another port of it" : describe(ops_[static_cast<size_t>(value.producer.op)]);
      where.fail(Status::invalid_graph, join(": tensor ", outputs[i].id, " is already produced by ", other));
    }
    if (value.constant)
      where.fail(Status::invalid_graph,
                 join(": tensor ", outputs[i].id, " is a constant with a known value, allowed is a tensor without one"));
    value.producer = {position, static_cast<int>(i)};
  }
}

void Graph::set_constant(uint64_t tensor_id, double value) {
  const std::string where = join("constant tensor ", tensor_id);
  const auto found = find_value(tensor_id);
  if (finalized_) throw Error(Status::invalid_graph, where + ": the graph is finalized, no value can be given");
  if (!found) throw Error(Status::invalid_graph, where + " is read by no op, allowed is an input of an op that was added");
  Value& known = value_of(*found);
  LogicalTensor& tensor = known.tensor;
  if (known.producer.op >= 0)
    throw Error(Status::invalid_graph, join(where, " is produced by ", describe(ops_[static_cast<size_t>(known.producer.op)]),
                                            ", allowed is a tensor that no op produces"));
  if (tensor.property == PropertyType::variable)
    throw Error(Status::invalid_graph, where + " has property variable, allowed is constant, host_scalar or undef");
  if (tensor.dtype == DataType::undef)
    throw Error(Status::invalid_data_type, where + " has type undef, allowed is a known type");
  const double rounded = round_to(tensor.dtype, value);
  const bool same = known.constant == rounded || (known.constant && std::isnan(*known.constant) && std::isnan(rounded));
  if (known.constant && !same)
    throw Error(Status::invalid_graph, join(where, " is given the value ", value, ", allowed is ", *known.constant,
                                            ", its earlier value; another value needs another id"));
  if (tensor.property == PropertyType::undef) tensor.property = PropertyType::constant;
  known.constant = rounded;
}

// Works on a copy, so that a graph that cannot be finalized stays unchanged.
void Graph::finalize() {
  if (finalized_) return;
  Graph made = *this;
  made.order_ops();
  made.infer_shapes();
  made.finalized_ = true;
  *this = std::move(made);
}

void Graph::order_ops() {
  const std::vector<int> order = TopologicalOrder(ops_, values_).run();
  std::vector<int> position(order.size());
  std::vector<Op> sorted;
  sorted.reserve(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    position[static_cast<size_t>(order[i])] = static_cast<int>(i);
    sorted.push_back(std::move(ops_[static_cast<size_t>(order[i])]));
  }
  ops_ = std::move(sorted);
  for (auto& [id, op] : op_by_id_) op = position[static_cast<size_t>(op)];
  for (Value& value : values_) {
    if (value.producer.op >= 0) value.producer.op = position[static_cast<size_t>(value.producer.op)];
    for (Port& consumer : value.consumers) consumer.op = position[static_cast<size_t>(consumer.op)];
    std::sort(value.consumers.begin(), value.consumers.end(),
              [](const Port& a, const Port& b) { return std::pair(a.op, a.port) < std::pair(b.op, b.port); });
  }
}

std::optional<ValueIndex> Graph::find_value(uint64_t tensor_id) const {
  const auto found = value_by_id_.find(tensor_id);
  return found == value_by_id_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<ValueIndex> Graph::inputs() const {
  std::vector<ValueIndex> found;
  std::vector<bool> seen(values_.size(), false);
  for (const Op& op : ops_)
    for (ValueIndex index : op.inputs) {
      if (index == kNoValue || value(index).producer.op >= 0 || seen[static_cast<size_t>(index)]) continue;
      seen[static_cast<size_t>(index)] = true;
      found.push_back(index);
    }
  return found;
}

std::vector<ValueIndex> Graph::outputs() const {
  std::vector<ValueIndex> found;
  std::vector<bool> seen(values_.size(), false);
  const auto take = [&](ValueIndex index) {
    if (seen[static_cast<size_t>(index)]) return;
    seen[static_cast<size_t>(index)] = true;
    found.push_back(index);
  };
  for (const Op& op : ops_) {
    if (is_marker(op) && op.inputs.front() != kNoValue) take(op.inputs.front());
    for (ValueIndex index : op.outputs)
      if (index != kNoValue && value(index).consumers.empty()) take(index);
  }
  return found;
}

const LogicalTensor* Graph::input(const Op& op, std::string_view port) const {
  const ValueIndex index = input_value(op, port);
  return index == kNoValue ? nullptr : &tensor(index);
}

const LogicalTensor* Graph::output(const Op& op, std::string_view port) const {
  const ValueIndex index = output_value(op, port);
  return index == kNoValue ? nullptr : &tensor(index);
}

ValueIndex Graph::input_value(const Op& op, std::string_view port) const {
  const size_t position = port_position(schema_of(op.kind).inputs, op.attributes, port);
  return position < op.inputs.size() ? op.inputs[position] : kNoValue;
}

ValueIndex Graph::output_value(const Op& op, std::string_view port) const {
  const size_t position = port_position(schema_of(op.kind).outputs, op.attributes, port);
  return position < op.outputs.size() ? op.outputs[position] : kNoValue;
}

bool Graph::is_graph_output(const Value& value) const {
  if (value.consumers.empty()) return true;
  return std::any_of(value.consumers.begin(), value.consumers.end(),
                     [&](const Port& port) { return is_marker(ops_[static_cast<size_t>(port.op)]); });
}

void Graph::take_inferred_shape(const Op& op, const std::string& port, ValueIndex index, const Dims& shape, bool forget_inner) {
  Value& value = value_of(index);
  const PortPlace where{.op = op, .side = "output", .name = port};
  const bool has_negative = std::any_of(shape.begin(), shape.end(), [](int64_t dim) { return dim < 0; });
  if (shape.size() > static_cast<size_t>(kMaxRank) || has_negative || !counts_elements(shape)) {
    LogicalTensor described = value.tensor;
    described.shape = shape;
    check_dims(described, where);
  }
  const bool known = value.tensor.shape.has_value() && !forget_inner;
  if (!known || dims_agree(*value.tensor.shape, shape)) {
    value.tensor = with_shape(value.tensor, known ? joined_dims(shape, *value.tensor.shape) : shape);
    return;
  }
  if (is_graph_output(value))
    where.fail(Status::invalid_shape,
               join(" is given shape ", describe(*value.tensor.shape), ", allowed is ", describe(shape)));
  warnings_.push_back(join(describe(op), ": ", where.part(), " is given shape ", describe(*value.tensor.shape),
                           "; lamina uses the inferred shape ", describe(shape)));
  value.tensor = with_shape(value.tensor, shape);
}

void Graph::infer_shapes(bool forget_inner) {
  for (const Op& op : ops_) {
    const OpView view(*this, op);
    if (!all_ranks_known(view)) continue;
    if (view.schema().check) view.schema().check(view);
    if (!view.schema().infer_shapes) continue;
    for (const auto& [port, shape] : view.schema().infer_shapes(view)) {
      const size_t position = port_position(view.schema().outputs, op.attributes, port);
      if (position >= op.outputs.size() || op.outputs[position] == kNoValue) continue;
      take_inferred_shape(op, port, op.outputs[position], shape, forget_inner);
    }
  }
}

}  // namespace lamina
