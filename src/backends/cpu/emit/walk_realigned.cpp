// The walk for rows that are stored as one stream of whole lines (line_streams.h). It starts with the row and has the same
// iterations in each row; the first chunk is separate.
#include <algorithm>

#include "backends/cpu/emit/walk.h"

namespace lamina::cpu {

void walk_realigned(Emission& e, int step, const Body& body) {
  const int64_t size = e.kernel.row_size(), whole = std::max<int64_t>(size / step, 1) * step;
  std::vector<Lanes> first = chunk_at(e, e.i64(0), static_cast<int>(std::min<int64_t>(size, step)));
  if (!first.empty()) first.front().begins_row = true;
  body(first);
  e.loop(e.i64(step), e.i64(whole), e.i64(step), [&](llvm::Value* at) { body(chunk_at(e, at, step)); });
  if (size > whole) body(chunk_at(e, e.i64(whole), static_cast<int>(size - whole)));
}

}  // namespace lamina::cpu
