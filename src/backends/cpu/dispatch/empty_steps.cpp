#include "backends/cpu/dispatch/empty_steps.h"

#include <string>
#include <utility>

#include "backends/cpu/dispatch/program_checks.h"
#include "backends/cpu/dispatch/step_kinds.h"
#include "backends/cpu/program/stored_places.h"

namespace lamina::cpu {

namespace {

class EmptySumsStep final : public Primitive {
 public:
  explicit EmptySumsStep(EmptySums sums) : sums_(std::move(sums)) {}

  const std::string& name() const override { return name_; }
  void run(std::span<void* const> args, void*, const Executor&) const override {
    for (const EmptySums::Port& output : sums_.outputs) fill(output.tensor, args[output.arg], args);
  }
  void write(ProgramWriter& to) const override {
    to.write(StepKind::empty_sums);
    to.write(sums_.outputs.size());
    for (const EmptySums::Port& output : sums_.outputs) write_port(to, output);
    to.write(sums_.bias.has_value());
    if (sums_.bias) write_port(to, *sums_.bias);
  }

 private:
  static void write_port(ProgramWriter& to, const EmptySums::Port& port) {
    to.write(port.arg);
    write_tensor(to, port.tensor);
  }
  void fill(const LogicalTensor& tensor, void* memory, std::span<void* const> args) const {
    const Dims& shape = *tensor.shape;
    for (int64_t i = 0; i < tensor.element_count(); ++i) {
      int64_t rest = i, at = 0, bias_at = 0;
      for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) {
        at += rest % shape[d] * tensor.strides[d];
        if (sums_.bias) bias_at += rest % shape[d] * bias_stride(shape.size() - d);
      }
      const double value = sums_.bias ? load_as_double(sums_.bias->tensor.dtype, args[sums_.bias->arg], bias_at) : 0;
      store_from_double(tensor.dtype, memory, at, value);
    }
  }
  int64_t bias_stride(size_t from_the_end) const {
    const LogicalTensor& bias = sums_.bias->tensor;
    const Dims& shape = *bias.shape;
    if (from_the_end > shape.size() || shape[shape.size() - from_the_end] == 1) return 0;
    return bias.strides[shape.size() - from_the_end];
  }

  const EmptySums sums_;
  const std::string name_ = "sums over nothing";
};

class Nothing final : public Primitive {
 public:
  const std::string& name() const override { return name_; }
  void run(std::span<void* const>, void*, const Executor&) const override {}
  void write(ProgramWriter& to) const override { to.write(StepKind::nothing); }

 private:
  const std::string name_ = "nothing, no elements";
};

EmptySums::Port read_port(ProgramReader& from, size_t args) {
  const auto arg = from.get<size_t>();
  EmptySums::Port port{arg, read_tensor(from)};
  require(arg < args && is_data_type(port.tensor.dtype), "an arg of sums over nothing");
  for (const int64_t extent : *port.tensor.shape) require(extent >= 0, "the shape of sums over nothing");
  return port;
}

}  // namespace

std::unique_ptr<const Primitive> empty_sums_step(EmptySums sums) {
  return std::make_unique<const EmptySumsStep>(std::move(sums));
}

std::unique_ptr<const Primitive> read_empty_sums(ProgramReader& from, size_t args) {
  EmptySums sums;
  const size_t outputs = from.read_count();
  for (size_t o = 0; o < outputs; ++o) sums.outputs.push_back(read_port(from, args));
  if (from.get<bool>()) sums.bias = read_port(from, args);
  return empty_sums_step(std::move(sums));
}

std::unique_ptr<const Primitive> nothing_step() { return std::make_unique<const Nothing>(); }

}  // namespace lamina::cpu
