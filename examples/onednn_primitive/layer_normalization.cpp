// Layer normalization as a primitive, forward: a tensor of T time steps, N samples and C channels is normalised over its
// channels, in place, with scale and shift; memory objects are made from what the primitive descriptor says.
//
// Written for oneDNN's primitive interface: compiles against lamina's front end and against oneDNN itself.
#include <cmath>
#include <unordered_map>

#include "example_utils.hpp"

using namespace dnnl;

namespace {

std::vector<float> values(memory::dim count, float (*value)(int)) {
  std::vector<float> result(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = value(static_cast<int>(i));
  return result;
}

// Mean and variance of one sample's channels.
void print_row(const char* what, const std::vector<float>& data, memory::dim row, memory::dim channels) {
  const float* const first = &data[static_cast<std::size_t>(row * channels)];
  double mean = 0, variance = 0;
  for (memory::dim c = 0; c < channels; ++c) mean += first[c] / static_cast<double>(channels);
  for (memory::dim c = 0; c < channels; ++c) variance += (first[c] - mean) * (first[c] - mean) / static_cast<double>(channels);
  std::cout << what << " row " << row << ": mean " << mean << ", variance " << variance << ", first " << first[0] << '\n';
}

void layer_normalization_example(engine::kind engine_kind) {
  const engine an_engine(engine_kind, 0);
  stream engine_stream(an_engine);

  const memory::dim T = 12, N = 3, C = 227;
  const memory::dims src_dims = {T, N, C}, scale_shift_dims = {C};
  std::vector<float> src_data = values(T * N * C, [](int i) { return std::cos(static_cast<float>(i) / 10.0f); });
  const std::vector<float> scale_data = values(C, [](int i) { return std::sin(static_cast<float>(i) * 2.0f); });
  const std::vector<float> shift_data = values(C, [](int i) { return std::tan(static_cast<float>(i)); });
  print_row("src", src_data, 0, C);

  const memory::desc src_md(src_dims, memory::data_type::f32, memory::format_tag::tnc);
  const memory::desc dst_md(src_dims, memory::data_type::f32, memory::format_tag::tnc);
  const memory::desc scale_shift_md(scale_shift_dims, memory::data_type::f32, memory::format_tag::x);
  const memory src_mem(src_md, an_engine), scale_mem(scale_shift_md, an_engine), shift_mem(scale_shift_md, an_engine);
  write_to_dnnl_memory(src_data.data(), src_mem);
  write_to_dnnl_memory(scale_data.data(), scale_mem);
  write_to_dnnl_memory(shift_data.data(), shift_mem);

  const float epsilon = 1.e-10f;
  const layer_normalization_forward::primitive_desc lnorm_pd(an_engine, prop_kind::forward_training, src_md, dst_md, epsilon,
                                                             normalization_flags::use_scale | normalization_flags::use_shift);
  const memory mean_mem(lnorm_pd.mean_desc(), an_engine), variance_mem(lnorm_pd.variance_desc(), an_engine);
  const layer_normalization_forward lnorm_prim(lnorm_pd);

  std::unordered_map<int, memory> lnorm_args;
  lnorm_args.insert({DNNL_ARG_SRC, src_mem});
  lnorm_args.insert({DNNL_ARG_MEAN, mean_mem});
  lnorm_args.insert({DNNL_ARG_VARIANCE, variance_mem});
  lnorm_args.insert({DNNL_ARG_SCALE, scale_mem});
  lnorm_args.insert({DNNL_ARG_SHIFT, shift_mem});
  lnorm_args.insert({DNNL_ARG_DST, src_mem});  // in place
  lnorm_prim.execute(engine_stream, lnorm_args);
  engine_stream.wait();

  std::vector<float> mean(static_cast<std::size_t>(T * N)), variance(static_cast<std::size_t>(T * N));
  read_from_dnnl_memory(src_data.data(), src_mem);
  read_from_dnnl_memory(mean.data(), mean_mem);
  read_from_dnnl_memory(variance.data(), variance_mem);
  std::cout << "primitive row 0: mean " << mean[0] << ", variance " << variance[0] << '\n';
  for (const memory::dim row : {memory::dim{0}, T * N / 2, T * N - 1}) print_row("dst", src_data, row, C);
}

}  // namespace

int main(int argc, char** argv) { return handle_example_errors(layer_normalization_example, parse_engine_kind(argc, argv)); }
