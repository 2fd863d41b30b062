// Writes the graphs of examples/graphs: `make_examples FOLDER`. Each function is one file with the function's name.
#include <fstream>
#include <iostream>
#include <map>

#include "interface/json/json.h"
#include "interface/status.h"

namespace {

using namespace lamina;

constexpr DataType f32 = DataType::f32;

// Numbers tensors and ops in order of creation; ids start at 0 for tensors and at 100 for ops.
class Example {
 public:
  using Tensor = uint64_t;

  Tensor input(Dims shape, DataType dtype = f32) { return tensor(std::move(shape), dtype, PropertyType::variable); }
  Tensor weight(Dims shape, DataType dtype = f32) { return tensor(std::move(shape), dtype, PropertyType::constant); }
  Tensor result(Dims shape, DataType dtype = f32) { return tensor(std::move(shape), dtype, PropertyType::undef); }

  void op(OpKind kind, const std::string& name, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
          Attributes attributes = {}) {
    graph_.add_op(next_op_++, kind, name, std::move(attributes), ports(inputs), ports(outputs));
  }
  Graph finish() {
    graph_.finalize();
    return std::move(graph_);
  }

 private:
  Tensor tensor(Dims shape, DataType dtype, PropertyType property) {
    LogicalTensor tensor;
    tensor.id = tensors_.size();
    tensor.dtype = dtype;
    tensor.shape = std::move(shape);
    tensor.property = property;
    tensors_.push_back(made_dense(tensor));
    return tensor.id;
  }
  std::vector<LogicalTensor> ports(const std::vector<Tensor>& ids) const {
    std::vector<LogicalTensor> result;
    for (const Tensor id : ids) result.push_back(tensors_[id]);
    return result;
  }

