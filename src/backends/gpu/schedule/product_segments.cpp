#include "backends/gpu/schedule/product_segments.h"

#include <algorithm>

#include "backends/gpu/schedule/tuning.h"
#include "kernels/parts.h"

namespace lamina::gpu {

namespace {

using kernel::parts;

// As many segments as give work to every multiprocessor, none shorter than `least`.
int64_t segment_of(int64_t tiles, int64_t terms, int64_t least) {
  const int64_t segments = std::min(tuning::kGroupsOfDividedSums / std::max<int64_t>(tiles, 1), terms / least);
  if (segments <= 1) return 0;
  return parts(parts(terms, segments), tuning::kSegmentUnit) * tuning::kSegmentUnit;
}

}  // namespace

int64_t segment_of_gradient(int64_t rows, int64_t columns, int64_t products, int64_t terms) {
  const int64_t tiles = parts(rows, tuning::kSegmentSide) * parts(columns, tuning::kSegmentSide) * products;
  return segment_of(tiles, terms, tuning::kLeastTermsOfGradient);
}

int64_t segment_of_matrix(int64_t columns, int64_t terms) {
  const int64_t side = parts(columns, tuning::kSegmentSide);
  return segment_of(side * side, terms, tuning::kLeastTermsOfMatrix);
}

int64_t segments_of(int64_t terms, int64_t segment_terms) { return segment_terms == 0 ? 1 : parts(terms, segment_terms); }

}  // namespace lamina::gpu
