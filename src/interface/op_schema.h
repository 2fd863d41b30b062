// A schema is the single declaration of an operation, used for checking, shape inference, JSON, `lamina ops`, the docs and
// the generated tests. Schemas are values in interface/ops/*.cpp, one LAMINA_SCHEMA(Kind) each; the registry is generated
// from op_kinds.def, so a kind without a schema does not link.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "interface/data_type.h"
#include "interface/graph.h"
#include "interface/logical_tensor.h"
#include "interface/op.h"

namespace lamina {

class OpView;

// How fusion sees an op (passes/fusion/fuse.h).
enum class OpClass {
  elementwise,      // dst[i] depends only on src[i] (and broadcast operands)
  inner_reduction,  // normalises or reduces some axes: norms, softmax, reductions
  layout,           // moves values: reshape, transpose, reorder
  library,          // an op over whole tensors: MatMul, Convolution, ... A primitive library runs those without a loop nest
  marker,           // computes nothing: End
  opaque,           // Wildcard
};
std::string_view name_of(OpClass op_class);

// How the op iterates over its tensors. passes/fusion/iteration_view.h turns it into a loop nest without looking at the kind.
enum class LoopNest {
  by_class,       // elementwise for ops of class elementwise, no loop nest for others
  elementwise,    // operands broadcast to the output by NumPy's rule
  per_channel,    // inputs after the first are tables along the channels, or broadcast
  slope,          // PReLUBackward: as per_channel; the last output sums over all elements that share an entry of input 1
  scales,         // run-time scales: per tensor, along `axis`, or by groups
  transposed,     // by `order`
  reshaped,       // the row-major order is kept
  concatenated,   // inputs are concatenated along `axis`
  reinterpreted,  // the bits of the input are elements of another type
  repeated,       // the input is broadcast to `shape`
  sliced,         // a part of the input, by `starts`, `ends`, `axes` and `steps`
  gathered,       // entries of input 0 along `axis`, whose numbers input 1 holds
  scattered,      // sums of the entries of input 0 that have the same index in input 1
  windows,        // along the spatial axes, a result is made of some positions of the input (interface/windows.h)
  trailing_axes,  // rows are the axes from begin_norm_axis on; gamma and beta run along them, mean and variance across them
  group_rows,     // a row is one sample's group of channels with all spatial positions; mean and variance are [N, groups]
  channel_rows,   // a row is all elements of one channel; one-dimensional tensors run along the channels
  axis_rows,      // rows run along `axis`; outputs after the first have one value per row
  listed_axes,    // rows are the axes that `axes` lists
};

// A named, printable condition on the attributes: {"use_affine is true", predicate}.
struct Condition {
  std::string text;
  std::function<bool(const Attributes&)> holds;
  std::string opposite = {};  // the negation as one phrase, if there is one: "use_affine is false"
};

// The role of a port, for passes and tools that treat some ports differently from the data.
enum class PortRole {
  data,
  weights,          // of a convolution: what multiplies the images, or its gradient
  normalized,       // of a norm: the data whose statistics are computed
  gamma,            // of a norm: scale along the normalised axes, or the channels
  beta,             // of a norm: shift, with gamma's shape
  affine_gradient,  // of gamma or beta: a sum over all elements that share an entry
  mean,             // of a norm: one value per row, or per channel
  variance,         // as mean; or the statistic that attribute stats_kind selects
  statistic,        // another value per row
  parameter,        // a value that does not depend on the data
};
// Whether the role's type is independent of the data's type: true for all roles except data,
// weights and normalized.
bool is_parameter(PortRole role);

// The range of values intended for an input.
struct Domain {
  enum class Form {
    interval,     // from low to high
    off_zero,     // magnitudes from low to high, of either sign
    rectified,    // from low to high, negatives then set to 0, as ReLU's output
    clamped,      // from low to high, with many values at both bounds, as Clamp's output
    softmax,      // positive, with sum 1 along attribute `axis`
    log_softmax,  // the logarithms of such values
  };
  Form form = Form::interval;
  double low = -1;
  double high = 1;
  // Outside the domain the op has no result, or a meaningless one. If false, the domain is only where the op's behaviour is
  // visible.
  bool required = false;
};

std::string describe(const Domain& domain);  // "0.25 to 4", "magnitudes 0.5 to 2"

// A domain in words, and as values for a given op and tensor; nullopt if any values will do. The tensor is the input itself,
// or a tensor from which ops that only move values produce it.
struct DomainRule {
  std::string text;
  std::function<std::optional<Domain>(const OpView& view, const LogicalTensor& tensor)> domain;
};

// Properties of an op that do not depend on its attributes, used by passes and tools.
struct OpTraits {
  bool commutative = false;  // its two inputs may be exchanged
  bool reduces = false;      // one or several plain sums, products or extrema per row; norms do more
  bool sums = false;         // dst is a sum or mean of src, whose terms may cancel
  bool only_sums = false;    // dst is the sum of src over some axes, and nothing more
  bool squares = false;      // sums squares of the normalized input, or of the first one, in the type that is computed in
  bool contracts = false;    // sums of products of the first two inputs
  bool copies = false;       // elements of dst are those of src, possibly in another position, type or layout
  bool converts = false;     // only copies to another type
  bool jumps = false;        // a small change of an input may change the result a lot: a step, a pole, a power
  bool shape_only = false;   // reads only the shapes of its inputs, no value
  bool positional = false;   // an element's result depends on its position: a random number
};

enum class Presence {
  required,  // must be given
  optional,  // may be omitted
  variadic,  // the last port, one or more tensors (zero or more for Wildcard)
};

// A port of the op. A port whose condition does not hold does not exist for that op, and later ports take lower numbers.
struct PortSpec {
  std::string name;
  std::string type;  // name of a type variable of the schema, or "any"
  Presence presence = Presence::required;
  std::optional<Condition> exists_when = std::nullopt;    // absent: exists always
  std::optional<Condition> required_when = std::nullopt;  // an optional port that must be given when this holds
  std::string meaning = {};                               // shape and role, one phrase: "gamma, shape of the normalised axes"
  PortRole role = PortRole::data;
  std::optional<DomainRule> domain = std::nullopt;  // for inputs; absent: the domain of its role
};

struct AttributeSpec {
  std::string name;
  AttributeType type;
  std::optional<Attribute> default_value = std::nullopt;  // absent: required, or optional without default
  bool required = false;
  std::vector<std::string> allowed = {};  // for strings; empty: any
  // Returns "" for a legal value, else what is allowed ("a positive finite number"). Axis ranges are checked later, where the
  // rank is known.
  std::function<std::string(const Attribute&)> check = nullptr;
  std::string meaning = {};
  std::optional<Attribute> example = std::nullopt;  // of a required attribute: its value in the op's example
};

// A small op of the kind: the example of its page, which tests run. What it leaves out: shape [2, 3] of a required input, the
// default of an attribute, or the AttributeSpec's own example.
struct OpExample {
  std::vector<Dims> inputs = {};  // of the ports that exist, in their order; optional ports are given as far as this goes
  Attributes attributes = {};
};

// The domain of an input: its own, else that of its role; nullptr if any values will do.
const DomainRule* domain_of(const PortSpec& port);

struct TypeVariable {
  std::string name;
  std::vector<DataType> allowed;
};

using ShapeMap = std::vector<std::pair<std::string, Dims>>;  // output port name -> shape

struct OpSchema {
  OpKind kind;
  OpClass op_class;
  LoopNest nest = LoopNest::by_class;
  std::string formula;      // one line, plain text: "dst = gamma * (src - mean) / sqrt(variance + epsilon) + beta"
  std::string source = {};  // the document or paper that defines the mathematics
  std::vector<PortSpec> inputs;
  std::vector<PortSpec> outputs;
  std::vector<AttributeSpec> attributes = {};
  std::vector<TypeVariable> types = {};
  // The relation between type variables: returns "" if it holds, else what is allowed ("bf16 statistics need bf16 src").
  std::function<std::string(const std::function<DataType(std::string_view)>& type_of)> check_types = nullptr;
  std::string type_rule_text = {};
  // Checks ports, attributes and (if known) shapes. Throws Error through OpView::fail.
  std::function<void(const OpView&)> check = nullptr;
  // Computes output shapes from input shapes and attributes; dims may be kUnknownDim. Called only when every given input has
  // a known rank. Null: the output shape must be given.
  std::function<ShapeMap(const OpView&)> infer_shapes = nullptr;
  std::vector<std::pair<std::string, std::string>> inplace = {};  // {input, output} that may share memory
  OpTraits traits = {};
  // The relative error that an implementation in f32 arithmetic may add before the last rounding. Absent: one rounding, or
  // the error of a reduction (error_of); ops that copy add none.
  std::optional<double> error = std::nullopt;
  OpExample example = {};

