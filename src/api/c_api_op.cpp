#include <vector>

#include "api/boundary.h"
#include "api/convert.h"
#include "api/objects.h"

namespace lamina::api {
namespace {

[[noreturn]] void fail_attribute_type(const lamina_graph_op& op, const AttributeKind& kind, std::string_view given) {
  throw Error(Status::invalid_arguments, join(name_of(op.kind), " \"", op.name, "\": attribute ", kind.name, " is given as ",
                                              given, ", allowed is ", name_of(kind.type)));
}

// Sets a number or a list of numbers, depending on the attribute's type.
template <typename T>
void set_numbers(lamina_graph_op& op, lamina_graph_op_attr_t name, std::span<const T> values, AttributeType scalar,
                 AttributeType list) {
  const AttributeKind kind = checked(name);
  if (kind.type == list) {
    op.attributes[std::string(kind.name)] = std::vector<T>(values.begin(), values.end());
  } else if (kind.type == scalar && values.size() == 1) {
    op.attributes[std::string(kind.name)] = values[0];
  } else {
    fail_attribute_type(op, kind, values.size() == 1 ? name_of(scalar) : join(values.size(), " values of ", name_of(list)));
  }
}

}  // namespace
}  // namespace lamina::api

using namespace lamina::api;
using lamina::AttributeType;

extern "C" {

lamina_status_t lamina_graph_op_create(lamina_graph_op_t* op, size_t id, lamina_graph_op_kind_t kind,
                                       const char* verbose_name) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(op);
    auto created = std::make_unique<lamina_graph_op>();
    created->id = id;
    created->kind = checked(kind);
    created->name = verbose_name == nullptr ? "" : verbose_name;
    if (created->name.empty()) created->name = lamina::join(lamina::name_of(created->kind), "_", id);
    *op = created.release();
  });
}

lamina_status_t lamina_graph_op_destroy(lamina_graph_op_t op) {
  delete op;
  return lamina_success;
}

lamina_status_t lamina_graph_op_add_input(lamina_graph_op_t op, const lamina_graph_logical_tensor_t* input) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(op);
    LAMINA_REQUIRE(input);
    op->inputs.push_back(from_c(*input));
  });
}

lamina_status_t lamina_graph_op_add_output(lamina_graph_op_t op, const lamina_graph_logical_tensor_t* output) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(op);
    LAMINA_REQUIRE(output);
    op->outputs.push_back(from_c(*output));
  });
}

lamina_status_t lamina_graph_op_set_attr_f32(lamina_graph_op_t op, lamina_graph_op_attr_t name, const float* value,
                                             size_t value_len) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(op);
    if (value_len > 0) LAMINA_REQUIRE(value);
    set_numbers<float>(*op, name, {value, value_len}, AttributeType::f32, AttributeType::f32_list);
  });
}

lamina_status_t lamina_graph_op_set_attr_f64(lamina_graph_op_t op, lamina_graph_op_attr_t name, const double* value,
                                             size_t value_len) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(op);
    LAMINA_REQUIRE(value);
    const AttributeKind kind = checked(name);
    if (kind.type != AttributeType::f32 || value_len != 1) fail_attribute_type(*op, kind, "f64");
    op->attributes[std::string(kind.name)] = *value;
  });
}

lamina_status_t lamina_graph_op_set_attr_s64(lamina_graph_op_t op, lamina_graph_op_attr_t name, const int64_t* value,
                                             size_t value_len) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(op);
    if (value_len > 0) LAMINA_REQUIRE(value);
    set_numbers<int64_t>(*op, name, {value, value_len}, AttributeType::s64, AttributeType::s64_list);
  });
}

lamina_status_t lamina_graph_op_set_attr_bool(lamina_graph_op_t op, lamina_graph_op_attr_t name, const uint8_t* value,
                                              size_t value_len) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(op);
    LAMINA_REQUIRE(value);
    const AttributeKind kind = checked(name);
    if (kind.type != AttributeType::boolean || value_len != 1) fail_attribute_type(*op, kind, "bool");
    op->attributes[std::string(kind.name)] = *value != 0;
  });
}

lamina_status_t lamina_graph_op_set_attr_str(lamina_graph_op_t op, lamina_graph_op_attr_t name, const char* value,
                                             size_t value_len) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(op);
    LAMINA_REQUIRE(value);
    const AttributeKind kind = checked(name);
    if (kind.type != AttributeType::string) fail_attribute_type(*op, kind, "string");
    op->attributes[std::string(kind.name)] = std::string(value, value_len);
  });
}

lamina_status_t lamina_graph_op_get_id(const_lamina_graph_op_t op, size_t* id) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(op);
    LAMINA_REQUIRE(id);
    *id = op->id;
  });
}

lamina_status_t lamina_graph_op_get_kind(const_lamina_graph_op_t op, lamina_graph_op_kind_t* kind) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(op);
    LAMINA_REQUIRE(kind);
    *kind = static_cast<lamina_graph_op_kind_t>(op->kind);
  });
}

}  // extern "C"
