#include "backends/cpu/schedule/sharing.h"

#include <algorithm>

#include "backends/cpu/schedule/tuning.h"
#include "kernels/numerics.h"

namespace lamina::cpu {

using kernel::Kernel;
using kernel::Node;
using kernel::NodeKind;

bool may_be_split(const Kernel& kernel) {
  const bool reduces = kernel.has_row_reduction() || kernel.has_column_sum();
  return is_one_run(kernel) && reduces && !has_nibbles(kernel) &&
         (kernel.row_size() > numerics::kBlock || (reduces_whole_rows(kernel) && kernel.row_size() > tuning::kColumnUnit));
}

bool reduces_whole_rows(const Kernel& kernel) {
  const auto is_known_late = [last = kernel.phase_count() - 1](const Node& n) {
    return (n.kind == NodeKind::reduce || n.kind == NodeKind::moments) && n.phase > last;
  };
  return kernel.row_size() < tuning::kMinChunks * numerics::kBlock && kernel.has_column_sum() &&
         std::none_of(kernel.nodes.begin(), kernel.nodes.end(), is_known_late);
}

RowSharing row_sharing(const Kernel& kernel, const Caches& caches) {
  const Footprint bytes = footprint(kernel);
  return {.rows = kernel.row_count(),
          .row_size = kernel.row_size(),
          .read_bytes = bytes.read,
          .shared_bytes = bytes.shared,
          .second_cache = caches.second,
          .reduces_rows = kernel.has_row_reduction(),
          .sums_columns = kernel.has_column_sum(),
          .reduces_whole_rows = reduces_whole_rows(kernel)};
}

}  // namespace lamina::cpu
