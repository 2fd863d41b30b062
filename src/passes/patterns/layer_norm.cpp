#include "passes/patterns/all.h"
#include "passes/patterns/norms.h"

namespace lamina::pattern {
namespace {

//   x ──┬──> row mean ──┐
//       └────────────> Subtract ──┬──> Square ──> row mean ──> Add epsilon ──> Sqrt ──┐
//                                 └────────────────────────────────────────────────> Divide ──> (Multiply gamma, Add beta) ──>
//                                 dst
// Other ops may also read mean and variance if both have the shape of LayerNorm's outputs.
struct LayerNormTerms {
  Term x = value("x"), gamma = value("gamma"), beta = value("beta");
  Term mean = row_mean(x).named("mean");
  Term centered = x - mean;
  Term variance = either({row_mean(square_of_difference(x, mean)), row_mean(square(x)) - square(mean)}).named("variance");
  Term shifted = variance + number("epsilon");
  Term rstd = reciprocal_root(shifted);

  // Older frameworks write batch normalisation as x * rstd - mean * rstd, so this form matches too.
  Term normalized = either({over_root(centered, shifted), x* rstd - mean* rstd});
  Term scale = either({rstd * gamma, op(OpKind::Divide, {gamma, root(shifted)})});
  Term scaled = normalized_and_scaled(centered, shifted, gamma);
  Term affine = either({scaled + beta, op(OpKind::BiasAdd, {scaled, beta}).where([](const Op& op) {
                          return op.attribute<std::string>("data_format") == "NXC";
                        }),
                        x* scale + (beta - mean * scale), (x * scale - mean * scale) + beta});
};

const std::vector<std::string_view> kAffine{"gamma", "beta"};

RaisedOp raised(const Match& match, bool affine) {
  RaisedOp op{OpKind::LayerNorm,
              norm_attributes(match, kAffine),
              {{"src", norm_src(match)}},
              {{"mean", "mean"}, {"variance", "variance"}}};
  op.attributes["use_affine"] = affine;
  if (affine) {
    op.inputs.emplace_back("gamma", match.value("gamma"));
    op.inputs.emplace_back("beta", match.value("beta"));
  }
  return op;
}

Pattern pattern_of(std::string name, Term body) {
  return {std::move(name), std::move(body), is_cast_or_unit_reshape,
          [](const Match& match) { return is_norm(match, kAffine); }};
}

}  // namespace

Decomposition layer_norm_with_affine() {
  return {pattern_of("layer_norm.affine", LayerNormTerms().affine), [](const Match& match) { return raised(match, true); }};
}

Decomposition layer_norm() {
  return {pattern_of("layer_norm", LayerNormTerms().normalized), [](const Match& match) { return raised(match, false); }};
}

}  // namespace lamina::pattern
