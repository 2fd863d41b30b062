#include "backends/reference/op_run.h"

#include "interface/status.h"

namespace lamina::reference {

const Tensor& OpRun::in(std::string_view input) const {
  const ValueIndex index = graph_.input_value(op_, input);
  LAMINA_CHECK(index != kNoValue, join(describe(op_), " has no input ", input));
  return values_[static_cast<size_t>(index)];
}

const Tensor& OpRun::in(size_t port) const {
  LAMINA_CHECK(port < op_.inputs.size() && op_.inputs[port] != kNoValue, join(describe(op_), " has no input ", port));
  return values_[static_cast<size_t>(op_.inputs[port])];
}

Tensor& OpRun::out(std::string_view output) const {
  const ValueIndex index = graph_.output_value(op_, output);
  LAMINA_CHECK(index != kNoValue, join(describe(op_), " has no output ", output));
  return make(index);
}

Tensor& OpRun::out(size_t port) const {
  LAMINA_CHECK(port < op_.outputs.size() && op_.outputs[port] != kNoValue, join(describe(op_), " has no output ", port));
  return make(op_.outputs[port]);
}

Tensor& OpRun::make(ValueIndex index) const {
  const LogicalTensor& description = graph_.tensor(index);
  LAMINA_CHECK(description.has_full_shape(), join(describe(op_), " makes ", describe(description)));
  Tensor& value = values_[static_cast<size_t>(index)];
  value = zeros(description.dtype, *description.shape);
  return value;
}

size_t channel_dim(const OpRun& run, int rank) {
  return run.attribute<std::string>("data_format") == "NXC" ? static_cast<size_t>(rank - 1) : 1;
}

void require_listed(const OpRun& run, std::string_view input, std::string_view result, const Dims& expected) {
  const Tensor* given = run.in_or_null(input);
  if (given == nullptr) return;
  Dims listed;
  for (const double extent : given->values) listed.push_back(static_cast<int64_t>(extent));
  if (listed != expected)
    throw Error(Status::invalid_shape, join(describe(run.op()), ": input ", input, " holds ", describe(listed), ", allowed is ",
                                            describe(expected), ", for which the graph was compiled as ", result));
}

void require_listed(const OpRun& run, std::string_view input, std::string_view output) {
  require_listed(run, input, output, run.result(output).shape);
}

}  // namespace lamina::reference
