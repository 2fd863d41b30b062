#include "random/random_op.h"

#include <algorithm>
#include <numeric>

#include "interface/status.h"

namespace lamina::testing {

namespace {

bool has(const OpSchema& schema, std::string_view attribute) { return schema.find_attribute(attribute) != nullptr; }

bool is_channels_first(const Attributes& attributes) {
  const auto format = attributes.find("data_format");
  return format != attributes.end() && std::get<std::string>(format->second) == "NCX";
}

int64_t channels_of(const Attributes& attributes, const Dims& shape) {
  return shape.size() < 2 ? shape.back() : is_channels_first(attributes) ? shape[1] : shape.back();
}

int64_t integer(const Attributes& attributes, std::string_view name, int64_t otherwise) {
  const auto found = attributes.find(name);
  return found == attributes.end() ? otherwise : std::get<int64_t>(found->second);
}

bool truth(const Attributes& attributes, std::string_view name) {
  const auto found = attributes.find(name);
  return found != attributes.end() && std::get<bool>(found->second);
}

size_t wrapped(int64_t axis, size_t rank) { return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis); }

// ---- extents

// Remainders of vectors and blocks of 16, 32 and 64, and primes.
int64_t around_a_tail(Rng& rng) {
  static const std::vector<int64_t> extents = {1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 7, 13, 23, 29, 61, 100, 97, 257};
  return rng.pick(extents);
}

// ---- attributes

std::vector<int64_t> per_axis(size_t count, int64_t low, int64_t high, Rng& rng) {
  std::vector<int64_t> list(count);
  for (int64_t& entry : list) entry = rng.from(low, high);
  return list;
}

std::vector<int64_t> random_axes(size_t rank, Rng& rng) {
  std::vector<int64_t> axes;
  for (size_t axis = 0; axis < rank; ++axis) {
    if (rng.one_in(2)) axes.push_back(static_cast<int64_t>(axis) - (rng.one_in(3) ? static_cast<int64_t>(rank) : 0));
  }
  rng.shuffle(axes);
  if (axes.empty()) axes.push_back(rng.below(static_cast<int64_t>(rank)));
  return axes;
}

// Returns a shape with the same number of elements: two neighbouring axes are merged, or one is split.
std::vector<int64_t> another_shape(const Dims& shape, Rng& rng) {
  Dims other = shape;
  const auto axis = static_cast<size_t>(rng.below(static_cast<int64_t>(shape.size())));
  if (axis + 1 < shape.size() && rng.one_in(2)) {
    other[axis] *= other[axis + 1];
    other.erase(other.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
    return other;
  }
  for (const int64_t part : {4, 2, 3, 5, 7, 1}) {
    if (other[axis] % part != 0) continue;
    other[axis] /= part;
    other.insert(other.begin() + static_cast<std::ptrdiff_t>(axis), part);
    break;
  }
  return other;
}

std::vector<int64_t> random_list(const OpSchema& schema, std::string_view name, const Dims& shape, Rng& rng) {
  const size_t rank = shape.size(), spatial = rank < 3 ? 1 : rank - 2;
  if (name == "axes") return random_axes(rank, rng);
  if (name == "shape") return another_shape(shape, rng);
  if (name == "order") {
    std::vector<int64_t> order(rank);
    std::iota(order.begin(), order.end(), 0);
    rng.shuffle(order);
    return order;
  }
  if (name == "sizes") return per_axis(spatial, 1, 9, rng);
  if (name == "strides") return per_axis(spatial, 1, 2, rng);
  if (name == "dilations") return per_axis(spatial, 1, rng.one_in(3) ? 2 : 1, rng);
  if (name == "kernel") return per_axis(spatial, 1, rng.one_in(4) ? 8 : 3, rng);
  if (name == "pads_begin" || name == "pads_end") return per_axis(spatial, 0, rng.one_in(4) ? 4 : 1, rng);
  if (name == "output_mask") return {rng.below(2), rng.below(2), 1};
  return std::get<std::vector<int64_t>>(schema.find_attribute(name)->default_value.value_or(std::vector<int64_t>{1}));
}

float random_number(const AttributeSpec& spec, Rng& rng) {
  for (int tries = 0; tries < 20; ++tries) {
    const float number = rng.pick({0.5F, 1.0F, 0.1F, 1e-5F, 1e-3F, 2.0F, -1.0F, 0.0F, 6.0F, 0.9F});
    if (!spec.check || spec.check(number).empty()) return number;
  }
  return 1.0F;
}

Attribute random_value(const OpSchema& schema, const AttributeSpec& spec, const Dims& shape, Rng& rng) {
  const auto rank = static_cast<int64_t>(shape.size());
  switch (spec.type) {
    case AttributeType::boolean: return rng.one_in(2);
    case AttributeType::s64:
      return spec.name == "groups" ? rng.pick({int64_t{1}, int64_t{2}, int64_t{4}}) : rng.from(-rank, rank - 1);
    case AttributeType::s64_list: return random_list(schema, spec.name, shape, rng);
    case AttributeType::f32: return random_number(spec, rng);
    case AttributeType::f64: return 0.5;
    case AttributeType::f32_list: return std::vector<float>{0.5F};
    case AttributeType::string: return spec.allowed.empty() ? std::string("x") : rng.pick(spec.allowed);
  }
  return true;
}

// Fixes attributes that depend on each other.
void make_agree(const OpSchema& schema, Attributes& attributes, const Dims& shape, Rng& rng) {
  if (has(schema, "min") && has(schema, "max")) {
    attributes["min"] = -0.5F;
    attributes["max"] = rng.pick({0.25F, 1.0F});
  }
  if (has(schema, "extent")) attributes["extent"] = rng.from(1, 9);
  if (has(schema, "k")) attributes["k"] = rng.from(0, shape[wrapped(integer(attributes, "axis", -1), shape.size())]);
  if (has(schema, "special_zero")) attributes["special_zero"] = false;
  attributes.erase("group_shape");
  if (has(schema, "group_shape") && std::get<std::string>(attributes["qtype"]) == "per_group")
    attributes["group_shape"] = random_groups(shape, rng);
  if (has(schema, "steps")) attributes.erase("steps");
  if (has(schema, "mode") && has(schema, "sizes")) {  // Interpolate
    attributes.erase("scales");
    attributes["sizes"] = random_list(schema, "sizes", shape, rng);
    if (std::get<std::string>(attributes["mode"]) != "nearest")
      attributes["mode"] = std::string(shape.size() == 3 ? "linear" : shape.size() == 4 ? "bilinear" : "trilinear");
  }
  if (has_constant_scales(schema.kind)) {
    const bool by_channel = std::get<std::string>(attributes["qtype"]) == "per_channel";
    const size_t axis = wrapped(integer(attributes, "axis", 1), shape.size());
    const auto count = static_cast<size_t>(by_channel && axis < shape.size() ? std::max<int64_t>(shape[axis], 1) : 1);
    std::vector<float> scales(count);
    for (float& scale : scales) scale = rng.pick({0.02F, 0.05F, 0.1F, 0.5F});
    attributes["scales"] = scales;
    attributes.erase("zps");  // 8-bit floats have no zero points
    if (rng.one_in(2)) attributes["zps"] = per_axis(count, 0, 0, rng);
  }
}

// ---- shapes of operands

Dims broadcast_to(const Dims& shape, Rng& rng) {
  Dims smaller(shape.begin() + rng.below(static_cast<int64_t>(shape.size())), shape.end());
  for (int64_t& extent : smaller) {
    if (rng.one_in(3)) extent = 1;
  }
  return smaller;
}

Dims counts_of_groups(const Dims& shape, const Dims& groups) {
  Dims counts = shape;
  for (size_t axis = 0; axis < shape.size(); ++axis) counts[axis] /= groups[axis];
  return counts;
}

Dims per_channel(const Attributes& attributes, const Dims& shape) { return {channels_of(attributes, shape)}; }

Dims beside_rows(const PortSpec& port, const Attributes& attributes, const Dims& shape, Rng& rng) {
  const auto begin = static_cast<std::ptrdiff_t>(wrapped(integer(attributes, "begin_norm_axis", -1), shape.size()));
  if (port.role == PortRole::gamma || port.role == PortRole::beta) return {shape.begin() + begin, shape.end()};
  if (!is_parameter(port.role)) return shape;
  Dims rows(shape.begin(), shape.begin() + begin);
  if (rng.one_in(4)) rows.resize(shape.size(), 1);
  return rows;
}

Dims of_product(const PortSpec& port, const Attributes& attributes, const Dims& shape, Rng& rng) {
  const bool transposes_src = truth(attributes, "transpose_a");
  const int64_t k = shape.size() < 2 || !transposes_src ? shape.back() : shape[shape.size() - 2];
  const int64_t n = rng.one_in(2) ? around_a_tail(rng) : rng.pick({int64_t{1}, int64_t{5}, int64_t{16}, int64_t{24}});
  if (port.name == "bias") return {1};
  Dims weights = truth(attributes, "transpose_b") ? Dims{n, k} : Dims{k, n};
  if (shape.size() > 2 && rng.one_in(2)) weights.insert(weights.begin(), shape.begin(), shape.end() - 2);
  return weights;
}

// Returns the shape of a convolution's weights; `shape` is that of src.
Dims filter_of(const Attributes& attributes, const Dims& shape, Rng& rng) {
  const int64_t groups = integer(attributes, "groups", 1), channels = channels_of(attributes, shape);
  const int64_t inputs = std::max<int64_t>(channels / groups, 1),
                outputs = groups * (rng.one_in(3) ? around_a_tail(rng) : rng.pick({int64_t{1}, int64_t{3}, int64_t{8}}));
  const Dims kernel = per_axis(shape.size() - 2, 1, 3, rng);
  const auto format = attributes.find("weights_format");
  const std::string order = format == attributes.end() ? "XIO" : std::get<std::string>(format->second);
  Dims filter;
  for (const char axis : order) {
    if (axis == 'I') filter.push_back(inputs);
    if (axis == 'O') filter.push_back(outputs);
    if (axis == 'X') filter.insert(filter.end(), kernel.begin(), kernel.end());
  }
  return filter;
}

// Of a product of groups of rows, or of columns. The number of groups follows from the columns of src, so that both ports
// agree.
Dims of_groups(const PortSpec& port, const Attributes& attributes, const Dims& shape, Rng& rng) {
  const int64_t groups = 1 + shape[1] % 4, k = shape[truth(attributes, "transpose_a") ? 0 : 1];
  if (port.name == "offsets") return {groups};
  const int64_t n = rng.one_in(2) ? around_a_tail(rng) : rng.from(1, 9);
  Dims weights = truth(attributes, "transpose_b") ? Dims{n, k} : Dims{k, n};
  if (rng.one_in(2)) weights.insert(weights.begin(), groups);
  return weights;
}

Dims of_library(const OpSchema& schema, const PortSpec& port, const Attributes& attributes, const Dims& shape, Rng& rng) {
  if (schema.kind == OpKind::MatMul) return of_product(port, attributes, shape, rng);
  if (schema.kind == OpKind::GroupedMatMul) return of_groups(port, attributes, shape, rng);
  if (shape.size() < 3) return shape;
  if (port.name == "weights") return filter_of(attributes, shape, rng);
  if (port.name == "bias") return {1};
  return shape;
}

}  // namespace

Dims random_shape(const OpSchema& schema, Rng& rng) {
  const bool has_space = schema.op_class == OpClass::library && has(schema, "data_format");
  const bool has_channels = has_space || has(schema, "data_format");
  const int64_t rank = schema.kind == OpKind::GroupedMatMul ? 2
                       : has_space                          ? rng.from(3, 5)
                       : has_channels                       ? rng.from(2, 4)
                                                            : rng.from(1, 4);
  Dims shape;
  for (int64_t axis = 0; axis < rank; ++axis) {
    int64_t extent = rng.pick({int64_t{1}, int64_t{2}, int64_t{3}, int64_t{4}, int64_t{5}, int64_t{8}, int64_t{9}});
    const bool is_matrix_row = axis + 2 == rank, is_channel = has_channels && axis == 1;
    if ((axis + 1 == rank && rng.one_in(2)) || ((is_matrix_row || is_channel) && rng.one_in(4))) extent = around_a_tail(rng);
    if (rng.one_in(60)) extent = 0;
    shape.push_back(extent);
  }
  return shape;
}

Attributes random_attributes(const OpSchema& schema, const Dims& shape, Rng& rng) {
  Attributes attributes;
  for (const AttributeSpec& spec : schema.attributes) {
    const bool is_rare = !spec.required && spec.type == AttributeType::s64_list && spec.name != "axes";
    if (!spec.required && (is_rare || rng.one_in(2))) continue;
    attributes[spec.name] = random_value(schema, spec, shape, rng);
  }
  for (const AttributeSpec& spec : schema.attributes) {
    if (!attributes.contains(spec.name) && spec.default_value) attributes[spec.name] = *spec.default_value;
  }
  make_agree(schema, attributes, shape, rng);
  return attributes;
}

Dims operand_shape(const OpSchema& schema, const PortSpec& port, const Attributes& attributes, const Dims& shape, Rng& rng) {
  if (port.name == "seed" || port.name == "offset" || port.name == "probability") return {};
  switch (schema.nest) {
    case LoopNest::per_channel: return per_channel(attributes, shape);
    case LoopNest::slope: return port.name != "slope" ? shape : rng.one_in(2) ? per_channel(attributes, shape) : Dims{1};
    case LoopNest::scales: {
      const auto type = attributes.find("qtype");
      const auto groups = attributes.find("group_shape");
      if (groups != attributes.end()) return counts_of_groups(shape, std::get<std::vector<int64_t>>(groups->second));
      const bool by_channel = type != attributes.end() && std::get<std::string>(type->second) == "per_channel";
      return {by_channel ? shape[wrapped(integer(attributes, "axis", 1), shape.size()) % shape.size()] : 1};
    }
    case LoopNest::trailing_axes: return beside_rows(port, attributes, shape, rng);
    case LoopNest::group_rows:
      if (port.role == PortRole::gamma || port.role == PortRole::beta) return per_channel(attributes, shape);
      return is_parameter(port.role) ? Dims{shape.front(), integer(attributes, "groups", 1)} : shape;
    case LoopNest::channel_rows: return is_parameter(port.role) ? per_channel(attributes, shape) : shape;
    case LoopNest::concatenated: {
      Dims other = shape;
      other[wrapped(integer(attributes, "axis", 0), shape.size())] = rng.from(1, 5);
      return other;
    }
    default: break;
  }
  if (schema.op_class == OpClass::library) return of_library(schema, port, attributes, shape, rng);
  return rng.one_in(2) ? shape : broadcast_to(shape, rng);
}

std::vector<int64_t> random_groups(const Dims& shape, Rng& rng) {
  std::vector<int64_t> groups(shape.size(), 1);
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    std::vector<int64_t> divisors = {1, std::max<int64_t>(shape[axis], 1)};
    for (int64_t divisor = 2; divisor < shape[axis]; ++divisor) {
      if (shape[axis] % divisor == 0) divisors.push_back(divisor);
    }
    groups[axis] = rng.pick(divisors);
  }
  return groups;
}

std::vector<Types> type_combinations(const OpSchema& schema) {
  std::vector<Types> combinations = {{}};
  for (const TypeVariable& variable : schema.types) {
    std::vector<Types> longer;
    for (const Types& types : combinations) {
      for (const DataType dtype : variable.allowed) {
        longer.push_back(types);
        longer.back()[variable.name] = dtype;
      }
    }
    combinations = std::move(longer);
  }
  std::erase_if(combinations, [&](const Types& types) {
    const auto type_of = [&](std::string_view name) { return types.find(name)->second; };
    return schema.check_types && !schema.check_types(type_of).empty();
  });
  return combinations;
}

Types random_types(const OpSchema& schema, Rng& rng) {
  Types types;
  for (int tries = 0; tries < 30; ++tries) {
    for (const TypeVariable& variable : schema.types) types[variable.name] = rng.pick(variable.allowed);
    const auto type_of = [&](std::string_view name) { return types.find(name)->second; };
    if (!schema.check_types || schema.check_types(type_of).empty()) return types;
  }
  return {};
}

}  // namespace lamina::testing
