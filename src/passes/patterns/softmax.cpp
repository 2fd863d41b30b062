#include "passes/patterns/all.h"
#include "passes/patterns/rows.h"
#include "passes/patterns/spellings.h"

namespace lamina::pattern {
namespace {

//   x ──┬──> row max ──┐
//       └───────────> Subtract ──> Exp ──┬──> row sum ──┐
//                                        └───────────> Divide ──> dst
// The maximum only prevents overflow of Exp; the formula is the same without it. LogSoftmax is the logarithm of the result,
// written as a difference. Exp of that is SoftMax again.
// Each shifted argument has separate formulas, because exp(x - max) over the sum of exp(x) is not a softmax.
struct SoftmaxTerms {
  Term x = value("x");
  Term max = row_max(x);
  Term log_sum(Term shifted) const { return logarithm(row_sum(exponential(std::move(shifted)))); }
  Term ratio(Term shifted) const { return exponential(shifted) / row_sum(exponential(shifted)); }

  Term log_softmax() const { return either({(x - max) - log_sum(x - max), x - (max + log_sum(x - max)), x - log_sum(x)}); }
  Term softmax() const { return either({ratio(x - max), ratio(x), exponential(log_softmax())}); }
};

bool is_softmax(const Match& match) {
  const auto rows = row_shapes(match, "x", {});
  return rows && rows->axes.size() == 1;
}

RaisedOp raised(const Match& match, OpKind kind) {
  const int axis = row_shapes(match, "x", {})->axes.front();
  const DataType dtype = match.graph().tensor(match.root_op().outputs[0]).dtype;
  return {kind, {{"axis", int64_t{axis}}}, {{"src", match.value("x", dtype)}}};
}

}  // namespace

Decomposition log_softmax() {
  return {{"log_softmax", SoftmaxTerms().log_softmax(), is_cast_or_unit_reshape, is_softmax},
          [](const Match& match) { return raised(match, OpKind::LogSoftmax); }};
}

Decomposition softmax() {
  return {{"softmax", SoftmaxTerms().softmax(), is_cast_or_unit_reshape, is_softmax},
          [](const Match& match) { return raised(match, OpKind::SoftMax); }};
}

}  // namespace lamina::pattern
