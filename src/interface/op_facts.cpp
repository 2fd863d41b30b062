// Queries of a schema by passes and tools: facts that follow from its declarations.
#include "interface/op_schema.h"
#include "interface/status.h"

namespace lamina {
namespace {

constexpr double kOneRounding = 1.2e-7;  // one rounding to f32 (at most 2^-24), with a margin
constexpr double kReduction = 1e-6;      // for rows of a few thousand elements, summed in blocks

DomainRule fixed(Domain domain) {
  return {describe(domain), [domain](const OpView&, const LogicalTensor&) { return domain; }};
}

}  // namespace

bool is_parameter(PortRole role) { return role != PortRole::data && role != PortRole::weights && role != PortRole::normalized; }

std::string describe(const Domain& domain) {
  const std::string range = domain.low == domain.high ? join(domain.low) : join(domain.low, " to ", domain.high);
  switch (domain.form) {
    case Domain::Form::interval: return range;
    case Domain::Form::off_zero: return "magnitudes " + range;
    case Domain::Form::rectified: return range + ", 0 in place of negative numbers";
    case Domain::Form::clamped: return range + ", many at either bound";
    case Domain::Form::softmax: return "a softmax along axis";
    case Domain::Form::log_softmax: return "a log-softmax along axis";
  }
  return range;
}

// The data have a nonzero mean, so that a wrong order of subtracting and scaling changes the result.
const DomainRule* domain_of(const PortSpec& port) {
  static const DomainRule of_normalized = fixed({.low = -1, .high = 3});
  static const DomainRule of_gamma = fixed({.low = 0.5, .high = 1.5});
  static const DomainRule of_beta = fixed({.low = -0.5, .high = 0.5});
  if (port.domain) return &*port.domain;
  switch (port.role) {
    case PortRole::normalized: return &of_normalized;
    case PortRole::gamma: return &of_gamma;
    case PortRole::beta: return &of_beta;
    default: return nullptr;
  }
}

double error_of(const OpSchema& schema) {
  if (schema.error) return *schema.error;
  if (schema.traits.copies) return 0;
  return schema.op_class == OpClass::inner_reduction ? kReduction : kOneRounding;
}

size_t port_with_role(const std::vector<PortSpec>& ports, const Attributes& attributes, PortRole role) {
  for (const PortSpec& port : ports)
    if (port.role == role && (!port.exists_when || port.exists_when->holds(attributes)))
      return port_position(ports, attributes, port.name);
  return SIZE_MAX;
}

bool has_channels_last(const Op& op) {
  return !op.has_attribute("data_format") || op.attribute<std::string>("data_format") != "NCX";
}

bool has_constant_scales(OpKind kind) {
  const OpSchema& schema = schema_of(kind);
  return schema.find_attribute("qtype") != nullptr && schema.find_attribute("scales") != nullptr;
}

bool is_marker(const Op& op) { return schema_of(op.kind).op_class == OpClass::marker; }

}  // namespace lamina
