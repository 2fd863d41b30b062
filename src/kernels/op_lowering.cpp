#include "kernels/op_lowering.h"

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
  wiring_.check_indices(indices, extent);
  const Value index = k.cast(wiring_.read(indices), Type::s64);
  const LogicalTensor& tensor = input_tensor(port);
  const int arg = input_arg(port, {strides_in_nest(port, strides_in_memory(tensor)), extent, strides_in_memory(tensor)[axis]});
  return k.load_entry(arg, k.select(less(index, 0), index + static_cast<double>(extent), index));
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
