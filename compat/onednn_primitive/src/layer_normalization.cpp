// layer_normalization_forward and _backward: descriptors of lamina's layer norm, and execution by argument index.
#include <algorithm>
#include <numeric>

#include "common_view.h"
#include "objects.h"

namespace dnnl {

namespace {

using arg = lamina::layer_norm::arg;
using detail::layer_norm_object;

constexpr int kSrcScale = DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC, kDstScale = DNNL_ARG_ATTR_SCALES | DNNL_ARG_DST;

[[noreturn]] void fail_layer_norm(dnnl_status_t status, const std::string& what) {
  fail(status, "layer normalization: " + what);
}

std::string to_string(const memory::dims& dims) {
  std::string text;
  for (const memory::dim extent : dims) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text;
}

bool is_any(const memory::desc& desc) { return desc.get_format_kind() == memory::format_kind::any; }

// A dense tensor with the dims of `data` except the last, in the memory order of `data`.
memory::desc default_stat_desc(const memory::desc& data) {
  memory::dims dims = data.get_dims(), strides(dims.size() - 1);
  dims.pop_back();
  std::vector<std::size_t> order(dims.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const memory::dims data_strides = data.get_strides();
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return data_strides[a] > data_strides[b]; });
  memory::dim stride = 1;
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    strides[*d] = stride;
    if (__builtin_mul_overflow(stride, std::max<memory::dim>(dims[*d], 1), &stride))
      fail_layer_norm(dnnl_invalid_arguments, "the number of rows " + to_string(dims) + " does not fit 64 bits");
  }
  return {dims, memory::data_type::f32, strides};
}

// If `desc` has format any, it gets the layout of `like`.
memory::desc with_layout_of(const memory::desc& desc, const memory::desc& like) {
  if (!is_any(desc)) return desc;
  if (like.get_inner_nblks() == 0) return {desc.get_dims(), desc.get_data_type(), like.get_strides()};
  for (int tag = static_cast<int>(memory::format_tag::any) + 1; tag < static_cast<int>(memory::format_tag::format_tag_last);
       ++tag) {
    const memory::desc same_type(like.get_dims(), like.get_data_type(), static_cast<memory::format_tag>(tag), true);
    if (same_type == like) return {desc.get_dims(), desc.get_data_type(), static_cast<memory::format_tag>(tag)};
  }
  return {desc.get_dims(), desc.get_data_type(), default_stat_desc(like).get_strides()};
}

struct Request {
  const engine& aengine;
  prop_kind kind;
  float epsilon;
  normalization_flags flags;
  const primitive_attr& attr;
  std::vector<detail::port> data;  // the tensors with src's shape, src first
  memory::desc stat_desc;          // empty: not given
};

bool is_backward(prop_kind kind) { return kind == prop_kind::backward || kind == prop_kind::backward_data; }

void check_request(const Request& request, std::initializer_list<prop_kind> kinds) {
  if (std::find(kinds.begin(), kinds.end(), request.kind) == kinds.end())
    fail_layer_norm(dnnl_invalid_arguments,
                    "propagation kind " + std::to_string(static_cast<int>(request.kind)) +
                        " is not allowed; forward: forward_training, forward_inference; backward: backward, backward_data");
  const auto known = normalization_flags::use_global_stats | normalization_flags::use_scale | normalization_flags::use_shift;
  if ((request.flags & ~known) != normalization_flags::none)
    fail_layer_norm(dnnl_unimplemented, "flags are " + std::to_string(static_cast<unsigned>(request.flags)) +
                                            "; allowed are use_global_stats, use_scale, use_shift");
  const auto affine = normalization_flags::use_scale | normalization_flags::use_shift;
  if (request.kind == prop_kind::backward_data && (request.flags & affine) != normalization_flags::none)
    fail_layer_norm(dnnl_unimplemented,
                    "propagation kind backward_data is not supported with use_scale or use_shift; use backward");
  const memory::desc& src = request.data.front().desc;
  if (src.get_ndims() < 2 || src.get_ndims() > 6)
    fail_layer_norm(dnnl_invalid_arguments, "src has " + std::to_string(src.get_ndims()) + " dims, allowed is 2 to 6");
  if (is_any(src)) fail_layer_norm(dnnl_invalid_arguments, "src has format any; its layout must be known");
  for (const detail::port& port : request.data) {
    if (port.desc.get_dims() != src.get_dims())
      fail_layer_norm(dnnl_invalid_arguments, std::string(port.name) + " has dims " + to_string(port.desc.get_dims()) +
                                                  ", src has " + to_string(src.get_dims()));
  }
}

