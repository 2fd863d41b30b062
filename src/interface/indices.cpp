#include "interface/indices.h"

#include "interface/status.h"

namespace lamina {
namespace {

IndexedAxis axis_of_table(const OpView& view, int table_rank, size_t indices) {
  return {static_cast<size_t>(normalized_axis(view, "axis", table_rank)), indices};
}

}  // namespace

IndexedAxis gathered_axis(const OpView& view) {
  return axis_of_table(view, static_cast<int>(view.shape("src").size()), view.shape("indices").size());
}

IndexedAxis scattered_axis(const OpView& view) {
  const size_t src = view.shape("src").size(), indices = view.shape("indices").size();
  if (src < indices)
    view.fail_shape(join("input src has shape ", describe(view.shape("src")), ", allowed is a rank of ", indices,
                         " or more, the rank of indices"));
  return axis_of_table(view, static_cast<int>(src - indices + 1), indices);
}

}  // namespace lamina
