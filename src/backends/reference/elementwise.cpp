// Ops that map each element of one tensor. The formulas stay accurate where the textbook's would cancel or overflow.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/reference/op_run.h"
#include "backends/reference/scalar_functions.h"

namespace lamina::reference {
namespace {

template <typename Function>
void map(const OpRun& run, Function function) {
  const Tensor& src = run.in(0);
  Tensor& dst = run.out(0);
  parallel_elements(src.size(), [&](int64_t i) { dst[i] = function(src[i]); });
}

template <double (*Function)(double)>
void map_by(const OpRun& run) {
  map(run, Function);
}

double absolute(double x) { return std::fabs(x); }
double exponential(double x) { return std::exp(x); }
double logarithm(double x) { return std::log(x); }
double reciprocal(double x) { return 1 / x; }
double relu(double x) { return x < 0 ? 0 : x; }  // NaN stays NaN
double square(double x) { return x * x; }
double sine(double x) { return std::sin(x); }
double cosine(double x) { return std::cos(x); }
double logarithm_of_more(double x) { return std::log1p(x); }
double exponential_less_one(double x) { return std::expm1(x); }
double complement_of_erf(double x) { return std::erfc(x); }
double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
double truncated(double x) { return std::trunc(x); }
double square_root(double x) { return std::sqrt(x); }
double tangent(double x) { return std::tanh(x); }
double hard_swish(double x) { return x * (clamped(x + 3, 0, 6) / 6); }

void clamp(const OpRun& run) {
  const double low = run.number("min"), high = run.number("max");
  map(run, [=](double x) { return clamped(x, low, high); });
}

void elu(const OpRun& run) {
  const double alpha = run.number("alpha");
  map(run, [=](double x) { return x > 0 ? x : alpha * std::expm1(x); });
}

void gelu(const OpRun& run) {
  const bool tanh_form = run.attribute<std::string>("mode") == "gelu_tanh";
  map(run, tanh_form ? gelu_tanh : gelu_erf);
}

void hard_sigmoid(const OpRun& run) {
  const double alpha = run.number("alpha"), beta = run.number("beta");
  map(run, [=](double x) { return clamped(alpha * x + beta, 0, 1); });
}

void leaky_relu(const OpRun& run) {
  const double alpha = run.number("alpha");
  map(run, [=](double x) { return x >= 0 ? x : alpha * x; });
}

void soft_plus(const OpRun& run) {
  const double beta = run.number("beta");
  map(run, [=](double x) { return (beta * x > 0 ? x : 0) + std::log1p(std::exp(-std::abs(beta * x))) / beta; });
}

void swish(const OpRun& run) {
  const double alpha = run.number("alpha");
  map(run, [=](double x) { return x * sigmoid(alpha * x); });
}

void power(const OpRun& run) {
  const double beta = run.number("beta");
  map(run, [=](double x) { return std::pow(x, beta); });
}

}  // namespace

Evaluators elementwise_evaluators() {
  return {{OpKind::Abs, map_by<absolute>},
          {OpKind::Clamp, clamp},
          {OpKind::Cos, map_by<cosine>},
          {OpKind::Sin, map_by<sine>},
          {OpKind::Elu, elu},
          {OpKind::Exp, map_by<exponential>},
          {OpKind::Erfc, map_by<complement_of_erf>},
          {OpKind::Expm1, map_by<exponential_less_one>},
          {OpKind::GELU, gelu},
          {OpKind::HardSigmoid, hard_sigmoid},
          {OpKind::HardSwish, map_by<hard_swish>},
          {OpKind::LeakyReLU, leaky_relu},
          {OpKind::Log, map_by<logarithm>},
          {OpKind::Log1p, map_by<logarithm_of_more>},
          {OpKind::Mish, map_by<mish>},
          {OpKind::Pow, power},
          {OpKind::Reciprocal, map_by<reciprocal>},
          {OpKind::ReLU, map_by<relu>},
          {OpKind::Round, map_by<round_half_even>},
          {OpKind::Sigmoid, map_by<sigmoid>},
          {OpKind::Sign, map_by<sign>},
          {OpKind::SoftPlus, soft_plus},
          {OpKind::Sqrt, map_by<square_root>},
          {OpKind::Square, map_by<square>},
          {OpKind::Swish, swish},
          {OpKind::Tanh, map_by<tangent>},
          {OpKind::Trunc, map_by<truncated>}};
}

}  // namespace lamina::reference
