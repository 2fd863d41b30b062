// What a schema is: the one declaration of an operation that serves checking, shape inference, JSON, `lamina ops`, the docs
// and the generated tests. Schemas are values in interface/ops/*.cpp, one LAMINA_SCHEMA(Kind) each; the registry is generated
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
  elementwise,      // dst[i] depends on src[i] (and broadcast operands) only
  inner_reduction,  // normalises or reduces some axes: norms, softmax, reductions
  layout,           // moves values: reshape, transpose, reorder
  library,          // a heavy op over whole tensors, for a library of primitives: MatMul, Convolution, pooling, ...
  marker,           // computes nothing: End
  opaque,           // Wildcard
};
std::string_view name_of(OpClass op_class);

// How the op runs over its tensors. passes/fusion/iteration_view.h turns it into a loop nest and never asks for the kind.
enum class LoopNest {
  by_class,       // elementwise for ops of that class, none for the others
  elementwise,    // operands broadcast to the output by numpy's rule
  per_channel,    // inputs after the first are tables along the channels, or broadcast
  slope,          // PReLUBackward: as per_channel, the last output sums what shares an entry of input 1
  scales,         // run-time scales: per tensor, along `axis`, or by groups
  transposed,     // by `order`
  reshaped,       // row-major order kept
  concatenated,   // inputs one after the other along `axis`
  repeated,       // the input broadcast to `shape`
  sliced,         // a part of the input, as `starts`, `ends`, `axes` and `steps` say
  trailing_axes,  // rows are the axes from begin_norm_axis on; gamma and beta run along them, mean and variance across them
  group_rows,     // rows are a sample's group of channels and its space; mean and variance are [N, groups]
  channel_rows,   // rows are all that shares a channel; one-dimensional tensors run along the channels
  axis_rows,      // rows run along `axis`; outputs after the first are per row
  listed_axes,    // rows are the axes that `axes` lists
};

// A named, printable condition on the attributes: {"use_affine is true", predicate}.
struct Condition {
  std::string text;
  std::function<bool(const Attributes&)> holds;
  std::string opposite = {};  // what is so when it does not hold, where one phrase says it: "use_affine is false"
};

// What a port means to passes and tools that treat it otherwise than the data that flows through the graph.
enum class PortRole {
  data,
  normalized,       // of a norm: what its statistics are taken of
  gamma,            // of a norm: factors along the normalised axes, or the channels
  beta,             // of a norm: summands, as gamma
  affine_gradient,  // of gamma or beta: a sum over everything that shares an entry of them
  mean,             // of a norm: one per row, or channel
  variance,         // as mean; or what attribute stats_kind says
  statistic,        // another number per row
  parameter,        // a number that the data has no part in
};
// A parameter keeps its type, whatever type the data has: all roles but data and normalized.
bool is_parameter(PortRole role);

// The values that an input is meant to hold.
struct Domain {
  enum class Form {
    interval,     // from low to high
    off_zero,     // magnitudes from low to high, of either sign
    rectified,    // from low to high, then 0 for what is negative: what ReLU makes
    clamped,      // from low to high, many at either bound: what Clamp makes
    softmax,      // positive, with the sum 1 along attribute `axis`
    log_softmax,  // logarithms of such
  };
  Form form = Form::interval;
  double low = -1;
  double high = 1;
  // The op has no result elsewhere, or one without sense. Otherwise it is where the op shows what it does.
  bool required = false;
};

std::string describe(const Domain& domain);  // "0.25 to 4", "magnitudes 0.5 to 2"

// A domain in words, and what it is for a given op and tensor; nothing where any values will do. The tensor is the input, or
// what becomes it by ops that only move values.
struct DomainRule {
  std::string text;
  std::function<std::optional<Domain>(const OpView& view, const LogicalTensor& tensor)> domain;
};

// What is true of an op whatever its attributes, and asked for by passes and tools.
struct OpTraits {
  bool commutative = false;  // its two inputs may change places
  bool reduces = false;      // one plain sum, product or extremum per row, or several; norms do more
  bool sums = false;         // dst is a sum or mean of src, whose terms may cancel
  bool contracts = false;    // sums of products of the first two inputs
  bool copies = false;       // elements of dst are those of src, perhaps in another place, type or layout
  bool converts = false;     // copies to another type, which is all it does
  bool jumps = false;        // a small change of an input may change the result by much: a step, a pole, a power
  bool shape_only = false;   // of its inputs it takes the shapes, and no value
  bool positional = false;   // what an element becomes depends on where it lies: a random number
};

enum class Presence {
  required,  // always given
  optional,  // may be left out
  variadic,  // the last port: one or more times (zero or more for Wildcard)
};

// A port of the op. Ports whose condition does not hold do not exist for that op: later ports move up.
struct PortSpec {
  std::string name;
  std::string type;  // name of a type variable of the schema, or "any"
  Presence presence = Presence::required;
  std::optional<Condition> exists_when = std::nullopt;    // absent: always
  std::optional<Condition> required_when = std::nullopt;  // optional port that must be given when this holds
  std::string meaning = {};                               // shape and role, one phrase: "gamma, shape of the normalised axes"
  PortRole role = PortRole::data;
  std::optional<DomainRule> domain = std::nullopt;  // of an input; absent: that of its role
};

