// One execution of one op: its operands by port name, its results, its attributes. Each file of this folder uses it to
// compute a family of ops, which one function lists. backend.cpp joins the lists.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/reference/tensor.h"
#include "interface/graph.h"
#include "interface/op_schema.h"

namespace lamina::reference {

class OpRun {
 public:
  // `values` has one entry per value of the graph. Operands are read from it, and results are written to it.
  OpRun(const Graph& graph, const Op& op, std::vector<Tensor>& values) : graph_(graph), op_(op), values_(values) {}

  const Op& op() const { return op_; }
  bool has(std::string_view input) const { return graph_.input_value(op_, input) != kNoValue; }
  const Tensor& in(std::string_view input) const;
  const Tensor* in_or_null(std::string_view input) const { return has(input) ? &in(input) : nullptr; }
  const Tensor& in(size_t port) const;
  size_t input_count() const { return op_.inputs.size(); }

  bool wants(std::string_view output) const { return graph_.output_value(op_, output) != kNoValue; }
  // The result, initialised to zero. Its shape is the one that the graph inferred.
  Tensor& out(std::string_view output) const;
  Tensor& out(size_t port) const;
  // The result that `out` created before.
  Tensor& result(std::string_view output) const { return values_[static_cast<size_t>(graph_.output_value(op_, output))]; }

  template <typename T>
  const T& attribute(std::string_view name) const {
    return op_.attribute<T>(name);
  }
  double number(std::string_view name) const { return op_.number(name); }
  OpView view() const { return {graph_, op_}; }

 private:
  Tensor& make(ValueIndex index) const;

  const Graph& graph_;
  const Op& op_;
  std::vector<Tensor>& values_;
};

// Position of the channels according to data_format: NXC last, NCX second.
size_t channel_dim(const OpRun& run, int rank);

// An input may list extents at run time that the graph knew at compile time. Fails unless it lists `expected`, or the shape
// of `output`.
void require_listed(const OpRun& run, std::string_view input, std::string_view result, const Dims& expected);
void require_listed(const OpRun& run, std::string_view input, std::string_view output);

using Evaluate = void (*)(const OpRun&);
using Evaluators = std::vector<std::pair<OpKind, Evaluate>>;

Evaluators norm_evaluators();
Evaluators norm_backward_evaluators();
Evaluators batch_norm_evaluators();
Evaluators elementwise_evaluators();
Evaluators elementwise_backward_evaluators();
Evaluators binary_evaluators();
Evaluators prelu_evaluators();
Evaluators reduce_evaluators();
Evaluators softmax_evaluators();
Evaluators quantize_evaluators();
Evaluators layout_evaluators();
Evaluators indexed_evaluators();
Evaluators along_axis_evaluators();
Evaluators dropout_evaluators();
Evaluators matmul_evaluators();
Evaluators convolution_evaluators();
Evaluators pool_evaluators();
Evaluators interpolate_evaluators();
Evaluators marker_evaluators();

}  // namespace lamina::reference
