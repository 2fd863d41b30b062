// x^beta for a constant beta: which exponents are simple arithmetic. Every backend uses these forms, so that the bits agree.
#pragma once

#include <cmath>

namespace lamina::kernel {

enum class PowerForm { not_a_number, one, identity, square, cube, reciprocal, root, reciprocal_root, general };

inline PowerForm power_form(double beta) {
  if (std::isnan(beta)) return PowerForm::not_a_number;  // 1 for x = 1
  if (beta == 0) return PowerForm::one;
  if (beta == 1) return PowerForm::identity;
  if (beta == 2) return PowerForm::square;
  if (beta == 3) return PowerForm::cube;
  if (beta == -1) return PowerForm::reciprocal;
  if (beta == 0.5) return PowerForm::root;
  return beta == -0.5 ? PowerForm::reciprocal_root : PowerForm::general;
}

}  // namespace lamina::kernel