// The final descriptor of the statistics: f32, with the dims of src except the last.
memory::desc settled_stat_desc(const Request& request) {
  const memory::desc& src = request.data.front().desc;
  const memory::desc dense = default_stat_desc(src);
  if (request.stat_desc.is_zero()) return dense;
  if (request.stat_desc.get_dims() != dense.get_dims())
    fail_layer_norm(dnnl_invalid_arguments, "the statistics have dims " + to_string(request.stat_desc.get_dims()) +
                                                ", allowed is " + to_string(dense.get_dims()) +
                                                ", the dims of src without the last");
  if (request.stat_desc.get_data_type() != memory::data_type::f32)
    fail_layer_norm(dnnl_unimplemented, "the statistics have data type " +
                                            std::to_string(static_cast<int>(request.stat_desc.get_data_type())) +
                                            ", allowed is f32");
  return is_any(request.stat_desc) ? dense : request.stat_desc;
}

void check_scales(const Request& request) {
  for (const auto& [index, mask] : request.attr.scales_masks()) {
    const int which = index;
    const auto port =
        std::find_if(request.data.begin(), request.data.end(), [&](const detail::port& p) { return p.index == which; });
    const bool integer = port != request.data.end() && memory::data_type_size(port->desc.get_data_type()) == 1;
    if (is_backward(request.kind) || !integer)
      fail_layer_norm(dnnl_unimplemented, "attribute scales of argument " + std::to_string(which) +
                                              ": allowed only in the forward pass, for s8 and u8 tensors");
  }
}

// Every tensor of the primitive with its index, in the order of the table in oneDNN's documentation.
std::vector<detail::port> all_ports(const Request& request, const layer_norm_object& object) {
  std::vector<detail::port> ports = request.data;
  const bool backward = object.is_backward();
  const auto add = [&](bool used, int index, const char* name, arg position, const memory::desc& desc) {
    if (used) ports.push_back({index, name, position, desc});
  };
  const bool scaled = object.has(normalization_flags::use_scale), shifted = object.has(normalization_flags::use_shift);
  const bool stats =
      backward || object.kind == prop_kind::forward_training || object.has(normalization_flags::use_global_stats);
  const memory::desc one_scale({1}, memory::data_type::f32, memory::format_tag::x);
  add(stats, DNNL_ARG_MEAN, "DNNL_ARG_MEAN", arg::mean, object.stat_desc);
  add(stats, DNNL_ARG_VARIANCE, "DNNL_ARG_VARIANCE", arg::variance, object.stat_desc);
  add(scaled, DNNL_ARG_SCALE, "DNNL_ARG_SCALE", arg::scale, object.scale_desc);
  add(shifted && !backward, DNNL_ARG_SHIFT, "DNNL_ARG_SHIFT", arg::shift, object.scale_desc);
  add(scaled && backward, DNNL_ARG_DIFF_SCALE, "DNNL_ARG_DIFF_SCALE", arg::diff_scale, object.scale_desc);
  add(shifted && backward, DNNL_ARG_DIFF_SHIFT, "DNNL_ARG_DIFF_SHIFT", arg::diff_shift, object.scale_desc);
  const auto& scales = request.attr.scales_masks();
  add(scales.count(DNNL_ARG_SRC) != 0, kSrcScale, "DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC", arg::src_scale, one_scale);
  add(scales.count(DNNL_ARG_DST) != 0, kDstScale, "DNNL_ARG_ATTR_SCALES | DNNL_ARG_DST", arg::dst_scale, one_scale);
  return ports;
}

