// Dropout: elements that are kept are scaled by 1 / (1 - p), the others are 0. philox.h defines which are kept.
#include "backends/reference/op_run.h"
#include "backends/reference/philox.h"

namespace lamina::reference {
namespace {

int64_t position_at(int64_t element, const Dims& shape, const Dims& steps) {
  int64_t position = 0;
  for (size_t axis = shape.size(); axis-- > 0; element /= shape[axis]) position += element % shape[axis] * steps[axis];
  return position;
}

void dropout(const OpRun& run) {
  const Tensor& src = run.in("src");
  const int64_t seed = run.in("seed").integers[0];
  const int64_t offset = run.in("offset").integers[0];
  const double p = run.in("probability")[0];
  const double scale = p == 1 ? 0 : 1 / (1 - p);
  const Dims shape = run.in("src").shape;
  const bool is_part = run.has("first");
  const Dims steps = is_part ? run.attribute<std::vector<int64_t>>("steps") : dense_strides(shape);
  const int64_t first = is_part ? run.in("first").integers[0] : 0;
  Tensor& dst = run.out("dst");
  Tensor* mask = run.wants("mask") ? &run.out("mask") : nullptr;
  parallel_elements(src.size(), [&](int64_t i) {
    const bool kept = dropout_keeps(first + position_at(i, shape, steps), seed, offset, static_cast<float>(p));
    dst[i] = kept ? src[i] * scale : 0;
    if (mask != nullptr) (*mask)[i] = kept ? 1 : 0;
  });
}

}  // namespace

Evaluators dropout_evaluators() { return {{OpKind::Dropout, dropout}}; }

}  // namespace lamina::reference
