// Gradients of the elementwise ops: diff_src = diff_dst * slope. Input 0 is src, or dst if use_dst is true.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "backends/reference/op_run.h"
#include "backends/reference/scalar_functions.h"

namespace lamina::reference {
namespace {

// formula(x, dy), where x is input 0 and dy is diff_dst.
template <typename Formula>
void map(const OpRun& run, Formula formula) {
  const Tensor& x = run.in(0);
  const Tensor& diff_dst = run.in(1);
  Tensor& diff_src = run.out(0);
  parallel_elements(x.size(), [&](int64_t i) { diff_src[i] = formula(x[i], diff_dst[i]); });
}

bool uses_dst(const OpRun& run) { return run.attribute<bool>("use_dst"); }

void abs_backward(const OpRun& run) {
  map(run, [](double x, double dy) { return x > 0 ? dy : x < 0 ? -dy : 0; });
}

// The condition is the same for src and dst.
void clamp_backward(const OpRun& run) {
  const double low = run.number("min"), high = run.number("max");
  map(run, [=](double x, double dy) { return low < x && x < high ? dy : 0; });
}

void elu_backward(const OpRun& run) {
  const double alpha = run.number("alpha");
  if (uses_dst(run)) return map(run, [=](double dst, double dy) { return dst > 0 ? dy : dy * (dst + alpha); });
  map(run, [=](double x, double dy) { return x > 0 ? dy : dy * alpha * std::exp(x); });
}

// d/dx of x * cdf(x) is cdf(x) + x * pdf(x).
double gelu_erf_slope(double x) { return normal_cdf(x) + x * normal_pdf(x); }

// With s = sigmoid(v(x)): d/dx of x * s is s + x * s * (1 - s) * v'(x), and 1 - s is sigmoid(-v).
// Beyond |x| = 1000 the slope is 0 or 1.
double gelu_tanh_slope(double src) {
  const double x = std::isnan(src) ? src : std::clamp(src, -1000.0, 1000.0);
  const double v = gelu_tanh_argument(x);
  const double slope_of_v = 2 * std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x);
  return sigmoid(v) + x * sigmoid(v) * sigmoid(-v) * slope_of_v;
}

void gelu_backward(const OpRun& run) {
  const bool tanh_form = run.attribute<std::string>("mode") == "gelu_tanh";
  map(run, [=](double x, double dy) { return dy * (tanh_form ? gelu_tanh_slope(x) : gelu_erf_slope(x)); });
}

void hard_sigmoid_backward(const OpRun& run) {
  const double alpha = run.number("alpha"), beta = run.number("beta");
  map(run, [=](double x, double dy) {
    const double scaled = alpha * x;  // exact for f32; with beta added, it would be rounded
    return -beta < scaled && scaled < 1 - beta ? alpha * dy : 0;
  });
}

void hard_swish_backward(const OpRun& run) {
  map(run, [](double x, double dy) { return x >= 3 ? dy : x > -3 ? dy * ((2 * x + 3) / 6) : 0; });
}

// With e = e^x and t = tanh(softplus(x)): mish' = t + x * sigmoid(x) * (1 - t^2), and 1 - t^2 = 4 (1 + e)^2 / (n + 2)^2 for
// n = e * (e + 2), which together with sigmoid(x) = e / (1 + e) gives 4 e (1 + e) / (n + 2)^2.
double mish_slope(double x) {
  if (x > 20) return 1;
  const double e = std::exp(x);
  const double m = e * (e + 2) + 2;
  return tanh_of_softplus(x) + x * (4 * e * (1 + e) / (m * m));
}

void mish_backward(const OpRun& run) {
  map(run, [](double x, double dy) { return dy * mish_slope(x); });
}

void relu_backward(const OpRun& run) {
  map(run, [](double x, double dy) { return x > 0 ? dy : 0; });
}

void sigmoid_backward(const OpRun& run) {
  if (uses_dst(run)) return map(run, [](double dst, double dy) { return dy * dst * (1 - dst); });
  map(run, [](double x, double dy) { return dy * sigmoid(x) * sigmoid(-x); });
}

void soft_plus_backward(const OpRun& run) {
  const double beta = run.number("beta");
  map(run, [=](double x, double dy) { return dy * sigmoid(beta * x); });
}

void sqrt_backward(const OpRun& run) {
  if (uses_dst(run)) return map(run, [](double dst, double dy) { return dy / (2 * dst); });
  map(run, [](double x, double dy) { return dy / (2 * std::sqrt(x)); });
}

// 1 - tanh(x)^2 is 1 / cosh(x)^2, which does not cancel for large x. Where cosh overflows, the slope is 0.
void tanh_backward(const OpRun& run) {
  if (uses_dst(run)) return map(run, [](double dst, double dy) { return dy * (1 - dst) * (1 + dst); });
  map(run, [](double x, double dy) { return dy / std::cosh(x) / std::cosh(x); });
}

}  // namespace

Evaluators elementwise_backward_evaluators() {
  return {{OpKind::AbsBackward, abs_backward},
          {OpKind::ClampBackward, clamp_backward},
          {OpKind::EluBackward, elu_backward},
          {OpKind::GELUBackward, gelu_backward},
          {OpKind::HardSigmoidBackward, hard_sigmoid_backward},
          {OpKind::HardSwishBackward, hard_swish_backward},
          {OpKind::MishBackward, mish_backward},
          {OpKind::ReLUBackward, relu_backward},
          {OpKind::SigmoidBackward, sigmoid_backward},
          {OpKind::SoftPlusBackward, soft_plus_backward},
          {OpKind::SqrtBackward, sqrt_backward},
          {OpKind::TanhBackward, tanh_backward}};
}

}  // namespace lamina::reference