  const AttributeSpec* find_attribute(std::string_view name) const;
};

// An op with its tensors, accessed by its schema's names; the argument of `check` and `infer_shapes`.
class OpView {
 public:
  OpView(const Op& op, const OpSchema& schema, std::vector<const LogicalTensor*> inputs,
         std::vector<const LogicalTensor*> outputs);
  OpView(const Graph& graph, const Op& op);

  const Op& op() const { return op_; }
  const OpSchema& schema() const { return schema_; }
  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return outputs_.size(); }
  const LogicalTensor* input_at(size_t port) const { return inputs_[port]; }
  const LogicalTensor* output_at(size_t port) const { return outputs_[port]; }
  const LogicalTensor* input(std::string_view port) const;  // nullptr if omitted or not existing
  const LogicalTensor* output(std::string_view port) const;
  const Dims& shape(std::string_view input_port) const;  // requires a known rank
  template <typename T>
  const T& attribute(std::string_view name) const {
    return op_.attribute<T>(name);
  }
  double number(std::string_view name) const { return op_.number(name); }

  // Throw Error(invalid_graph_op / invalid_shape) with the op as its place and the sentence `KIND "name": <message>`; the
  // driver prefixes `FILE: op ID`. `part` is the port or attribute at fault ("attribute axis").
  [[noreturn]] void fail(const std::string& message, std::string part = {}) const;
  [[noreturn]] void fail_shape(const std::string& message) const;