std::uint32_t lamina_flags(const layer_norm_object& object) {
  std::uint32_t flags = 0;
  const bool global = object.has(normalization_flags::use_global_stats);
  if (global || object.is_backward()) flags |= lamina_layer_norm_use_stats;
  if (global && object.is_backward()) flags |= lamina_layer_norm_stats_are_constant;
  if (object.has(normalization_flags::use_scale)) flags |= lamina_layer_norm_use_scale;
  if (object.has(normalization_flags::use_shift)) flags |= lamina_layer_norm_use_shift;
  return flags;
}

std::uint32_t lamina_outputs(const layer_norm_object& object) {
  if (object.is_backward()) return lamina_layer_norm_output_all;
  const bool stats = object.kind == prop_kind::forward_training && !object.has(normalization_flags::use_global_stats);
  return lamina_layer_norm_output_dst | (stats ? std::uint32_t{lamina_layer_norm_output_stats} : 0);
}

lamina::graph::logical_tensor to_lamina(const memory::desc& desc, const CommonView& view) {
  const CommonView::Tensor tensor = view.view(desc);
  return {0, static_cast<lamina::graph::logical_tensor::data_type>(desc.get_data_type()), tensor.dims, tensor.strides};
}

lamina::layer_norm compiled(const layer_norm_object& object) {
  std::vector<memory::desc> with_blocks;
  for (const detail::port& port : object.ports)
    if (port.desc.get_ndims() > 1) with_blocks.push_back(port.desc);
  const memory::dims shape = object.ports.front().desc.get_dims();
  const CommonView view(shape, with_blocks);
  lamina::layer_norm::description what;
  what.direction = object.is_backward() ? lamina::layer_norm::pass::backward : lamina::layer_norm::pass::forward;
  what.flags = lamina_flags(object);
  what.outputs = lamina_outputs(object);
  what.epsilon = object.epsilon;
  what.begin_norm_axis = -view.pieces_of_last_dim();
  for (const detail::port& port : object.ports) {
    const bool is_stat = port.arg == arg::mean || port.arg == arg::variance;
    const bool is_data = port.arg <= arg::diff_src;
    if (is_data || is_stat)
      what.tensors[port.arg] = to_lamina(port.desc, view);
    else
      what.tensors[port.arg] = to_lamina(port.desc, CommonView(port.desc.get_dims(), {}));
  }
  return {what, object.engine.object().engine};
}

std::shared_ptr<const layer_norm_object> create(const Request& request, std::initializer_list<prop_kind> kinds) {
  check_request(request, kinds);
  check_scales(request);
  auto object = std::make_shared<layer_norm_object>();
  object->engine = request.aengine;
  object->kind = request.kind;
  object->flags = request.flags;
  object->epsilon = request.epsilon;
  object->attr = request.attr;
  object->stat_desc = settled_stat_desc(request);
  object->scale_desc = {{request.data.front().desc.get_dims().back()}, memory::data_type::f32, memory::format_tag::x};
  object->ports = all_ports(request, *object);
  translated([&] {
    object->norm = compiled(*object);
    object->workspace_size = object->norm.get_workspace_size();
  });
  return object;
}

template <typename Create>
std::shared_ptr<const layer_norm_object> created_or_empty(bool allow_empty, Create&& create_object) {
  try {
    return create_object();
  } catch (const error&) {
    if (!allow_empty) throw;
    return nullptr;
  }
}

std::shared_ptr<const layer_norm_object> create_forward(const engine& aengine, prop_kind kind, const memory::desc& src,
                                                        const memory::desc& dst, const memory::desc& stat, float epsilon,
                                                        normalization_flags flags, const primitive_attr& attr) {
  return create(
      {aengine,
       kind,
       epsilon,
       flags,
       attr,
       {{DNNL_ARG_SRC, "DNNL_ARG_SRC", arg::src, src}, {DNNL_ARG_DST, "DNNL_ARG_DST", arg::dst, with_layout_of(dst, src)}},
       stat},
      {prop_kind::forward_training, prop_kind::forward_inference});
}

