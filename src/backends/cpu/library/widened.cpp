#include "backends/cpu/library/widened.h"

#include <algorithm>
#include <array>

#include "backends/cpu/library/narrow_floats.h"
#include "backends/cpu/threads/executor.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

constexpr int64_t kChunk = 16384;  // elements that a thread converts at a time
constexpr size_t kMaxPorts = 8;    // of any library op
constexpr size_t kMaxArgs = 16;    // with the operands of the following ops

class Widened final : public Primitive {
 public:
  Widened(const kernel::LibraryStep& step, std::unique_ptr<const Primitive> primitive)
      : primitive_(std::move(primitive)), name_(join(primitive_->name(), ", in f32")), inputs_(step.inputs.size()) {
    scratch_bytes_ = aligned(primitive_->scratch_bytes());
    for (const auto* tensors : {&step.inputs, &step.outputs}) {
      for (const LogicalTensor& tensor : *tensors) {
        ports_.push_back({tensor, scratch_bytes_});
        if (is_copied(tensor)) scratch_bytes_ += aligned(static_cast<size_t>(tensor.span()) * sizeof(float));
      }
    }
    LAMINA_CHECK(ports_.size() <= kMaxPorts && ports_.size() + step.operands.size() <= kMaxArgs,
                 join(ports_.size(), " ports of ", describe(step.op)));
  }

  const Primitive& primitive() const { return *primitive_; }
  const std::string& name() const override { return name_; }
  size_t scratch_bytes() const override { return scratch_bytes_; }

  void run(std::span<void* const> args, void* scratch, const Executor& executor) const override {
    std::array<void*, kMaxArgs> wide{};
    std::copy(args.begin() + static_cast<std::ptrdiff_t>(ports_.size()), args.end(),
              wide.begin() + static_cast<std::ptrdiff_t>(ports_.size()));
    for (size_t i = 0; i < ports_.size(); ++i) {
      const bool is_packed = i == kWeights && packed_bytes() > 0;
      const bool is_widened = args[i] != nullptr && !is_packed && is_copied(ports_[i].tensor);
      wide[i] = is_widened ? static_cast<char*>(scratch) + ports_[i].at : args[i];
      if (i < inputs_ && wide[i] != args[i]) read(ports_[i].tensor, args[i], static_cast<float*>(wide[i]), executor);
    }
    primitive_->run({wide.data(), args.size()}, scratch, executor);
    for (size_t i = inputs_; i < ports_.size(); ++i) {
      if (wide[i] != args[i]) write(ports_[i].tensor, static_cast<const float*>(wide[i]), args[i], executor);
    }
  }

  size_t packed_bytes() const override { return primitive_->packed_bytes(); }
  void pack(const void* weights, void* packed, void* scratch, const Executor& executor) const override {
    const Port& port = ports_[kWeights];
    if (!is_copied(port.tensor)) return primitive_->pack(weights, packed, scratch, executor);
    auto* const wide = reinterpret_cast<float*>(static_cast<char*>(scratch) + port.at);
    read(port.tensor, weights, wide, executor);
    primitive_->pack(wide, packed, scratch, executor);
  }

 private:
  static constexpr size_t kWeights = 1;
  struct Port {
    LogicalTensor tensor;
    size_t at;  // of its copy, in scratch
  };

  static bool is_copied(const LogicalTensor& tensor) { return !tensor.is_empty_port() && is_narrow_float(tensor.dtype); }

  // The copy has the strides of the tensor, so it includes the gaps between its elements.
  static void read(const LogicalTensor& tensor, const void* source, float* target, const Executor& executor) {
    for_each_chunk(tensor.span(), executor, [&](int64_t at, int64_t count) {
      widen(tensor.dtype, static_cast<const uint16_t*>(source) + at, target + at, count);
    });
  }

  // The gaps between elements of an output belong to the user and must not be written.
  static void write(const LogicalTensor& tensor, const float* source, void* memory, const Executor& executor) {
    auto* const target = static_cast<uint16_t*>(memory);
    if (tensor.span() == tensor.element_count()) {
      for_each_chunk(tensor.span(), executor,
                     [&](int64_t at, int64_t count) { narrow(tensor.dtype, source + at, target + at, count); });
      return;
    }
    const Dims& shape = *tensor.shape;
    const int64_t inner = shape.back();
    for_each_tile(tensor.element_count() / inner, executor, [&](int64_t row, int) {
      int64_t rest = row, at = 0;
      for (size_t d = shape.size() - 1; d-- > 0; rest /= shape[d]) at += rest % shape[d] * tensor.strides[d];
      for (int64_t i = 0; i < inner; ++i, at += tensor.strides.back()) narrow(tensor.dtype, source + at, target + at, 1);
    });
  }

  template <typename Convert>
  static void for_each_chunk(int64_t elements, const Executor& executor, const Convert& convert) {
    for_each_tile((elements + kChunk - 1) / kChunk, executor,
                  [&](int64_t i, int) { convert(i * kChunk, std::min(kChunk, elements - i * kChunk)); });
  }

  std::unique_ptr<const Primitive> primitive_;
  std::string name_;
  size_t inputs_;
  std::vector<Port> ports_;  // inputs, then outputs
  size_t scratch_bytes_ = 0;
};

}  // namespace

std::unique_ptr<const Primitive> widened(const kernel::LibraryStep& step, const PrimitiveUse& use, CompileStep compile) {
  kernel::LibraryStep wide = step;
  for (auto* tensors : {&wide.inputs, &wide.outputs}) {
    for (LogicalTensor& tensor : *tensors) {
      if (!tensor.is_empty_port() && is_narrow_float(tensor.dtype)) tensor.dtype = DataType::f32;
    }
  }
  PrimitiveUse wide_use = use;
  if (use.like != nullptr) wide_use.like = &dynamic_cast<const Widened&>(*use.like).primitive();
  std::unique_ptr<const Primitive> primitive = compile(wide, wide_use);
  return std::make_unique<Widened>(step, std::move(primitive));
}

}  // namespace lamina::cpu
