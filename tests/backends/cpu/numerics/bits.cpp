#include "backends/cpu/numerics/bits.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "backends/cpu/backend.h"
#include "compiler/compile.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

DataType weights_of(DataType dtype) { return dtype == DataType::f64 ? DataType::f64 : DataType::f32; }

Graph layer_norm(int64_t rows, int64_t size, DataType dtype) {
  const DataType w = weights_of(dtype);
  GraphBuilder g;
  g.multi(OpKind::LayerNorm, {g.input(dtype, {rows, size}), g.input(w, {size}), g.input(w, {size})}, {}, {dtype, w, w});
  return g.finish();
}

Graph add_layer_norm_gelu(int64_t rows, int64_t size, DataType dtype) {
  const DataType w = weights_of(dtype);
  GraphBuilder g;
  const auto sum = g.op(OpKind::Add, {g.input(dtype, {rows, size}), g.input(dtype, {rows, size})});
  const auto y = g.multi(OpKind::LayerNorm, {sum, g.input(w, {size}), g.input(w, {size})}, {{"keep_stats", false}}, {dtype});
  g.op(OpKind::GELU, {y[0]});
  return g.finish();
}

Graph layer_norm_backward(int64_t rows, int64_t size, DataType dtype) {
  const DataType w = weights_of(dtype);
  GraphBuilder g;
  const auto x = g.input(dtype, {rows, size}), dy = g.input(dtype, {rows, size});
  g.multi(OpKind::LayerNormBackward, {x, dy, g.input(w, {rows}), g.input(w, {rows}), g.input(w, {size})}, {}, {dtype, w, w});
  return g.finish();
}

Graph relu_backward_layer_norm_backward_add(int64_t rows, int64_t size, DataType dtype) {
  const DataType w = weights_of(dtype);
  GraphBuilder g;
  const auto x = g.input(dtype, {rows, size}), r = g.input(dtype, {rows, size});
  const auto dy = g.op(OpKind::ReLUBackward, {r, g.input(dtype, {rows, size})});
  const auto grads = g.multi(OpKind::LayerNormBackward, {x, dy, g.input(w, {rows}), g.input(w, {rows}), g.input(w, {size})}, {},
                             {dtype, w, w});
  g.op(OpKind::Add, {grads[0], g.input(dtype, {rows, size})});
  return g.finish();
}

// The op recomputes the statistics; the walk that computes the mean also sums diff_dst.
Graph layer_norm_backward_alone(int64_t rows, int64_t size, DataType dtype) {
  const DataType w = weights_of(dtype);
  GraphBuilder g;
  const auto x = g.input(dtype, {rows, size}), dy = g.input(dtype, {rows, size});
  g.multi(OpKind::LayerNormBackward, {x, dy, g.input(w, {size})}, {{"use_stats", false}}, {dtype, w, w});
  return g.finish();
}

Graph layer_norm_bf16_weights(int64_t rows, int64_t size, DataType dtype) {
  constexpr DataType w = DataType::bf16;
  GraphBuilder g;
  g.multi(OpKind::LayerNorm, {g.input(dtype, {rows, size}), g.input(w, {size}), g.input(w, {size})}, {{"keep_stats", false}},
          {dtype});
  return g.finish();
}

Graph layer_norm_dropout(int64_t rows, int64_t size, DataType dtype) {
  const DataType w = weights_of(dtype);
  GraphBuilder g;
  const auto y =
      g.multi(OpKind::LayerNorm, {g.input(dtype, {rows, size}), g.input(w, {size}), g.input(w, {size})}, {}, {dtype, w, w});
  g.multi(OpKind::Dropout, {y[0], g.scalar(DataType::s64), g.scalar(DataType::s64), g.scalar(DataType::f32)}, {},
          {dtype, DataType::u8});
  return g.finish();
}

// Only AVX-512 packs whole chunks of bytes. Rows of up to some thousands of bytes stay live as numbers between phases.
Graph layer_norm_of_bytes(int64_t rows, int64_t size, DataType dtype) {
  GraphBuilder g;
  const Attributes from{{"scales", std::vector<float>{0.3f}}, {"zps", std::vector<int64_t>{1}}},
      to{{"scales", std::vector<float>{0.013f}}};
  const auto x = g.op(OpKind::Dequantize, {g.input(dtype, {rows, size})}, from, DataType::f32);
  const auto y =
      g.op(OpKind::LayerNorm, {x, g.input(DataType::f32, {size}), g.input(DataType::f32, {size})}, {{"keep_stats", false}});
  g.op(OpKind::Quantize, {y}, to, dtype);
  return g.finish();
}

Graph rms_norm(int64_t rows, int64_t size, DataType dtype) {
  GraphBuilder g;
  g.op(OpKind::RMSNorm, {g.input(dtype, {rows, size}), g.input(weights_of(dtype), {size})});
  return g.finish();
}

