// The front end of oneDNN's primitives: descriptors of arbitrary dims, tags and strides, then forward and backward with memory
// that matches, is missing, or belongs to another descriptor.
#include <oneapi/dnnl/dnnl.hpp>

#include "fuzz/fuzz_input.h"

namespace {

using namespace dnnl;
using lamina::fuzz::FuzzInput;
using lamina::fuzz::require;

constexpr size_t kMaxBytes = 1 << 16;
constexpr double kMaxElements = 1 << 20;  // with strides of 0, few bytes hold many elements

memory::desc any_desc(FuzzInput& in, const memory::dims& dims) {
  static const std::vector<memory::data_type> types = {memory::data_type::f32,  memory::data_type::bf16, memory::data_type::f16,
                                                       memory::data_type::s8,   memory::data_type::u8,   memory::data_type::f64,
                                                       memory::data_type::undef};
  const auto type = in.below(4) != 3 ? memory::data_type::f32 : in.pick(types);
  if (in.below(4) == 3) {
    memory::dims strides(dims.size());
    for (auto& stride : strides) stride = in.extent();
    return {dims, type, strides, in.flip()};
  }
  const auto count = static_cast<size_t>(memory::format_tag::format_tag_last);
  const memory::format_tag tag = in.below(4) == 3   ? static_cast<memory::format_tag>(in.take<uint16_t>() % (count + 2))
                                 : dims.size() == 2 ? memory::format_tag::ab
                                 : dims.size() == 3 ? memory::format_tag::abc
                                                    : memory::format_tag::abcd;
  return {dims, type, tag, in.flip()};
}

void add(std::unordered_map<int, memory>& args, FuzzInput& in, const engine& on, int index, const memory::desc& desc) {
  if (in.below(32) == 31 || desc.is_zero() || desc.get_size() > kMaxBytes) return;
  memory made(desc, on);
  if (made.get_data_handle() != nullptr) std::memset(made.get_data_handle(), 1, desc.get_size());
  args.emplace(index, made);
}

void run(FuzzInput& in) {
  const engine on(engine::kind::cpu, 0);
  const stream along(on);
  memory::dims dims(in.below(16) == 15 ? in.below(14) : 2 + in.below(3));
  for (auto& dim : dims) dim = in.extent();
  memory::dims rows(dims.begin(), dims.empty() ? dims.end() : dims.end() - 1);
  const memory::desc src = any_desc(in, dims), dst = in.flip() ? src : any_desc(in, dims), stats = any_desc(in, rows);
  const auto flags = static_cast<normalization_flags>(in.below(16));
  primitive_attr attr;
  if (in.below(4) == 3) attr.set_scales_mask(in.flip() ? DNNL_ARG_DST : DNNL_ARG_SRC, static_cast<int>(in.below(3)));
  const auto kind = in.flip() ? prop_kind::forward_training : prop_kind::forward_inference;
  const layer_normalization_forward::primitive_desc forward(on, kind, src, dst, stats, in.take<float>(), flags, attr);
  double elements = 1;
  for (const auto dim : dims) elements *= static_cast<double>(dim);
  if (elements > kMaxElements) return;
  std::unordered_map<int, memory> args;
  add(args, in, on, DNNL_ARG_SRC, forward.src_desc());
  add(args, in, on, DNNL_ARG_DST, forward.dst_desc());
  add(args, in, on, DNNL_ARG_MEAN, forward.mean_desc());
  add(args, in, on, DNNL_ARG_VARIANCE, forward.variance_desc());
  add(args, in, on, DNNL_ARG_SCALE, forward.weights_desc());
  add(args, in, on, DNNL_ARG_SHIFT, forward.weights_desc());
  layer_normalization_forward(forward).execute(along, args);
  if (kind == prop_kind::forward_inference) return;
  const layer_normalization_backward::primitive_desc backward(on, in.flip() ? prop_kind::backward : prop_kind::backward_data,
                                                              src, dst, src, stats, 1e-5F, flags, forward);
  add(args, in, on, DNNL_ARG_DIFF_SRC, backward.diff_src_desc());
  add(args, in, on, DNNL_ARG_DIFF_DST, backward.diff_dst_desc());
  add(args, in, on, DNNL_ARG_DIFF_SCALE, backward.diff_weights_desc());
  add(args, in, on, DNNL_ARG_DIFF_SHIFT, backward.diff_weights_desc());
  layer_normalization_backward(backward).execute(along, args);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  try {
    run(input);
  } catch (const dnnl::error& refused) {
    require(refused.what()[0] != '\0', "a refusal has a sentence");
  }
  return 0;
}
