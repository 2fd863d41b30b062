// Checks a layer norm descriptor and fills in what it omits. Checks that the ops perform are not repeated here.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "api/convert.h"
#include "api/layer_norm_graph.h"
#include "interface/status.h"

namespace lamina::api {

namespace {

using Arg = lamina_layer_norm_arg_t;

constexpr std::array<std::string_view, kLayerNormArgs> kNames = {"src",        "dst",        "diff_dst",  "diff_src",
                                                                 "mean",       "variance",   "scale",     "shift",
                                                                 "diff_scale", "diff_shift", "src_scale", "dst_scale"};

[[noreturn]] void fail(Status status, const std::string& what) { throw Error(status, "layer norm: " + what); }

bool is_known(uint32_t value, uint32_t known) { return (value & ~known) == 0; }

// Legal sizes: from a descriptor without arguments to one with far more arguments than any future version.
constexpr size_t kMinDesc = offsetof(lamina_layer_norm_desc_t, tensors), kMaxDesc = 4096;

// Converts the descriptor of a caller with an older header (arguments that it lacks are not given) or a newer one (arguments
// that this library does not know must not be given).
lamina_layer_norm_desc_t as_known_here(const lamina_layer_norm_desc_t& given) {
  check_struct_size(given.struct_size);
  lamina_layer_norm_desc_t desc{};
  std::memcpy(&desc, &given, std::min(given.struct_size, sizeof desc));
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&given);
  if (given.struct_size > sizeof desc &&
      std::any_of(bytes + sizeof desc, bytes + given.struct_size, [](unsigned char byte) { return byte != 0; })) {
    fail(Status::invalid_arguments,
         join("struct_size is ", given.struct_size, ", and fields after the ", sizeof desc,
              " bytes that this library knows are set: the library is older than the caller's header"));
  }
  return desc;
}

void check_enumerators(const lamina_layer_norm_desc_t& desc) {
  const int pass = static_cast<int>(desc.pass), stats_kind = static_cast<int>(desc.stats_kind);
  if (pass != lamina_layer_norm_forward && pass != lamina_layer_norm_backward)
    fail(Status::invalid_arguments, join("pass is ", pass, ", allowed is forward (0) or backward (1)"));
  if (stats_kind < lamina_layer_norm_stats_variance || stats_kind > lamina_layer_norm_stats_std)
    fail(Status::invalid_arguments, join("stats_kind is ", stats_kind, ", allowed is variance (0), rstd (1) or std (2)"));
  if (!is_known(desc.flags, 0x1f)) fail(Status::invalid_arguments, join("flags are ", desc.flags, ", which has unknown bits"));
  if (!is_known(desc.outputs, 0x1f))
    fail(Status::invalid_arguments, join("outputs are ", desc.outputs, ", which has unknown bits"));
  if (!std::isfinite(desc.epsilon) || desc.epsilon <= 0)
    fail(Status::invalid_arguments, join("epsilon is ", desc.epsilon, ", allowed is a finite number above 0"));
}

// The outputs that are possible for this pass with these flags.
uint32_t possible_outputs(const lamina_layer_norm_desc_t& desc) {
  if (desc.pass == lamina_layer_norm_forward) {
    const bool computed = (desc.flags & lamina_layer_norm_use_stats) == 0;
    return lamina_layer_norm_output_dst | (computed ? uint32_t{lamina_layer_norm_output_stats} : 0);
  }
  uint32_t outputs = lamina_layer_norm_output_diff_src;
  if ((desc.flags & lamina_layer_norm_use_scale) != 0) outputs |= lamina_layer_norm_output_diff_scale;
  if ((desc.flags & lamina_layer_norm_use_shift) != 0) outputs |= lamina_layer_norm_output_diff_shift;
  return outputs;
}

uint32_t settled_outputs(const lamina_layer_norm_desc_t& desc) {
  const uint32_t possible = possible_outputs(desc);
  if (desc.outputs == lamina_layer_norm_output_all) return possible & ~uint32_t{lamina_layer_norm_output_stats};
  if (!is_known(desc.outputs, possible))
    fail(Status::invalid_arguments,
         join("outputs are ", desc.outputs, ", allowed with this pass and these flags are bits of ", possible));
  if (desc.pass == lamina_layer_norm_forward && (desc.outputs & lamina_layer_norm_output_dst) == 0)
    fail(Status::invalid_arguments, "outputs leave out dst, which the forward pass always writes");
  return desc.outputs;
}

void check_combination(const LayerNormProblem& problem) {
  const bool forward = problem.pass == lamina_layer_norm_forward, given_stats = problem.has(lamina_layer_norm_use_stats);
  if (problem.has(lamina_layer_norm_src_is_normalized) && (forward || !given_stats))
    fail(Status::invalid_arguments, "flag src_is_normalized is allowed only with the backward pass and use_stats");
  const bool constant_stats = problem.has(lamina_layer_norm_stats_are_constant);
  if (constant_stats && (forward || !given_stats || problem.stats_kind != lamina_layer_norm_stats_variance))
    fail(Status::invalid_arguments,
         "flag stats_are_constant is allowed only with the backward pass, use_stats and stats_kind variance");
  if (problem.stats_kind != lamina_layer_norm_stats_variance && (forward || !given_stats))
    fail(Status::invalid_arguments, "stats_kind other than variance is allowed only with the backward pass and use_stats");
}

enum class Use { none, input, output };

Use use_of(const LayerNormProblem& problem, Arg arg, bool given) {
  const bool forward = problem.pass == lamina_layer_norm_forward, given_stats = problem.has(lamina_layer_norm_use_stats);
  const auto input_if = [](bool used) { return used ? Use::input : Use::none; };
  const auto output_if = [](bool used) { return used ? Use::output : Use::none; };
  switch (arg) {
    case lamina_layer_norm_src: return Use::input;
    case lamina_layer_norm_dst: return output_if(forward);
    case lamina_layer_norm_diff_dst: return input_if(!forward);
    case lamina_layer_norm_diff_src: return output_if(problem.wants(lamina_layer_norm_output_diff_src));
    case lamina_layer_norm_mean:
      if (given_stats) return input_if(!problem.has(lamina_layer_norm_src_is_normalized));
      return output_if(problem.wants(lamina_layer_norm_output_stats));
    case lamina_layer_norm_variance: return given_stats ? Use::input : output_if(problem.wants(lamina_layer_norm_output_stats));
    case lamina_layer_norm_scale: return input_if(problem.has(lamina_layer_norm_use_scale));
    case lamina_layer_norm_shift: return input_if(forward && problem.has(lamina_layer_norm_use_shift));
    case lamina_layer_norm_diff_scale: return output_if(problem.wants(lamina_layer_norm_output_diff_scale));
    case lamina_layer_norm_diff_shift: return output_if(problem.wants(lamina_layer_norm_output_diff_shift));
    case lamina_layer_norm_src_scale:
    case lamina_layer_norm_dst_scale: return input_if(forward && given);
    default: return Use::none;
  }
}

LogicalTensor given_tensor(Arg arg, const lamina_graph_logical_tensor_t& given) {
  lamina_graph_logical_tensor_t anonymous = given;
  anonymous.id = static_cast<size_t>(arg);
  LogicalTensor tensor = from_c(anonymous);
  tensor.property = PropertyType::undef;
  if (!tensor.has_full_shape())
    fail(Status::invalid_shape, join("argument ", name_of(arg), " is ", describe(tensor), ", a known shape is needed"));
  if (tensor.layout == LayoutType::opaque)
    fail(Status::invalid_arguments, join("argument ", name_of(arg), " has layout opaque; allowed: strided, any, undef"));
  if (tensor.has_strides()) return tensor;
  tensor.layout = LayoutType::strided;
  tensor.strides = dense_strides(*tensor.shape);
  return tensor;
}

void require_type(Arg arg, const LogicalTensor& tensor, std::initializer_list<DataType> allowed) {
  if (std::find(allowed.begin(), allowed.end(), tensor.dtype) != allowed.end()) return;
  std::string names;
  for (const DataType type : allowed) names += join(names.empty() ? "" : ", ", lamina::name_of(type));
  fail(Status::invalid_data_type,
       join("argument ", name_of(arg), " has type ", lamina::name_of(tensor.dtype), ", allowed is ", names));
}

void check_type(const LayerNormProblem& problem, Arg arg, const LogicalTensor& tensor) {
  using D = DataType;
  const bool scale_of_integers = arg == lamina_layer_norm_src_scale || arg == lamina_layer_norm_dst_scale;
  const bool forward_data = problem.pass == lamina_layer_norm_forward && arg <= lamina_layer_norm_dst;
  if (scale_of_integers)
    require_type(arg, tensor, {D::f32});
  else if (forward_data)
    require_type(arg, tensor, {D::f32, D::bf16, D::f16, D::f64, D::s8, D::u8});
  else
    require_type(arg, tensor, {D::f32, D::bf16, D::f16, D::f64});
}

int64_t settled_axis(int64_t axis, int rank) {
  if (rank == 0) fail(Status::invalid_shape, "argument src is a scalar, allowed is rank 1 or more");
  if (axis < -rank || axis >= rank)
    fail(Status::invalid_arguments, join("begin_norm_axis is ", axis, ", allowed is ", -rank, "..", rank - 1));
  return axis < 0 ? axis + rank : axis;
}

void require_shape(Arg arg, const LogicalTensor& tensor, const Dims& wanted, const char* meaning) {
  if (*tensor.shape == wanted) return;
  fail(Status::invalid_shape, join("argument ", name_of(arg), " has shape ", describe(*tensor.shape), ", allowed is ",
                                   describe(wanted), ": ", meaning));
}

// [A1..Ai, 1, .., 1] is reduced to [A1..Ai].
void drop_trailing_ones(LogicalTensor& tensor, size_t rank) {
  while (tensor.shape->size() > rank && tensor.shape->back() == 1) {
    tensor.shape->pop_back();
    tensor.strides.pop_back();
  }
}

// A flat shape [product] is replaced by the normalised axes.
void unfold(LogicalTensor& tensor, const Dims& normalized) {
  if (tensor.shape->size() != 1 || normalized.size() <= 1) return;
  if (tensor.shape->front() != checked_product(normalized, "the normalised axes")) return;
  const int64_t step = tensor.strides.front();
  tensor.shape = normalized;
  tensor.strides = dense_strides(normalized);
  for (int64_t& stride : tensor.strides) stride *= step;
}

LogicalTensor default_tensor(Arg arg, DataType type, const Dims& shape) {
  LogicalTensor tensor;
  tensor.id = static_cast<uint64_t>(arg);
  tensor.dtype = type;
  tensor.shape = shape;
  tensor.layout = LayoutType::strided;
  tensor.strides = dense_strides(shape);
  return tensor;
}

// Fills in the tensors of one problem, argument by argument.
class TensorSettler {
 public:
  TensorSettler(LayerNormProblem& problem, const lamina_layer_norm_desc_t& desc) : problem_(problem), desc_(desc) {}

