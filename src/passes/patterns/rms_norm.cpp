#include "passes/patterns/all.h"
#include "passes/patterns/norms.h"

namespace lamina::pattern {
namespace {

//   x ──┬──> Square ──> row mean ──> Add epsilon ──> Sqrt ──┐
//       └────────────────────────────────────────────────> Divide ──> (Multiply gamma) ──> dst
const std::vector<std::string_view> kGamma{"gamma"};

Term shifted(Term x) { return row_mean(square(std::move(x))) + number("epsilon"); }

RaisedOp raised(const Match& match) {
  RaisedOp op{OpKind::RMSNorm, norm_attributes(match, kGamma), {{"src", norm_src(match)}}};
  if (match.has("gamma")) op.inputs.emplace_back("gamma", match.value("gamma"));
  return op;
}

Pattern pattern_of(std::string name, Term body) {
  return {std::move(name), std::move(body), is_cast_or_unit_reshape, [](const Match& match) { return is_norm(match, kGamma); }};
}

}  // namespace

Decomposition rms_norm_with_gamma() {
  const Term x = value("x");
  return {pattern_of("rms_norm.gamma", normalized_and_scaled(x, shifted(x), value("gamma"))), raised};
}

Decomposition rms_norm() {
  const Term x = value("x");
  return {pattern_of("rms_norm", over_root(x, shifted(x))), raised};
}

}  // namespace lamina::pattern
