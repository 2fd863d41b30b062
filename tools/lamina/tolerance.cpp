#include "lamina/tolerance.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "interface/op_schema.h"
#include "interface/small_float.h"

namespace lamina::driver {
namespace {

constexpr double kOfF64 = 0x1p-28;  // factor on f32 errors for f64, in which both the kernel and the reference compute

// The number of products that are summed into an element of the output.
double contraction_length(const Graph& graph, const Op& op) {
  const auto count = [&](size_t input) {
    return input < op.inputs.size() && op.inputs[input] != kNoValue
               ? static_cast<double>(graph.tensor(op.inputs[input]).element_count())
               : 1.0;
  };
  if (op.has_attribute("transpose_a")) {  // a matrix product
    const Dims& src = *graph.tensor(op.inputs[0]).shape;
    const bool transposed = op.attribute<bool>("transpose_a") && src.size() > 1;
    return src.empty() ? 1 : static_cast<double>(src[src.size() - (transposed ? 2 : 1)]);
  }
  // Convolutions: at most the element count of the smaller operand.
  return std::max(1.0, std::min(count(0), count(1)));
}

// For data of both signs, accumulated rounding errors grow with the square root of the length.
double library_error(const Graph& graph, const Op& op) {
  const double strict = 1e-6 + 6e-7 * std::sqrt(contraction_length(graph, op));
  return graph.fpmath_mode == FpMathMode::strict ? strict : strict + 0x1p-8;
}

double op_error(const Graph& graph, const Op& op) {
  const OpSchema& schema = schema_of(op.kind);
  return schema.traits.contracts ? library_error(graph, op) : error_of(schema);
}

// Half a unit in the last place of a dtype, relative to the value.
double half_ulp(DataType type) {
  switch (type) {
    case DataType::f64: return 0x1p-53;
    case DataType::f32: return 0x1p-24;
    default: return kind_of(type) == TypeKind::small_float ? std::ldexp(1, -1 - small_float(type).mantissa_bits) : 0;
  }
}

// What rounding changes in subnormal numbers: half of the smallest, or all of them where f32's may be flushed.
double smallest_step(DataType type) {
  const bool is_small = kind_of(type) == TypeKind::small_float;
  if (type == DataType::f32 || (is_small && small_float(type).bias == small_float(DataType::bf16).bias)) return 0x1p-126;
  return is_small ? std::ldexp(0.5, small_float(type).smallest_exponent()) : 0;
}

bool reads_computed(const Graph& graph, const Op& op) {
  return std::any_of(op.inputs.begin(), op.inputs.end(),
                     [&](ValueIndex input) { return input != kNoValue && graph.value(input).producer.op >= 0; });
}

// Whether the op reads a computed value at a port whose domain is required, or reads one at all and jumps.
bool may_meet_pole(const Graph& graph, const Op& op) {
  const OpSchema& schema = schema_of(op.kind);
  if (schema.traits.jumps) return reads_computed(graph, op);
  const OpView view(graph, op);
  const std::vector<const PortSpec*> ports = existing_inputs(schema, op.attributes);
  for (size_t port = 0; port < op.inputs.size(); ++port) {
    const ValueIndex input = op.inputs[port];
    if (input == kNoValue || graph.value(input).producer.op < 0) continue;
    const DomainRule* const rule = domain_of(*ports[std::min(port, ports.size() - 1)]);
    const std::optional<Domain> domain = rule == nullptr ? std::nullopt : rule->domain(view, graph.tensor(input));
    if (domain && domain->required) return true;
  }
  return false;
}

// The ops that the output depends on.
std::vector<bool> ops_above(const Graph& graph, ValueIndex output) {
  std::vector<bool> above(graph.ops().size(), false);
  const int last = graph.value(output).producer.op;
  if (last < 0) return above;
  above[static_cast<size_t>(last)] = true;
  for (size_t i = static_cast<size_t>(last) + 1; i-- > 0;) {
    if (!above[i]) continue;
    for (const ValueIndex input : graph.ops()[i].inputs)
      if (input != kNoValue && graph.value(input).producer.op >= 0)
        above[static_cast<size_t>(graph.value(input).producer.op)] = true;
  }
  return above;
}

// Whether the op rounds only its result: it copies, compares or selects, or it computes with integers only. A result that other
// ops read must also be a number of its type, since a kernel does not round the values between ops.
bool is_exact(const Graph& graph, const Op& op, ValueIndex output) {
  const OpSchema& schema = schema_of(op.kind);
  if (schema.traits.copies) return true;
  const auto is_real = [&](ValueIndex value) { return value != kNoValue && is_floating(graph.tensor(value).dtype); };
  const bool reads_reals = std::any_of(op.inputs.begin(), op.inputs.end(), is_real);
  const bool makes_reals = std::any_of(op.outputs.begin(), op.outputs.end(), is_real);
  if (!reads_reals && !makes_reals && !schema.traits.jumps) return true;
  if (error_of(schema) > 0 || schema.traits.contracts) return false;
  return std::all_of(op.outputs.begin(), op.outputs.end(), [&](ValueIndex value) {
    return !is_real(value) || value == output || graph.tensor(value).dtype == DataType::f32 ||
           graph.tensor(value).dtype == DataType::f64;
  });
}

// The role of the port that produces a value; data for graph inputs.
PortRole role_of(const Graph& graph, ValueIndex output) {
  const Port& made = graph.value(output).producer;
  if (made.op < 0) return PortRole::data;
  const Op& op = graph.op(made.op);
  const auto ports = existing_outputs(schema_of(op.kind), op.attributes);
  return static_cast<size_t>(made.port) < ports.size() ? ports[static_cast<size_t>(made.port)]->role : PortRole::data;
}

// The value that the output is a mean or sum of; for the gradient of a normalised tensor, the incoming gradient, whose parts
// cancel. kNoValue for other outputs.
ValueIndex averaged_value(const Graph& graph, ValueIndex output) {
  const Port& made = graph.value(output).producer;
  if (made.op < 0) return kNoValue;
  const Op& op = graph.op(made.op);
  const OpSchema& schema = schema_of(op.kind);
  const PortRole role = role_of(graph, output);
  if (schema.traits.sums || role == PortRole::mean) return op.inputs.front();
  const size_t gradient = port_with_role(schema.inputs, op.attributes, PortRole::data);
  const bool is_of_rows = schema.op_class == OpClass::inner_reduction && schema.nest != LoopNest::slope;
  const bool has_two = op.inputs.size() > 1 && !is_parameter(schema.inputs[0].role) && !is_parameter(schema.inputs[1].role);
  return is_of_rows && has_two && gradient < op.inputs.size() && !is_parameter(role) ? op.inputs[gradient] : kNoValue;
}

// A product sums the rounding errors of many inner values in one element. Relative to the tensor's root mean square, the sum
// is typically as large as one of them, but the worst of millions of elements is several times larger. In addition, an
// exponential of scores multiplies the errors by the scores.
constexpr double kWorstOfMany = 6;

bool sums_products_of_inner_values(const Graph& graph, const std::vector<bool>& above) {
  for (size_t i = 0; i < above.size(); ++i) {
    const Op& op = graph.ops()[i];
    if (above[i] && schema_of(op.kind).traits.contracts && reads_computed(graph, op)) return true;
  }
  return false;
}

}  // namespace

Tolerance tolerance_of_step(const Graph& subgraph, const Op& op, ValueIndex value) {
  const DataType dtype = subgraph.tensor(value).dtype;
  return {.computed = op_error(subgraph, op) * (dtype == DataType::f64 ? kOfF64 : 1),
          .rounding = half_ulp(dtype),
          .smallest = smallest_step(dtype),
          .averaged = averaged_value(subgraph, value)};
}

Tolerance tolerance_of(const Graph& subgraph, ValueIndex output) {
  const DataType dtype = subgraph.tensor(output).dtype;
  Tolerance tolerance{.rounding = half_ulp(dtype),
                      .smallest = smallest_step(dtype),
                      .exact = true,
                      .copied = true,
                      .averaged = averaged_value(subgraph, output)};
  const std::vector<bool> above = ops_above(subgraph, output);
  const double spread = sums_products_of_inner_values(subgraph, above) ? kWorstOfMany : 1;
  for (size_t i = 0; i < above.size(); ++i) {
    if (!above[i]) continue;
    const Op& op = subgraph.ops()[i];
    tolerance.computed += op_error(subgraph, op);
    tolerance.copied = tolerance.copied && schema_of(op.kind).traits.copies;
    tolerance.exact = tolerance.exact && is_exact(subgraph, op, output);
    tolerance.may_meet_pole = tolerance.may_meet_pole || may_meet_pole(subgraph, op);
    const bool rounds_quotients = op.outputs.front() == output && !is_floating(dtype) && !has_constant_scales(op.kind);
    if (schema_of(op.kind).traits.jumps && (rounds_quotients || reads_computed(subgraph, op))) tolerance.may_jump = true;
    // The reference does not round inner values; a backend may round them when it stores them.
    for (const ValueIndex inner : op.outputs)
      if (inner != kNoValue && inner != output && !subgraph.value(inner).consumers.empty())
        tolerance.computed +=
            subgraph.tensor(inner).dtype == DataType::f32 ? 0 : spread * half_ulp(subgraph.tensor(inner).dtype);
  }
  if (role_of(subgraph, output) == PortRole::affine_gradient) tolerance.computed += kColumnSumError;
  if (dtype == DataType::f64) tolerance.computed *= kOfF64;
  tolerance.may_jump = tolerance.may_jump && !tolerance.exact;
  return tolerance;
}

}  // namespace lamina::driver
