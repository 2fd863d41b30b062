#include "op.h"

#include <graph/lamina.h>

#include <limits>
#include <memory>
#include <optional>

#include "boundary.h"
#include "vocabulary.h"

namespace onednn_graph {
namespace {

bool is_list(int name) {
  switch (name) {
#define LAMINA_ATTRIBUTE(name, value, type) \
  case value: return std::string(#type).ends_with("_list");
#include <graph/attribute_kinds.def>
    default: return false;
  }
}

// Sets one value, or `count` values for a list attribute.
template <typename T>
dnnl_status_t set_numbers(dnnl_graph_op_t op, int name, const T* values, size_t count) {
  if (any_null(op, values)) return dnnl_invalid_arguments;
  if (is_list(name))
    op->attributes[name] = std::vector<T>(values, values + count);
  else
    op->attributes[name] = *values;
  return dnnl_success;
}

// oneDNN accepts an epsilon of 0, lamina does not. The smallest normal number instead changes only a variance of 0.
float lamina_value(int name, float value) {
  return name == dnnl_graph_op_attr_epsilon && value == 0 ? std::numeric_limits<float>::min() : value;
}

struct AttributeSetter {
  lamina_graph_op_t op;
  lamina_graph_op_attr_t name;

  lamina_status_t operator()(float value) const { return lamina_graph_op_set_attr_f32(op, name, &value, 1); }
  lamina_status_t operator()(const std::vector<float>& values) const {
    return lamina_graph_op_set_attr_f32(op, name, values.data(), values.size());
  }
  lamina_status_t operator()(int64_t value) const { return lamina_graph_op_set_attr_s64(op, name, &value, 1); }
  lamina_status_t operator()(const std::vector<int64_t>& values) const {
    return lamina_graph_op_set_attr_s64(op, name, values.data(), values.size());
  }
  lamina_status_t operator()(bool value) const {
    const uint8_t byte = value ? 1 : 0;
    return lamina_graph_op_set_attr_bool(op, name, &byte, 1);
  }
  lamina_status_t operator()(const std::string& value) const {
    return lamina_graph_op_set_attr_str(op, name, value.data(), value.size());
  }
};

bool set_attributes(lamina_graph_op_t ours, const dnnl_graph_op& op) {
  for (const auto& [name, value] : op.attributes) {
    const std::optional<lamina_graph_op_attr_t> known = lamina_attribute(name);
    if (!known) return false;
    const AttributeSetter setter{ours, *known};
    const float* const number = std::get_if<float>(&value);
    const lamina_status_t status = number != nullptr ? setter(lamina_value(name, *number)) : std::visit(setter, value);
    if (status != lamina_success) return false;
  }
  return true;
}

lamina_graph_logical_tensor_t told(const dnnl_graph_logical_tensor_t& tensor, bool with_shape) {
  lamina_graph_logical_tensor_t result = lamina_tensor(tensor);
  if (!with_shape) {
    result.ndims = LAMINA_GRAPH_UNKNOWN_NDIMS;
    result.layout_type = lamina_graph_layout_type_undef;
  }
  return result;
}

}  // namespace

LaminaOp lamina_op(const dnnl_graph_op& op, Shapes shapes) {
  const std::optional<lamina_graph_op_kind_t> kind = lamina_kind(op.kind);
  lamina_graph_op_t made = nullptr;
  if (lamina_graph_op_create(&made, op.id, kind.value_or(lamina_graph_op_Wildcard), op.name.c_str()) != lamina_success)
    return nullptr;
  LaminaOp owned(made);
  if (kind && !set_attributes(made, op)) return nullptr;
  for (const dnnl_graph_logical_tensor_t& input : op.inputs) {
    const auto tensor = told(input, shapes != Shapes::unknown);
    if (lamina_graph_op_add_input(made, &tensor) != lamina_success) return nullptr;
  }
  for (const dnnl_graph_logical_tensor_t& output : op.outputs) {
    const auto tensor = told(output, shapes == Shapes::as_given);
    if (lamina_graph_op_add_output(made, &tensor) != lamina_success) return nullptr;
  }
  return owned;
}

}  // namespace onednn_graph

using namespace onednn_graph;

extern "C" {

dnnl_status_t dnnl_graph_op_create(dnnl_graph_op_t* op, size_t id, dnnl_graph_op_kind_t kind, const char* verbose_name) {
  return guarded([&] {
    if (any_null(op, verbose_name)) return dnnl_invalid_arguments;
    auto made = std::make_unique<dnnl_graph_op>();
    made->id = id;
    made->kind = number_of(kind);
    made->name = verbose_name;
    *op = made.release();
    return dnnl_success;
  });
}

dnnl_status_t dnnl_graph_op_destroy(dnnl_graph_op_t op) {
  delete op;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_op_add_input(dnnl_graph_op_t op, const dnnl_graph_logical_tensor_t* input) {
  return guarded([&] {
    if (any_null(op, input)) return dnnl_invalid_arguments;
    op->inputs.push_back(*input);
    return dnnl_success;
  });
}

dnnl_status_t dnnl_graph_op_add_output(dnnl_graph_op_t op, const dnnl_graph_logical_tensor_t* output) {
  return guarded([&] {
    if (any_null(op, output)) return dnnl_invalid_arguments;
    op->outputs.push_back(*output);
    return dnnl_success;
  });
}

dnnl_status_t dnnl_graph_op_set_attr_f32(dnnl_graph_op_t op, dnnl_graph_op_attr_t name, const float* value, size_t value_len) {
  return guarded([&] { return set_numbers(op, number_of(name), value, value_len); });
}

dnnl_status_t dnnl_graph_op_set_attr_s64(dnnl_graph_op_t op, dnnl_graph_op_attr_t name, const int64_t* value,
                                         size_t value_len) {
  return guarded([&] { return set_numbers(op, number_of(name), value, value_len); });
}

dnnl_status_t dnnl_graph_op_set_attr_bool(dnnl_graph_op_t op, dnnl_graph_op_attr_t name, const uint8_t* value,
                                          size_t value_len) {
  return guarded([&] {
    if (any_null(op, value) || value_len == 0) return dnnl_invalid_arguments;
    op->attributes[number_of(name)] = *value != 0;
    return dnnl_success;
  });
}

// Reads up to the null byte: oneDNN's own header and tests pass inconsistent lengths.
dnnl_status_t dnnl_graph_op_set_attr_str(dnnl_graph_op_t op, dnnl_graph_op_attr_t name, const char* value, size_t) {
  return guarded([&] {
    if (any_null(op, value)) return dnnl_invalid_arguments;
    op->attributes[number_of(name)] = std::string(value);
    return dnnl_success;
  });
}

dnnl_status_t dnnl_graph_op_get_id(const_dnnl_graph_op_t op, size_t* id) {
  if (any_null(op, id)) return dnnl_invalid_arguments;
  *id = op->id;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_op_get_kind(const_dnnl_graph_op_t op, dnnl_graph_op_kind_t* kind) {
  if (any_null(op, kind)) return dnnl_invalid_arguments;
  set_number(*kind, op->kind);
  return dnnl_success;
}

}  // extern "C"