  Graph graph_;
  std::vector<LogicalTensor> tensors_;
  uint64_t next_op_ = 100;
};

// LayerNorm over the last axis; mean and variance are outputs for the backward pass.
Graph layer_norm() {
  Example e;
  const auto src = e.input({2048, 768});
  const auto gamma = e.weight({768});
  const auto beta = e.weight({768});
  e.op(OpKind::LayerNorm, "ln", {src, gamma, beta}, {e.result({2048, 768}), e.result({2048}), e.result({2048})},
       {{"keep_stats", true}, {"begin_norm_axis", int64_t{-1}}, {"use_affine", true}, {"epsilon", 1e-5F}});
  return e.finish();
}

Graph layer_norm_backward() {
  Example e;
  const auto src = e.input({2048, 768});
  const auto diff_dst = e.input({2048, 768});
  const auto mean = e.input({2048});
  const auto variance = e.input({2048});
  const auto gamma = e.weight({768});
  e.op(OpKind::LayerNormBackward, "ln_grad", {src, diff_dst, mean, variance, gamma},
       {e.result({2048, 768}), e.result({768}), e.result({768})}, {{"epsilon", 1e-5F}});
  return e.finish();
}

//   x ──┐
//       Add ──> LayerNorm ──> GELU ──> Quantize ──> u8
//   r ──┘
Graph add_layer_norm_gelu_quantize() {
  Example e;
  const Dims shape{1024, 1024};
  const auto x = e.input(shape);
  const auto r = e.input(shape);
  const auto gamma = e.weight({1024});
  const auto beta = e.weight({1024});
  const auto sum = e.result(shape);
  const auto normed = e.result(shape);
  const auto activated = e.result(shape);
  e.op(OpKind::Add, "residual", {x, r}, {sum});
  e.op(OpKind::LayerNorm, "ln", {sum, gamma, beta}, {normed}, {{"keep_stats", false}});
  e.op(OpKind::GELU, "gelu", {normed}, {activated});
  e.op(OpKind::Quantize, "quantize", {activated}, {e.result(shape, DataType::u8)},
       {{"scales", std::vector<float>{0.02F}}, {"zps", std::vector<int64_t>{10}}});
  return e.finish();
}

//   dst, diff ──> ReLUBackward ──> LayerNormBackward ──> Add ──> diff of the residual stream
//                                                    skip ──┘
Graph relu_backward_layer_norm_backward_add() {
  Example e;
  const Dims shape{1024, 1024};
  const auto relu_dst = e.input(shape);
  const auto diff = e.input(shape);
  const auto src = e.input(shape);
  const auto mean = e.input({1024});
  const auto variance = e.input({1024});
  const auto gamma = e.weight({1024});
  const auto skip = e.input(shape);
  const auto diff_relu = e.result(shape);
  const auto diff_norm = e.result(shape);
  e.op(OpKind::ReLUBackward, "relu_grad", {relu_dst, diff}, {diff_relu}, {{"use_dst", true}});
  e.op(OpKind::LayerNormBackward, "ln_grad", {src, diff_relu, mean, variance, gamma},
       {diff_norm, e.result({1024}), e.result({1024})}, {{"epsilon", 1e-5F}});
  e.op(OpKind::Add, "residual", {diff_norm, skip}, {e.result(shape)});
  return e.finish();
}

// bf16 data with an f32 gamma, as in language models.
Graph rms_norm() {
  Example e;
  const auto src = e.input({1024, 4096}, DataType::bf16);
  const auto gamma = e.weight({4096});
  e.op(OpKind::RMSNorm, "rms", {src, gamma}, {e.result({1024, 4096}, DataType::bf16)}, {{"epsilon", 1e-6F}});
  return e.finish();
}

Graph softmax() {
  Example e;
  const Dims shape{8, 16, 128, 128};
  const auto src = e.input(shape);
  e.op(OpKind::SoftMax, "softmax", {src}, {e.result(shape)}, {{"axis", int64_t{-1}}});
  return e.finish();
}

// Channels in the second axis: the statistics are over groups of channels and all spatial positions.
Graph group_norm() {
  Example e;
  const Dims shape{8, 64, 56, 56};
  const auto src = e.input(shape);
  const auto gamma = e.weight({64});
  const auto beta = e.weight({64});
  e.op(OpKind::GroupNorm, "gn", {src, gamma, beta}, {e.result(shape), e.result({8, 32}), e.result({8, 32})},
       {{"groups", int64_t{32}}, {"data_format", std::string("NCX")}});
  return e.finish();
}

// The sum continues along the residual stream, so it is an output beside the normalised values: End marks it.
Graph residual_block() {
  Example e;
  const Dims shape{2048, 768};
  const auto stream = e.input(shape, DataType::bf16);
  const auto branch = e.input(shape, DataType::bf16);
  const auto gamma = e.weight({768});
  const auto beta = e.weight({768});
  const auto sum = e.result(shape, DataType::bf16);
  e.op(OpKind::Add, "residual", {stream, branch}, {sum});
  e.op(OpKind::LayerNorm, "ln", {sum, gamma, beta}, {e.result(shape, DataType::bf16)}, {{"keep_stats", false}});
  e.op(OpKind::End, "end", {sum}, {});
  return e.finish();
}

const std::map<std::string, Graph (*)()> kExamples = {
    {"layer_norm", layer_norm},
    {"layer_norm_backward", layer_norm_backward},
    {"add_layer_norm_gelu_quantize", add_layer_norm_gelu_quantize},
    {"relu_backward_layer_norm_backward_add", relu_backward_layer_norm_backward_add},
    {"rms_norm", rms_norm},
    {"softmax", softmax},
    {"group_norm", group_norm},
    {"residual_block", residual_block},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_examples FOLDER\n";
    return 2;
  }
  try {
    for (const auto& [name, make] : kExamples) {
      const std::string path = std::string(argv[1]) + '/' + name + ".json";
      std::ofstream file(path, std::ios::binary | std::ios::trunc);
      file << write_graph_json(make());
      file.close();
      if (!file) throw lamina::Error(lamina::Status::invalid_arguments, path + ": cannot be written");
    }
  } catch (const lamina::Error& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
  return 0;
}
