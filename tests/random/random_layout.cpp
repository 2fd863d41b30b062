#include "random/random_layout.h"

#include <algorithm>
#include <numeric>

namespace lamina::testing {

namespace {

// Returns strides for axes listed from the outermost to the innermost, with a gap of `gap(axis)` entries after each entry.
template <typename Gap>
Dims ordered_strides(const Dims& shape, const std::vector<size_t>& order, const Gap& gap) {
  Dims strides(shape.size());
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const size_t axis = order[i];
    strides[axis] = step * (1 + gap(axis));
    step = strides[axis] * std::max<int64_t>(shape[axis], 1);
  }
  return strides;
}

std::vector<size_t> row_major(size_t rank) {
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<size_t> channels_innermost(size_t rank) {
  std::vector<size_t> order = row_major(rank);
  std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return order;
}

Dims padded(const Dims& shape, Rng& rng) {
  Dims strides = dense_strides(shape);
  const int64_t width = std::max<int64_t>(shape.back(), 1), gap = rng.pick({int64_t{1}, int64_t{3}, int64_t{16}});
  for (size_t axis = 0; axis + 1 < shape.size(); ++axis) strides[axis] = strides[axis] / width * (width + gap);
  return strides;
}

Dims broadcast(const Dims& shape, Rng& rng) {
  std::vector<size_t> order = row_major(shape.size());
  Dims walked = shape;
  const auto zero = static_cast<size_t>(rng.below(static_cast<int64_t>(shape.size())));
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (axis == zero || rng.one_in(4)) walked[axis] = 0;
  }
  Dims strides = ordered_strides(walked, order, [](size_t) { return 0; });
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (walked[axis] == 0) strides[axis] = 0;
  }
  return strides;
}

const auto no_gap = [](size_t) { return int64_t{0}; };

}  // namespace

std::string_view name_of(Layout layout) {
  switch (layout) {
    case Layout::dense: return "dense";
    case Layout::transposed: return "transposed";
    case Layout::channels_last: return "channels last";
    case Layout::padded: return "padded rows";
    case Layout::view: return "view";
    case Layout::broadcast: return "broadcast";
  }
  return "";
}

size_t least_rank(Layout layout) {
  switch (layout) {
    case Layout::dense:
    case Layout::view:
    case Layout::broadcast: return 1;
    case Layout::transposed:
    case Layout::padded: return 2;
    case Layout::channels_last: return 3;
  }
  return 1;
}

Dims strides_in(Layout layout, const Dims& shape, Rng& rng) {
  if (shape.empty()) return {};
  std::vector<size_t> order = row_major(shape.size());
  switch (layout) {
    case Layout::dense: return dense_strides(shape);
    case Layout::transposed: rng.shuffle(order); return ordered_strides(shape, order, no_gap);
    case Layout::channels_last:
      return shape.size() < 3 ? dense_strides(shape) : ordered_strides(shape, channels_innermost(shape.size()), no_gap);
    case Layout::padded: return padded(shape, rng);
    case Layout::view:
      if (rng.one_in(2)) rng.shuffle(order);
      return ordered_strides(shape, order, [&](size_t) { return rng.one_in(2) ? rng.below(3) : 0; });
    case Layout::broadcast: return broadcast(shape, rng);
  }
  return dense_strides(shape);
}

Layout layout_of(const LogicalTensor& tensor) {
  const Dims &shape = *tensor.shape, &strides = tensor.strides;
  std::vector<size_t> walked;  // axes with an extent above 1
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] > 1) walked.push_back(axis);
  }
  const auto any = [&](const auto& holds) { return std::any_of(walked.begin(), walked.end(), holds); };
  if (std::count(shape.begin(), shape.end(), 0) > 0) return Layout::dense;
  if (any([&](size_t axis) { return strides[axis] == 0; })) return Layout::broadcast;
  const Dims dense = dense_strides(shape);
  if (!any([&](size_t axis) { return strides[axis] != dense[axis]; })) return Layout::dense;
  std::stable_sort(walked.begin(), walked.end(), [&](size_t a, size_t b) { return strides[a] > strides[b]; });
  int64_t step = 1, gaps = 0;
  for (size_t i = walked.size(); i-- > 0; step = strides[walked[i]] * shape[walked[i]]) gaps += strides[walked[i]] != step;
  const bool is_row_major = std::is_sorted(walked.begin(), walked.end());
  const bool is_padded = is_row_major && gaps == 1 && strides[walked.back()] == 1;
  if (gaps > 0) return is_padded ? Layout::padded : Layout::view;
  if (shape.size() < 3) return Layout::transposed;
  const Dims last = ordered_strides(shape, channels_innermost(shape.size()), no_gap);
  return any([&](size_t axis) { return strides[axis] != last[axis]; }) ? Layout::transposed : Layout::channels_last;
}

}  // namespace lamina::testing