  void run() {
    settle(lamina_layer_norm_src);
    const Dims& src = *problem_[lamina_layer_norm_src]->shape;
    problem_.begin_norm_axis = settled_axis(desc_.begin_norm_axis, static_cast<int>(src.size()));
    const auto middle = src.begin() + problem_.begin_norm_axis;
    leading_.assign(src.begin(), middle);
    normalized_.assign(middle, src.end());
    for (int arg = lamina_layer_norm_dst; arg < lamina_layer_norm_arg_count; ++arg) settle(static_cast<Arg>(arg));
  }

 private:
  void settle(Arg arg) {
    const lamina_graph_logical_tensor_t* const given = desc_.tensors[arg];
    if (use_of(problem_, arg, given != nullptr) == Use::none) return refuse_unused(arg, given != nullptr);
    std::optional<LogicalTensor>& tensor = problem_.tensors[arg];
    if (given != nullptr)
      tensor = given_tensor(arg, *given);
    else
      tensor = missing(arg);
    check_type(problem_, arg, *tensor);
    if (arg != lamina_layer_norm_src) fit(arg, *tensor);
  }

  // The descriptor of a backward pass may contain dst, shift or a gradient that it does not write, so that one program can
  // describe both passes.
  void refuse_unused(Arg arg, bool given) const {
    const bool harmless = arg != lamina_layer_norm_src_scale && arg != lamina_layer_norm_dst_scale &&
                          arg != lamina_layer_norm_mean && arg != lamina_layer_norm_variance &&
                          arg != lamina_layer_norm_scale && arg != lamina_layer_norm_shift;
    if (!given || harmless || (arg == lamina_layer_norm_shift && problem_.pass == lamina_layer_norm_backward)) return;
    fail(Status::invalid_arguments,
         join("argument ", name_of(arg), " is given, but this pass with these flags and outputs does not use it"));
  }

