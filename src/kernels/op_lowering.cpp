#include "kernels/op_lowering.h"

#include <algorithm>

#include "interface/op_schema.h"
#include "interface/status.h"

namespace lamina::kernel {

namespace {

int port_named(const std::vector<const PortSpec*>& ports, std::string_view name, const std::vector<ValueIndex>& values) {
  for (size_t i = 0; i < ports.size() && i < values.size(); ++i) {
    if (ports[i]->name == name) return values[i] == kNoValue ? -1 : static_cast<int>(i);
  }
  return -1;
}

}  // namespace

Dims strides_in_memory(const LogicalTensor& tensor) {
  return tensor.element_count() == 0 ? dense_strides(*tensor.shape) : tensor.strides;
}

int OpLowering::port_of_input(std::string_view name) const {
  return port_named(existing_inputs(schema_of(op_.kind), op_.attributes), name, op_.inputs);
}

int OpLowering::port_of_output(std::string_view name) const {
  return port_named(existing_outputs(schema_of(op_.kind), op_.attributes), name, op_.outputs);
}

bool OpLowering::wants(std::string_view output_port) const {
  const int port = port_of_output(output_port);
  return port >= 0 && wiring_.is_needed(port);
}

void OpLowering::out(int port, Value value) {
  const Type stored = compute_type(output_tensor(port).dtype);
  wiring_.write(port, k.cast(value, stored));
}

void OpLowering::out(std::string_view output_port, Value value) { out(port_of_output(output_port), value); }

void OpLowering::out_column(std::string_view output_port, Value value) {
  wiring_.write_column(port_of_output(output_port), value);
}

Value OpLowering::in_entries(int port, size_t axis, int indices) {
  const int64_t extent = (*input_tensor(port).shape)[axis];
  wiring_.check_indices(indices, extent, std::nullopt);
  const Value index = k.cast(wiring_.read(indices), Type::s64);
  const LogicalTensor& tensor = input_tensor(port);
  const int arg = input_arg(port, {strides_in_nest(port, strides_in_memory(tensor)), extent, strides_in_memory(tensor)[axis]});
  return k.load_entry(arg, k.select(less(index, 0), index + static_cast<double>(extent), index));
}

Value OpLowering::sum_by_index(int port, int indices, const IndexedAxis& at, std::optional<int64_t> ignored) {
  const LogicalTensor &src = input_tensor(port), &places = input_tensor(indices);
  const Dims strides = strides_in_memory(src);
  const auto first = strides.begin() + static_cast<int64_t>(at.axis);
  const IndexOrder order{Dims(first, first + static_cast<int64_t>(at.indices)), ignored};
  const int64_t extent = (*output_tensor(0).shape)[at.axis], count = places.element_count();
  int64_t entries = count == 0 ? 0 : 1;  // positions of elements; see IndexOrder
  for (size_t axis = 0; entries > 0 && axis < at.indices; ++axis) entries += ((*places.shape)[axis] - 1) * order.steps[axis];
  wiring_.check_indices(indices, extent, order);
  const Dims nowhere = strides_in_nest(indices, Dims(at.indices, 0));
  input_arg(indices, {.strides = nowhere});
  const int sorted = wiring_.sorted_arg({.strides = nowhere, .entries = sorted_size(places, extent), .entry_stride = 1});
  Dims along_axis(output_tensor(0).shape->size(), 0);
  along_axis[at.axis] = 1;
  const int begins = wiring_.sorted_arg({.strides = strides_of_output(0, along_axis), .entries = 2, .entry_stride = 1});
  const int elements = input_arg(port, {.strides = strides_in_nest(port, strides), .entries = entries, .entry_stride = 1});
  const Value begin = k.load_entry(begins, k.constant(0, Type::s64)), end = k.load_entry(begins, k.constant(1, Type::s64));
  const double average = static_cast<double>(count) / static_cast<double>(std::max<int64_t>(extent, 1));
  return k.sum_entries(elements, sorted, begin, end, average);
}

Value OpLowering::table(const std::string& name, const std::vector<float>& entries, int axis) {
  const DimMap map = wiring_.input_map(0);
  const int wrapped = wrap_axis(axis, static_cast<int>(map.size()));
  const DimMap along = {map[static_cast<size_t>(wrapped)]};
  Arg arg{.name = join(name, "_", op_.id),
          .dtype = DataType::f32,
          .strides = wiring_.iteration_strides(along, {1}),
          .table = entries};
  return k.cast(k.load(k.add_arg(std::move(arg))), wiring_.float_type);
}

Value OpLowering::index_along(int axis) {
  const DimMap map = wiring_.input_map(0);
  const int wrapped = wrap_axis(axis, static_cast<int>(map.size()));
  return k.index(wiring_.iteration_strides({map[static_cast<size_t>(wrapped)]}, {1}));
}

Value OpLowering::linear_index() { return index_by(dense_strides(*input_tensor(0).shape)); }

Value OpLowering::index_by(const Dims& steps) { return k.index(wiring_.iteration_strides(wiring_.input_map(0), steps)); }

}  // namespace lamina::kernel
