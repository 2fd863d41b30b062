#include "backends/cpu/emit/rows_in_flight.h"

#include "backends/cpu/emit/split_call.h"

namespace lamina::cpu {

using kernel::NodeIndex;
using kernel::NodeKind;

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
    if (e_.live.places[i] < 0) continue;
    llvm::Value* const of_tile =
        b_.CreateConstGEP1_64(b_.getInt8Ty(), e_.live_memory, static_cast<uint64_t>(e_.live.places[i]));
    llvm::Value* const at = b_.CreateMul(place, i64(live_row_size(kernel_) * e_.group));
    row.live[i] = b_.CreateGEP(e_.type(kernel_.nodes[i].type, 1), of_tile, at);
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
