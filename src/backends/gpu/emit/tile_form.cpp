#include "backends/gpu/emit/tile_form.h"

#include "interface/status.h"

namespace lamina::gpu {

std::string describe(const TileForm& form) {
  return join("tiles of ", form.rows(), " x ", form.columns(), form.matrix_tile ? " by matrix instructions" : "",
              form.segment_terms == 0 ? "" : join(" in segments of ", form.segment_terms, " terms"));
}

}  // namespace lamina::gpu