  LogicalTensor missing(Arg arg) const {
    const bool per_row = arg == lamina_layer_norm_mean || arg == lamina_layer_norm_variance;
    if (!per_row && (arg < lamina_layer_norm_scale || arg > lamina_layer_norm_diff_shift))
      fail(Status::invalid_arguments, join("argument ", name_of(arg), " has no tensor, but this pass needs it"));
    const DataType data = problem_[lamina_layer_norm_src]->dtype;
    return default_tensor(arg, data == DataType::f64 ? data : DataType::f32, per_row ? leading_ : normalized_);
  }

  void fit(Arg arg, LogicalTensor& tensor) const {
    switch (arg) {
      case lamina_layer_norm_mean:
      case lamina_layer_norm_variance:
        drop_trailing_ones(tensor, leading_.size());
        return require_shape(arg, tensor, leading_, "the axes of src before begin_norm_axis");
      case lamina_layer_norm_src_scale: return fit_scale(arg, tensor, lamina_layer_norm_src);
      case lamina_layer_norm_dst_scale: return fit_scale(arg, tensor, lamina_layer_norm_dst);
      case lamina_layer_norm_dst:
      case lamina_layer_norm_diff_dst:
      case lamina_layer_norm_diff_src:
        return require_shape(arg, tensor, *problem_[lamina_layer_norm_src]->shape, "the shape of src");
      default: unfold(tensor, normalized_); return require_shape(arg, tensor, normalized_, "the normalised axes of src");
    }
  }

