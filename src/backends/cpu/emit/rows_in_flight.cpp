#include "backends/cpu/emit/rows_in_flight.h"

#include "backends/cpu/emit/split_call.h"

namespace lamina::cpu {

using kernel::NodeIndex;
using kernel::NodeKind;

// One buffer per live node, with a tile's rows, each rounded up to whole chunks of lanes. A walk along lines may read one
// vector past the last element.
Rows::Rows(Emission& emission, int tile) : Part(emission), live_buffers_(emission.kernel.nodes.size(), nullptr) {
  const int64_t size = live_row_size(kernel_) * tile * e_.group + kVirtualLanes;
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    if (plan_.live_since(static_cast<NodeIndex>(i)) < 0) continue;
    live_buffers_[i] = e_.alloca_at_entry(llvm::ArrayType::get(e_.type(kernel_.nodes[i].type, 1), static_cast<uint64_t>(size)));
    live_buffers_[i]->setAlignment(llvm::Align(kLiveAlignment));
  }
}

Row Rows::begin(llvm::Value* number, llvm::Value* place, const Frame& frame) {
  const size_t nodes = kernel_.nodes.size();
  const ValueList position = e_.row_position(number);
  Row row;
  row.frame = frame;
  row.number = number;
  row.place = place;
  for (size_t a = 0; a < kernel_.args.size(); ++a) row.pointers.push_back(e_.row_pointer(static_cast<int>(a), position));
  row.segment = row.pointers;
  row.values.assign(nodes, nullptr);
  row.live = row.index_base = row.mean_high = row.mean_low = row.shifts = row.values;
  for (size_t i = 0; i < nodes; ++i) {
    if (live_buffers_[i] == nullptr) continue;
    llvm::Value* const at = b_.CreateMul(place, i64(live_row_size(kernel_) * e_.group));
    row.live[i] = b_.CreateGEP(e_.type(kernel_.nodes[i].type, 1), live_buffers_[i], at);
  }
  for (size_t i = 0; i < nodes; ++i) {
    if (kernel_.nodes[i].kind == NodeKind::index) row.index_base[i] = index_base(kernel_.nodes[i], position);
  }
  return row;
}

// Across rows there is one lane per row. Each row is one step further along the last outer dim.
llvm::Value* Rows::index_base(const kernel::Node& index, const ValueList& position) {
  llvm::Value* const first = e_.widen(e_.row_index(index, position), e_.group);
  if (!e_.across_rows()) return first;
  auto* const words = llvm::FixedVectorType::get(b_.getInt64Ty(), static_cast<unsigned>(e_.group));
  llvm::Value* const steps =
      b_.CreateMul(b_.CreateStepVector(words), e_.widen(i64(index.coefficients[position.size() - 1]), e_.group));
  return b_.CreateAdd(first, steps);
}

RowStore RowStore::from_row(llvm::Value* place) const {
  RowStore later = *this;
  later.states_ = state_word(place, e_.i64(0));
  return later;
}

llvm::Value* RowStore::state_word(llvm::Value* place, llvm::Value* word) const {
  return b_.CreateGEP(b_.getInt64Ty(), states_,
                      b_.CreateAdd(b_.CreateMul(place, e_.i64(split_state_bytes(kernel_) / 8)), word));
}

llvm::Value* RowStore::address(size_t slot, llvm::Type* type, llvm::Value* place) {
  if (states_ != nullptr) return state_word(place, i64(static_cast<int64_t>(slot)));
  Slot& at = slots_[slot];
  if (at.of_rows == nullptr)
    at.of_rows = e_.alloca_at_entry(llvm::ArrayType::get(type, static_cast<uint64_t>(schedule_.rows_per_tile)));
  return b_.CreateGEP(type, at.of_rows, place);
}

llvm::Value* RowStore::address_of_all(size_t slot, llvm::Type* type) {
  slots_[slot].type = type;
  llvm::Value* const at = address(slot, type, i64(0));
  slots_[slot].of_rows->setAlignment(llvm::Align(kLiveAlignment));
  return at;
}

void RowStore::save(const Row& row) {
  for_each_row_value(row, [&](size_t slot, llvm::Value* value) {
    Slot& at = slots_[slot];
    if (value == nullptr || value == at.restored || llvm::isa<llvm::Constant>(value)) return;
    at.type = value->getType();
    b_.CreateStore(value, address(slot, at.type, row.place));
  });
}

void RowStore::restore(Row& row) {
  for_each_row_value(row, [&](size_t slot, llvm::Value*& value) {
    Slot& at = slots_[slot];
    if (at.type != nullptr) value = at.restored = b_.CreateLoad(at.type, address(slot, at.type, row.place));
  });
}

}  // namespace lamina::cpu