std::shared_ptr<const layer_norm_object> create_backward(const engine& aengine, prop_kind kind, const memory::desc& diff_src,
                                                         const memory::desc& diff_dst, const memory::desc& src,
                                                         const memory::desc& stat, float epsilon, normalization_flags flags,
                                                         const primitive_desc_base& hint, const primitive_attr& attr) {
  hint.object();
  const memory::desc settled_diff_dst = with_layout_of(diff_dst, src);
  return create({aengine,
                 kind,
                 epsilon,
                 flags,
                 attr,
                 {{DNNL_ARG_SRC, "DNNL_ARG_SRC", arg::src, src},
                  {DNNL_ARG_DIFF_DST, "DNNL_ARG_DIFF_DST", arg::diff_dst, settled_diff_dst},
                  {DNNL_ARG_DIFF_SRC, "DNNL_ARG_DIFF_SRC", arg::diff_src, with_layout_of(diff_src, settled_diff_dst)}},
                 stat},
                {prop_kind::backward, prop_kind::backward_data});
}

void* memory_for(const layer_norm_object& object, const detail::port& port, const std::unordered_map<int, memory>& args) {
  const auto found = args.find(port.index);
  if (found == args.end()) fail_layer_norm(dnnl_invalid_arguments, std::string("argument ") + port.name + " is missing");
  const detail::memory_object& given = found->second.object();
  if (given.engine.get_kind() != object.engine.get_kind())
    fail_layer_norm(dnnl_invalid_arguments,
                    std::string("the memory of argument ") + port.name + " belongs to another kind of engine");
  if (given.desc != port.desc)
    fail_layer_norm(dnnl_invalid_arguments, std::string("the memory of argument ") + port.name +
                                                " has another shape, type or layout than the primitive was created for");
  return given.handle;
}

}  // namespace

memory::desc detail::layer_norm_object::desc_of(int index) const {
  const auto found = std::find_if(ports.begin(), ports.end(), [&](const port& p) { return p.index == index; });
  return found == ports.end() ? memory::desc() : found->desc;
}

const std::shared_ptr<const layer_norm_object>& primitive_desc_base::object() const {
  if (object_ == nullptr) fail_layer_norm(dnnl_invalid_arguments, "the primitive descriptor is empty: it was never created");
  return object_;
}

engine primitive_desc_base::get_engine() const { return object()->engine; }
const char* primitive_desc_base::impl_info_str() const {
  return object()->is_backward() ? "lamina:layer_norm_backward" : "lamina:layer_norm";
}
memory::desc primitive_desc_base::src_desc() const { return object()->desc_of(DNNL_ARG_SRC); }
memory::desc primitive_desc_base::dst_desc() const { return object()->desc_of(DNNL_ARG_DST); }
memory::desc primitive_desc_base::diff_src_desc() const { return object()->desc_of(DNNL_ARG_DIFF_SRC); }
memory::desc primitive_desc_base::diff_dst_desc() const { return object()->desc_of(DNNL_ARG_DIFF_DST); }
memory::desc primitive_desc_base::mean_desc() const { return object()->desc_of(DNNL_ARG_MEAN); }
memory::desc primitive_desc_base::variance_desc() const { return object()->desc_of(DNNL_ARG_VARIANCE); }
primitive_attr primitive_desc_base::get_primitive_attr() const { return object()->attr; }
prop_kind primitive_desc_base::get_prop_kind() const { return object()->kind; }
float primitive_desc_base::get_epsilon() const { return object()->epsilon; }
normalization_flags primitive_desc_base::get_flags() const { return object()->flags; }

memory::desc primitive_desc_base::weights_desc() const {
  const auto affine = normalization_flags::use_scale | normalization_flags::use_shift;
  return object()->has(affine) ? object()->scale_desc : memory::desc();
}
memory::desc primitive_desc_base::diff_weights_desc() const {
  return object()->is_backward() ? weights_desc() : memory::desc();
}

