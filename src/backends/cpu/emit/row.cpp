#include "backends/cpu/emit/row.h"

namespace lamina::cpu {

std::vector<Lanes> chunk_at(Emission& e, llvm::Value* offset, int live) {
  std::vector<Lanes> lanes;
  for (int start = 0; start < live; start += e.width) {
    Lanes vector{e.width, e.b.CreateAdd(offset, e.i64(start)), nullptr, lanes.size()};
    if (live - start < e.width) {
      std::vector<llvm::Constant*> bits;
      for (int lane = 0; lane < e.width; ++lane) bits.push_back(e.b.getInt1(lane < live - start));
      vector.mask = llvm::ConstantVector::get(bits);
    }
    lanes.push_back(vector);
  }
  return lanes;
}

std::vector<Lanes> positions_at(Emission& e, const Frame& group, llvm::Value* offset, int count) {
  std::vector<Lanes> positions;
  for (int i = 0; i < count; ++i)
    positions.push_back({e.group, e.b.CreateAdd(offset, e.i64(i)), group.mask, static_cast<size_t>(i)});
  return positions;
}

}  // namespace lamina::cpu