  void fit_scale(Arg arg, LogicalTensor& tensor, Arg scaled) const {
    const DataType type = problem_[scaled]->dtype;
    if (type != DataType::s8 && type != DataType::u8)
      fail(Status::unimplemented, join("argument ", name_of(arg), " is given, but ", name_of(scaled), " has type ",
                                       lamina::name_of(type), "; allowed is s8 or u8"));
    if (tensor.element_count() != 1) require_shape(arg, tensor, {1}, "one scale for the whole tensor");
    tensor = default_tensor(arg, tensor.dtype, {1});
  }

  LayerNormProblem& problem_;
  const lamina_layer_norm_desc_t& desc_;
  Dims leading_, normalized_;
};

}  // namespace

std::string_view name_of(lamina_layer_norm_arg_t arg) {
  const auto position = static_cast<size_t>(arg);
  return position < kNames.size() ? kNames[position] : "unknown";
}

bool LayerNormProblem::is_output(lamina_layer_norm_arg_t arg) const {
  return tensors[arg] && use_of(*this, arg, true) == Use::output;
}

void check_struct_size(size_t struct_size) {
  const bool whole = struct_size >= kMinDesc && (struct_size - kMinDesc) % sizeof(void*) == 0;
  if (!whole || struct_size > kMaxDesc)
    fail(Status::invalid_arguments, join("struct_size is ", struct_size, ", this library's descriptor has ",
                                         sizeof(lamina_layer_norm_desc_t), " bytes; lamina_layer_norm_desc_init sets it"));
}

LayerNormProblem checked_problem(const lamina_layer_norm_desc_t& given) {
  const lamina_layer_norm_desc_t desc = as_known_here(given);
  check_enumerators(desc);
  LayerNormProblem problem;
  problem.pass = desc.pass;
  problem.flags = desc.flags;
  problem.outputs = settled_outputs(desc);
  problem.stats_kind = desc.stats_kind;
  problem.epsilon = desc.epsilon;
  check_combination(problem);
  TensorSettler(problem, desc).run();
  return problem;
}

}  // namespace lamina::api
