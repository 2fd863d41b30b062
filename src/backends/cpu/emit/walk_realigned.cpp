// The walk for rows that are stored as one stream of whole lines (line_streams.h). It starts with the row and has the same
// iterations in each row; the first chunk is separate.
#include <algorithm>

#include "backends/cpu/emit/walk.h"

namespace lamina::cpu {

namespace {

class RealignedWalk final : public Walk {
 public:
  RealignedWalk(Emission& emission, int step) : Walk(emission), step_(step) {}
  void over(const std::vector<Row*>& rows, const Body& body) const override;

 private:
  const int step_;
};

void RealignedWalk::over(const std::vector<Row*>&, const Body& body) const {
  const int64_t size = kernel_.row_size(), whole = std::max<int64_t>(size / step_, 1) * step_;
  std::vector<Lanes> first = chunk_at(e_, i64(0), static_cast<int>(std::min<int64_t>(size, step_)));
  if (!first.empty()) first.front().begins_row = true;
  body(first);
  e_.loop(i64(step_), i64(whole), i64(step_), [&](llvm::Value* at) { body(chunk_at(e_, at, step_)); });
  if (size > whole) body(chunk_at(e_, i64(whole), static_cast<int>(size - whole)));
}

}  // namespace

std::unique_ptr<Walk> walk_realigned(Emission& emission, int step) { return std::make_unique<RealignedWalk>(emission, step); }

}  // namespace lamina::cpu
