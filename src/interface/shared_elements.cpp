#include "interface/shared_elements.h"

#include <algorithm>
#include <array>
#include <utility>

#include "interface/status.h"

namespace lamina {
namespace {

__extension__ using Wide = __int128;

// step * x for some x in 0..most.
struct Term {
  Wide step = 0, most = 0;
};

Wide greatest_common_divisor(Wide a, Wide b) {
  while (b != 0) a = std::exchange(b, a % b);
  return a;
}

// Whether terms can add up to a target. Allocates nothing.
class BoundedSum {
 public:
  void add(Wide step, Wide most) {
    if (step == 0 || most == 0) return;
    for (size_t i = 0; i < size_; ++i) {
      if (terms_[i].step != step) continue;
      terms_[i].most += most;
      return;
    }
    terms_[size_++] = {step, most};
  }

  bool may_be(Wide target) {
    std::sort(terms_.begin(), terms_.begin() + size_, [](const Term& a, const Term& b) { return a.step > b.step; });
    reach_[size_] = 0;
    divisor_[size_] = 0;
    for (size_t i = size_; i-- > 0;) {
      reach_[i] = reach_[i + 1] + terms_[i].step * terms_[i].most;
      divisor_[i] = greatest_common_divisor(divisor_[i + 1], terms_[i].step);
    }
    steps_left_ = kMaxSteps;
    return search(0, target);
  }

 private:
  // Strides of real tensors need a few steps; adversarial strides (products of primes) could need exponentially many.
  static constexpr int kMaxSteps = 20000;

  bool search(size_t index, Wide target) {
    if (target < 0 || target > reach_[index]) return false;
    if (target == 0 || --steps_left_ < 0) return true;
    if (target % divisor_[index] != 0) return false;
    const auto [step, most] = terms_[index];
    const Wide left_over = target - reach_[index + 1];
    const Wide least = left_over <= 0 ? 0 : (left_over + step - 1) / step;
    for (Wide x = std::min(most, target / step); x >= least; --x) {
      if (search(index + 1, target - x * step)) return true;
    }
    return false;
  }

  std::array<Term, 2 * kMaxRank + 1> terms_{};
  std::array<Wide, 2 * kMaxRank + 2> reach_{};    // the largest sum of the terms from here on
  std::array<Wide, 2 * kMaxRank + 2> divisor_{};  // the greatest common divisor of those terms' steps
  size_t size_ = 0;
  int steps_left_ = 0;
};

bool is_empty(const LogicalTensor& tensor) { return tensor.span() == 0; }

// Adds the terms of a tensor's elements and returns the extent, in bits, that they span.
Wide add_elements(BoundedSum& sum, const LogicalTensor& tensor) {
  const Wide bits = bits_of(tensor.dtype);
  Wide reach = 0;
  for (size_t axis = 0; axis < tensor.strides.size(); ++axis) {
    const Wide step = tensor.strides[axis] * bits, most = (*tensor.shape)[axis] - 1;
    sum.add(step, most);
    reach += most * step;
  }
  return reach;
}

}  // namespace

// Two elements coincide if sum(d[axis] * stride[axis]) is 0 for the differences d of their indices. Without loss of
// generality the difference on the first axis where they differ is positive. So for each such axis we search whether stride *
// (1 + y), plus stride * (z - most) of each later axis, can be 0 for y in 0..most - 1 and z in 0..2 * most.
bool elements_may_overlap(const LogicalTensor& tensor) {
  if (!tensor.has_strides() || is_empty(tensor)) return false;
  const Dims& shape = *tensor.shape;
  for (size_t first = 0; first < shape.size(); ++first) {
    const Wide most = shape[first] - 1;
    if (most == 0) continue;
    BoundedSum sum;
    sum.add(tensor.strides[first], most - 1);
    Wide target = -Wide{tensor.strides[first]};
    for (size_t axis = first + 1; axis < shape.size(); ++axis) {
      const Wide others = shape[axis] - 1;
      sum.add(tensor.strides[axis], 2 * others);
      target += others * tensor.strides[axis];
    }
    if (sum.may_be(target)) return true;
  }
  return false;
}

// A bit of a and a bit of b coincide if a + sum(x * step) + p = b + sum(y * step) + q. Counting y and q down from their
// largest values moves all terms to one side with positive signs.
bool tensors_may_overlap(const LogicalTensor& a, const void* memory_a, const LogicalTensor& b, const void* memory_b) {
  LAMINA_CHECK(a.has_strides() && b.has_strides(), join(describe(a), " and ", describe(b)));
  if (is_empty(a) || is_empty(b)) return false;
  const Wide start_a = Wide{reinterpret_cast<uintptr_t>(memory_a)} * 8,
             start_b = Wide{reinterpret_cast<uintptr_t>(memory_b)} * 8;
  const Wide last_a = bits_of(a.dtype) - 1, last_b = bits_of(b.dtype) - 1;
  BoundedSum sum;
  add_elements(sum, a);
  const Wide reach_b = add_elements(sum, b);
  sum.add(1, last_a + last_b);
  return sum.may_be(start_b + reach_b + last_b - start_a);
}

}  // namespace lamina