Graph rms_norm_backward(int64_t rows, int64_t size, DataType dtype) {
  const DataType w = weights_of(dtype);
  GraphBuilder g;
  g.multi(OpKind::RMSNormBackward, {g.input(dtype, {rows, size}), g.input(dtype, {rows, size}), g.input(w, {size})}, {},
          {dtype, w});
  return g.finish();
}

Graph group_norm(int64_t rows, int64_t size, DataType dtype) {
  const DataType w = weights_of(dtype);
  GraphBuilder g;
  g.multi(OpKind::GroupNorm, {g.input(dtype, {rows, 4, (size + 1) / 2}), g.input(w, {4}), g.input(w, {4})},
          {{"groups", int64_t{2}}, {"data_format", std::string("NCX")}}, {dtype, w, w});
  return g.finish();
}

Graph group_norm_backward(int64_t rows, int64_t size, DataType dtype) {
  const DataType w = weights_of(dtype);
  GraphBuilder g;
  const auto x = g.input(dtype, {rows, 4, (size + 1) / 2}), dy = g.input(dtype, {rows, 4, (size + 1) / 2});
  g.multi(OpKind::GroupNormBackward, {x, dy, g.input(w, {rows, 2}), g.input(w, {rows, 2}), g.input(w, {4})},
          {{"groups", int64_t{2}}, {"data_format", std::string("NCX")}}, {dtype, w, w});
  return g.finish();
}

Graph softmax(int64_t rows, int64_t size, DataType dtype) {
  GraphBuilder g;
  g.op(OpKind::SoftMax, {g.input(dtype, {rows, size})}, {{"axis", int64_t{-1}}});
  return g.finish();
}

Graph softmax_backward(int64_t rows, int64_t size, DataType dtype) {
  GraphBuilder g;
  g.op(OpKind::SoftMaxBackward, {g.input(dtype, {rows, size}), g.input(dtype, {rows, size})}, {{"axis", int64_t{-1}}});
  return g.finish();
}

// The normalised axis is not the contiguous one.
Graph softmax_inner_axis(int64_t rows, int64_t size, DataType dtype) {
  GraphBuilder g;
  g.op(OpKind::SoftMax, {g.input(dtype, {rows, size, 2})}, {{"axis", int64_t{1}}});
  return g.finish();
}

// Returns a number of 24 random bits in [0, 1), the same on every machine, unlike the results of a math library.
double unit_value(uint64_t key) {
  key += 0x9e3779b97f4a7c15u;
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
  key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((key ^ (key >> 31)) >> 40) * 0x1p-24;
}

double value_for(const std::string& port, double unit) {
  if (port == "seed" || port == "offset") return 42;
  if (port == "probability") return 0.25;
  return port == "variance" || port == "gamma" ? 0.5 + unit : unit * 4 - 1.5;
}

// Memory for a tensor that starts `offset` elements after an aligned address.
class PlacedTensor {
 public:
  PlacedTensor(const LogicalTensor& tensor, int64_t offset)
      : tensor_(tensor), begin_(static_cast<size_t>(bytes_of(tensor.dtype, offset))) {
    size_t bytes = begin_ + static_cast<size_t>(tensor.byte_size()) + 64;
    bytes = (bytes + 63) / 64 * 64;
    memory_.reset(static_cast<char*>(std::aligned_alloc(64, bytes)));
    std::memset(memory_.get(), 0xa5, bytes);  // the pattern remains between rows and outside outputs
  }
  char* data() const { return memory_.get() + begin_; }

 private:
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  LogicalTensor tensor_;
  size_t begin_;
  std::unique_ptr<char, Free> memory_;
};

}  // namespace

const std::vector<BitsCase>& bits_cases() {
  static const std::vector<BitsCase> cases = {
      {"layer_norm", layer_norm},
      {"add_layer_norm_gelu", add_layer_norm_gelu},
      {"layer_norm_backward", layer_norm_backward},
      {"relu_backward_layer_norm_backward_add", relu_backward_layer_norm_backward_add},
      {"layer_norm_backward_alone", layer_norm_backward_alone},
      {"layer_norm_bf16_weights", layer_norm_bf16_weights, {DataType::bf16}},
      {"layer_norm_dropout", layer_norm_dropout, {DataType::f32}, true},
      {"layer_norm_of_bytes", layer_norm_of_bytes, {DataType::s8, DataType::u8}},
      {"rms_norm", rms_norm},
      {"rms_norm_backward", rms_norm_backward},
      {"group_norm", group_norm},
      {"group_norm_backward", group_norm_backward},
      {"softmax", softmax},
      {"softmax_backward", softmax_backward},
      {"softmax_inner_axis", softmax_inner_axis},
  };
  return cases;
}