struct AttributeSpec {
  std::string name;
  AttributeType type;
  std::optional<Attribute> default_value = std::nullopt;  // absent: required, or optional without default
  bool required = false;
  std::vector<std::string> allowed = {};  // of a string; empty: any
  // Returns "" when legal, else what is allowed ("a positive finite number"). Axis ranges are checked where the rank is known.
  std::function<std::string(const Attribute&)> check = nullptr;
  std::string meaning = {};
};

// The domain of an input: its own, else that of its role; nullptr: any values will do.
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
  std::string source = {};  // document or paper that defines the mathematics
  std::vector<PortSpec> inputs;
  std::vector<PortSpec> outputs;
  std::vector<AttributeSpec> attributes = {};
  std::vector<TypeVariable> types = {};
  // Relation between type variables: returns "" or what is allowed ("bf16 statistics need bf16 src").
  std::function<std::string(const std::function<DataType(std::string_view)>& type_of)> check_types = nullptr;
  std::string type_rule_text = {};
  // Conditions on ports, attributes and (as far as known) shapes. Throws Error through OpView::fail.
  std::function<void(const OpView&)> check = nullptr;
  // Output shapes from input shapes and attributes, dims may be kUnknownDim. Called only when every existing, given input
  // has a known rank. Null: the output shape must be given.
  std::function<ShapeMap(const OpView&)> infer_shapes = nullptr;
  std::vector<std::pair<std::string, std::string>> inplace = {};  // {input, output} that may share memory
  OpTraits traits = {};
  // What an implementation in f32 arithmetic may add to the relative error before the last rounding. Absent: one rounding, or
  // what a reduction costs (error_of); ops that copy add nothing.
  std::optional<double> error = std::nullopt;

  const AttributeSpec* find_attribute(std::string_view name) const;
};

// An op together with its tensors, seen through its schema; what `check` and `infer_shapes` work on.
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
  const LogicalTensor* input(std::string_view port) const;  // nullptr when left out or not existing
  const LogicalTensor* output(std::string_view port) const;
  const Dims& shape(std::string_view input_port) const;  // requires a known rank
  template <typename T>
  const T& attribute(std::string_view name) const {
    return op_.attribute<T>(name);
  }

  // Throw Error(invalid_graph_op / invalid_shape) with the op as its place and the sentence `KIND "name": <message>`; the
  // driver puts `FILE: op ID` in front. `part`: the port or attribute that is meant ("attribute axis").
  [[noreturn]] void fail(const std::string& message, std::string part = {}) const;
  [[noreturn]] void fail_shape(const std::string& message) const;

 private:
  const Op& op_;
  const OpSchema& schema_;
  std::vector<const LogicalTensor*> inputs_;  // by existing port; nullptr: left out
  std::vector<const LogicalTensor*> outputs_;
};

const OpSchema& schema_of(OpKind kind);

// The error that the schema allows, relative to the value or to the root mean square of its tensor, whichever is larger; or the
// one that goes without saying for its class.
double error_of(const OpSchema& schema);
inline constexpr double kColumnSumError = 5e-6;  // what gradients of gamma and beta, sums over all rows, may add to it

// The first port of that role that exists for these attributes; SIZE_MAX when there is none.
size_t port_with_role(const std::vector<PortSpec>& ports, const Attributes& attributes, PortRole role);

// Position of the channels in a tensor of this rank: last, unless attribute data_format is NCX.
bool has_channels_last(const Op& op);

// Quantize and Dequantize: scales and zero points are attributes.
bool has_constant_scales(OpKind kind);

// Computes nothing: End.
bool is_marker(const Op& op);

// Ports that exist for these attributes, in order: position in the result = port number.
std::vector<const PortSpec*> existing_inputs(const OpSchema& schema, const Attributes& attributes);
std::vector<const PortSpec*> existing_outputs(const OpSchema& schema, const Attributes& attributes);

// Port number of `name` for these attributes; SIZE_MAX when the port does not exist for them.
size_t port_position(const std::vector<PortSpec>& ports, const Attributes& attributes, std::string_view name);

// Fills in defaults, then checks attributes, port counts, dtypes, and the schema's own conditions. Throws Error.
void fill_defaults(Op& op);
void check_op(const OpView& view);

// Wraps a negative axis and checks -rank..rank-1; throws through view with "attribute NAME is V, allowed is -r..r-1".
int normalized_axis(const OpView& view, std::string_view attribute, int rank);
int wrap_axis(int64_t axis, int rank);  // no check

#define LAMINA_SCHEMA(Kind) ::lamina::OpSchema lamina::schemas::Kind()
namespace schemas {
#define LAMINA_OP(kind, value) OpSchema kind();
#include "graph/op_kinds.def"
}  // namespace schemas

}  // namespace lamina