 private:
  const Op& op_;
  const OpSchema& schema_;
  std::vector<const LogicalTensor*> inputs_;  // by existing port; nullptr: omitted
  std::vector<const LogicalTensor*> outputs_;
};

const OpSchema& schema_of(OpKind kind);

// The error that the schema allows, relative to the value or to the root mean square of its tensor, whichever is larger; if
// the schema declares none, the default of its class.
double error_of(const OpSchema& schema);
inline constexpr double kColumnSumError = 5e-6;  // additional error of the gradients of gamma and beta, which sum over all rows

// Magnitudes of elements whose squares an op with the trait `squares` sums along a row without overflow. The largest float is
// 3.4e38, and differences from a mean are up to twice the elements.
inline constexpr double kLargestSquared = 1e17;      // of f32 and bf16, in rows of up to kRowOfSquares elements
inline constexpr double kLargestSquaredF64 = 1e150;  // of f64
inline constexpr int64_t kRowOfSquares = 8192;

// The first port of that role that exists for these attributes; SIZE_MAX if there is none.
size_t port_with_role(const std::vector<PortSpec>& ports, const Attributes& attributes, PortRole role);

// Whether the channels are the last axis: true unless attribute data_format is NCX.
bool has_channels_last(const Op& op);

// True for Quantize and Dequantize, whose scales and zero points are attributes.
bool has_constant_scales(OpKind kind);

// True for ops that compute nothing: End.
bool is_marker(const Op& op);

// The ports that exist for these attributes, in order: the position in the result is the port number.
std::vector<const PortSpec*> existing_inputs(const OpSchema& schema, const Attributes& attributes);
std::vector<const PortSpec*> existing_outputs(const OpSchema& schema, const Attributes& attributes);

// The port number of `name` for these attributes; SIZE_MAX if the port does not exist for them.
size_t port_position(const std::vector<PortSpec>& ports, const Attributes& attributes, std::string_view name);

// Fills in defaults, then checks attributes, port counts, dtypes, and the schema's own conditions. Throws Error.
void fill_defaults(Op& op);
void check_op(const OpView& view);

// Wraps a negative axis and checks -rank..rank-1; throws through view with "attribute NAME is V, allowed is -r..r-1".
int normalized_axis(const OpView& view, std::string_view attribute, int rank);
int wrap_axis(int64_t axis, int rank);  // does not check the range

#define LAMINA_SCHEMA(Kind) ::lamina::OpSchema lamina::schemas::Kind()
namespace schemas {
#define LAMINA_OP(kind, value) OpSchema kind();
#include "graph/op_kinds.def"
}  // namespace schemas

}  // namespace lamina
