// Dropout: kept elements are scaled by 1 / (1 - p), the others are 0. philox.h says which are kept.
#include "backends/reference/op_run.h"
#include "backends/reference/philox.h"

namespace lamina::reference {
namespace {

void dropout(const OpRun& run) {
  const Tensor& src = run.in("src");
  const int64_t seed = run.in("seed").integers[0];
  const int64_t offset = run.in("offset").integers[0];
  const double p = run.in("probability")[0];
  const double scale = p == 1 ? 0 : 1 / (1 - p);
  Tensor& dst = run.out("dst");
  Tensor* mask = run.wants("mask") ? &run.out("mask") : nullptr;
  parallel_elements(src.size(), [&](int64_t i) {
    const bool kept = dropout_keeps(i, seed, offset, static_cast<float>(p));
    dst[i] = kept ? src[i] * scale : 0;
    if (mask != nullptr) (*mask)[i] = kept ? 1 : 0;
  });
}

}  // namespace

Evaluators dropout_evaluators() { return {{OpKind::Dropout, dropout}}; }

}  // namespace lamina::reference