BitsRun::BitsRun(const BitsCase& bits_case, int64_t rows, int64_t size, DataType dtype, cpu::Machine machine)
    : rows_(rows), machine_(std::move(machine)) {
  auto partitions = partition_graph(bits_case.build(rows, size, dtype), PartitionPolicy::fusion, CpuCapabilities{});
  EXPECT_EQ(partitions.size(), 1u) << bits_case.name;
  partition_ = std::make_unique<Partition>(std::move(partitions.at(0)));
  ports_ = port_tensors(*partition_);
  for (size_t i = 0; i < ports_.inputs.size(); ++i) {
    inputs_.push_back(make_input(ports_.inputs[i], port_name_of(*partition_->graph, partition_->inputs[i]), i));
  }
}

bool BitsRun::has_rows(const LogicalTensor& tensor) const { return tensor.rank() > 0 && (*tensor.shape)[0] == rows_; }

BitsRun::Input BitsRun::make_input(const LogicalTensor& tensor, const std::string& port, size_t number) const {
  Input input{has_rows(tensor) ? std::min<int64_t>(rows_, 7) : 1, {}};
  const int64_t count = has_rows(tensor) ? tensor.element_count() / rows_ : tensor.element_count();
  for (int64_t row = 0; row < input.rows; ++row) {
    std::string& data = input.row.emplace_back(static_cast<size_t>(bytes_of(tensor.dtype, count)), '\0');
    for (int64_t i = 0; i < count; ++i) {
      const double unit = unit_value((number * 7 + static_cast<uint64_t>(row)) << 32 | static_cast<uint64_t>(i));
      store_from_double(tensor.dtype, data.data(), i, value_for(port, unit));
    }
  }
  return input;
}

std::vector<LogicalTensor> BitsRun::widened(std::vector<LogicalTensor> tensors, int64_t gap) const {
  for (LogicalTensor& tensor : tensors) {
    if (tensor.rank() > 1 && has_rows(tensor)) tensor.strides[0] += gap;
  }
  return tensors;
}

const Executable& BitsRun::compiled(const RunVariant& variant) {
  auto& executable = executables_[{variant.most, variant.row_gap}];
  if (executable == nullptr) {
    const Subgraph subgraph =
        extract_subgraph(*partition_, widened(ports_.inputs, variant.row_gap), widened(ports_.outputs, variant.row_gap));
    executable = compiler::compile_subgraph(
        subgraph, *cpu::make_backend(variant.most == nullptr ? machine_ : cpu::capped(machine_, *variant.most)));
  }
  return *executable;
}

std::vector<OutputBits> BitsRun::operator()(const RunVariant& variant) {
  const Executable& executable = compiled(variant);
  const std::vector<LogicalTensor> in_tensors = widened(ports_.inputs, variant.row_gap),
                                   out_tensors = widened(ports_.outputs, variant.row_gap);
  const auto rows_of = [&](const LogicalTensor& tensor) { return has_rows(tensor) ? rows_ : 1; };
  const auto row_at = [](char* data, const LogicalTensor& tensor, int64_t row) {
    return row == 0 ? data : data + bytes_of(tensor.dtype, row * tensor.strides[0]);
  };
  std::vector<PlacedTensor> inputs, outputs;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (size_t i = 0; i < in_tensors.size(); ++i) {
    char* const data = inputs.emplace_back(in_tensors[i], variant.offset).data();
    for (int64_t r = 0; r < rows_of(in_tensors[i]); ++r) {
      const std::string& row = inputs_[i].row[static_cast<size_t>(r % inputs_[i].rows)];
      std::memcpy(row_at(data, in_tensors[i], r), row.data(), row.size());
    }
    in.push_back(data);
  }
  for (const LogicalTensor& tensor : out_tensors) out.push_back(outputs.emplace_back(tensor, variant.offset).data());
  if (variant.in_place) {
    for (const auto& [input, output] : executable.inplace_ports()) out[output] = const_cast<void*>(in[input]);
  }
  ExecutionContext context;
  context.threads = variant.threads;
  executable.execute(context, in, out);
  std::vector<OutputBits> result;
  for (size_t o = 0; o < out_tensors.size(); ++o) {
    const LogicalTensor& tensor = out_tensors[o];
    OutputBits bits{rows_of(tensor), {}};
    const auto row_bytes = static_cast<size_t>(bytes_of(tensor.dtype, tensor.element_count() / bits.rows));
    for (int64_t r = 0; r < bits.rows; ++r) bits.elements.append(row_at(static_cast<char*>(out[o]), tensor, r), row_bytes);
    result.push_back(std::move(bits));
  }
  return result;
}

uint64_t hash_of(const std::vector<OutputBits>& outputs) {
  uint64_t hash = 14695981039346656037u;
  for (const OutputBits& output : outputs) {
    for (const char byte : output.elements) hash = (hash ^ static_cast<uint8_t>(byte)) * 1099511628211u;
  }
  return hash;
}

}  // namespace lamina::testing