// Only scratchpad mode user requires memory from the caller.
memory::desc primitive_desc_base::scratchpad_desc() const {
  const bool users = object()->attr.get_scratchpad_mode() == scratchpad_mode::user && object()->workspace_size > 0;
  if (!users) return {};
  return {{static_cast<memory::dim>(object()->workspace_size)}, memory::data_type::u8, memory::format_tag::x};
}

layer_normalization_forward::primitive_desc::primitive_desc(const engine& aengine, prop_kind aprop_kind,
                                                            const memory::desc& src_desc, const memory::desc& dst_desc,
                                                            const memory::desc& stat_desc, float epsilon,
                                                            normalization_flags flags, const primitive_attr& attr,
                                                            bool allow_empty) {
  object_ = created_or_empty(
      allow_empty, [&] { return create_forward(aengine, aprop_kind, src_desc, dst_desc, stat_desc, epsilon, flags, attr); });
}

layer_normalization_forward::primitive_desc::primitive_desc(const engine& aengine, prop_kind aprop_kind,
                                                            const memory::desc& src_desc, const memory::desc& dst_desc,
                                                            float epsilon, normalization_flags flags,
                                                            const primitive_attr& attr, bool allow_empty)
    : primitive_desc(aengine, aprop_kind, src_desc, dst_desc, memory::desc(), epsilon, flags, attr, allow_empty) {}

layer_normalization_backward::primitive_desc::primitive_desc(
    const engine& aengine, prop_kind aprop_kind, const memory::desc& diff_src_desc, const memory::desc& diff_dst_desc,
    const memory::desc& src_desc, const memory::desc& stat_desc, float epsilon, normalization_flags flags,
    const layer_normalization_forward::primitive_desc& hint_fwd_pd, const primitive_attr& attr, bool allow_empty) {
  object_ = created_or_empty(allow_empty, [&] {
    return create_backward(aengine, aprop_kind, diff_src_desc, diff_dst_desc, src_desc, stat_desc, epsilon, flags, hint_fwd_pd,
                           attr);
  });
}

layer_normalization_backward::primitive_desc::primitive_desc(const engine& aengine, prop_kind aprop_kind,
                                                             const memory::desc& diff_src_desc,
                                                             const memory::desc& diff_dst_desc, const memory::desc& src_desc,
                                                             float epsilon, normalization_flags flags,
                                                             const layer_normalization_forward::primitive_desc& hint_fwd_pd,
                                                             const primitive_attr& attr, bool allow_empty)
    : primitive_desc(aengine, aprop_kind, diff_src_desc, diff_dst_desc, src_desc, memory::desc(), epsilon, flags, hint_fwd_pd,
                     attr, allow_empty) {}

void primitive::execute(const stream& astream, const std::unordered_map<int, memory>& args) const {
  if (object_ == nullptr) fail_layer_norm(dnnl_invalid_arguments, "the primitive is empty: it was never created");
  void* positions[lamina_layer_norm_arg_count] = {};
  for (const detail::port& port : object_->ports) positions[static_cast<int>(port.arg)] = memory_for(*object_, port, args);
  void* workspace = nullptr;
  const bool users = object_->attr.get_scratchpad_mode() == scratchpad_mode::user && object_->workspace_size > 0;
  if (users) {
    const detail::port scratchpad{
        DNNL_ARG_SCRATCHPAD,
        "DNNL_ARG_SCRATCHPAD",
        arg::src,
        {{static_cast<memory::dim>(object_->workspace_size)}, memory::data_type::u8, memory::format_tag::x}};
    workspace = memory_for(*object_, scratchpad, args);
    if (workspace == nullptr) fail_layer_norm(dnnl_invalid_arguments, "the memory of argument DNNL_ARG_SCRATCHPAD is null");
  }
  translated([&] {
    lamina::error::wrap_c_api(lamina_layer_norm_execute(object_->norm.get(), astream.object().stream.get(), positions,
                                                        workspace, users ? object_->workspace_size : 0));
  });
}

}  // namespace dnnl
