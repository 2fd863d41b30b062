#include "backends/cpu/emit/accumulators.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

using tuning::kLanesPerIteration;

Combine combine_of(kernel::Reduction reduction) {
  static constexpr Combine all[] = {Combine::sum, Combine::maximum, Combine::minimum, Combine::product};
  return all[static_cast<size_t>(reduction)];
}

llvm::Value* combine(Emission& e, Combine how, llvm::Value* a, llvm::Value* b) {
  switch (how) {
    case Combine::sum: return a->getType()->isIntOrIntVectorTy() ? e.b.CreateAdd(a, b) : e.b.CreateFAdd(a, b);
    case Combine::product: return e.b.CreateFMul(a, b);
    case Combine::maximum: return e.maximum(a, b);
    case Combine::minimum: return e.minimum(a, b);
  }
  return nullptr;
}

llvm::Value* identity_of(Combine how, llvm::Type* type) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double value = how == Combine::sum ? 0 : how == Combine::product ? 1 : how == Combine::maximum ? -infinity : infinity;
  return llvm::ConstantFP::get(type, value);
}

llvm::Value* fold_lanes(Emission& e, const Join& join, llvm::Value* folded, int count) {
  if (e.width == 1) return folded;
  for (int half = count / 2; half >= 1; half /= 2) {
    std::vector<int> low(static_cast<size_t>(half)), high(static_cast<size_t>(half));
    std::iota(low.begin(), low.end(), 0);
    std::iota(high.begin(), high.end(), half);
    folded = join(e.b.CreateShuffleVector(folded, low), e.b.CreateShuffleVector(folded, high));
  }
  return e.b.CreateExtractElement(folded, e.i64(0));
}

std::unique_ptr<Accumulator> make_accumulator(Emission& e, Combine how, kernel::Type type) {
  if (e.across_rows()) return std::make_unique<LanesInMemory>(e, how, type);
  return std::make_unique<LanesInRegisters>(e, how, type);
}

Accumulator::Accumulator(Emission& e, Combine how, kernel::Type type, int width) : Part(e), how_(how), type_(type) {
  if (how == Combine::maximum || how == Combine::minimum) nans_.emplace(e, e.type(type, width));
}

llvm::Value* Accumulator::combine_lanes(llvm::Value* a, llvm::Value* b) {
  if (!nans_) return combine(e_, how_, a, b);
  return b_.CreateSelect(how_ == Combine::maximum ? b_.CreateFCmpOGT(a, b) : b_.CreateFCmpOLT(a, b), a, b);
}

void Accumulator::add(std::span<llvm::Value* const> values, std::span<const Lanes> lanes) {
  ValueList live;
  for (size_t i = 0; i < values.size(); ++i) {
    live.push_back(where_live(values[i], identity_of(how_, values[i]->getType()), lanes[i]));
    llvm::Value* const at = slot(lanes[i]);
    b_.CreateStore(combine_lanes(b_.CreateLoad(live[i]->getType(), at), live[i]), at);
  }
  if (nans_) nans_->note(live);
}

void Accumulator::add_square(llvm::Value* value, const Lanes& lanes) {
  value = where_live(value, llvm::Constant::getNullValue(value->getType()), lanes);
  llvm::Value* const at = slot(lanes);
  b_.CreateStore(e_.fma(value, value, b_.CreateLoad(value->getType(), at)), at);
}

// ---- in registers

LanesInRegisters::LanesInRegisters(Emission& e, Combine how, kernel::Type type) : Accumulator(e, how, type, e.width) {
  for (int lane = 0; lane < kVirtualLanes; lane += e_.width) vectors_.push_back(e_.alloca_at_entry(e_.type(type, e_.width)));
  reset();
}

void LanesInRegisters::reset() {
  for (llvm::AllocaInst* vector : vectors_) b_.CreateStore(identity_of(how_, vector->getAllocatedType()), vector);
}

llvm::Value* LanesInRegisters::where_live(llvm::Value* value, llvm::Value* otherwise, const Lanes& lanes) {
  return lanes.mask == nullptr ? value : b_.CreateSelect(lanes.mask, value, otherwise);
}

llvm::Value* LanesInRegisters::fold_numbers() {
  ValueList folded;
  for (llvm::AllocaInst* vector : vectors_) folded.push_back(b_.CreateLoad(vector->getAllocatedType(), vector));
  while (folded.size() > 1) {
    const size_t half = folded.size() / 2;
    for (size_t i = 0; i < half; ++i) folded[i] = combine_lanes(folded[i], folded[i + half]);
    folded.resize(half);
  }
  reset();
  return folded[0];
}

llvm::Value* LanesInRegisters::fold_vectors() {
  llvm::Value* const folded = fold_numbers();
  return nans_ ? nans_->take_by_lane(folded) : folded;
}

llvm::Value* LanesInRegisters::fold() {
  const auto join = [&](llvm::Value* a, llvm::Value* b) { return combine_lanes(a, b); };
  llvm::Value* const folded = fold_lanes(e_, join, fold_numbers(), e_.width);
  return nans_ ? nans_->take(folded) : folded;
}

// ---- in memory

LanesInMemory::LanesInMemory(Emission& e, Combine how, kernel::Type type)
    : Accumulator(e, how, type, e.group),
      vector_(e.type(type, e.group)),
      array_(e.alloca_at_entry(llvm::ArrayType::get(vector_, kVirtualLanes + tuning::kVectorsBetweenArrays))) {
  if (e_.inner_rank() > 1) reset();
}

int LanesInMemory::lanes_in_use() const {
  const int64_t run = e_.inner_rank() == 1 ? kernel_.row_size() : kernel_.extents.back();
  return static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::clamp<int64_t>(run, 1, kVirtualLanes))));
}

llvm::Value* LanesInMemory::slot(const Lanes& lanes) {
  if (!held_.empty()) return held_[lanes.number % held_.size()];
  return slot_of(b_.CreateAnd(lanes.offset, i64(kVirtualLanes - 1)));
}

void LanesInMemory::reset() {
  llvm::Value* const value = identity_of(how_, vector_);
  in_memory_ = lanes_in_use();
  for_each_lane(in_memory_, [&](llvm::Value* lane) { b_.CreateStore(value, slot_of(lane)); });
}

void LanesInMemory::hold(int count) {
  for (int i = 0; i < 2 * count; ++i) held_.push_back(e_.alloca_at_entry(vector_));
}

void LanesInMemory::start_held() {
  for (llvm::AllocaInst* const lane : held_) b_.CreateStore(identity_of(how_, vector_), lane);
}

void LanesInMemory::join_held(llvm::Value* first) {
  const auto lane = [&](size_t i) { return b_.CreateLoad(vector_, held_[i]); };
  const size_t count = held_.size() / 2;
  for (size_t i = 0; i < count; ++i) {
    b_.CreateStore(combine_lanes(lane(i), lane(count + i)), slot_of(b_.CreateAdd(first, i64(static_cast<int64_t>(i)))));
  }
  in_memory_ = kVirtualLanes / 2;
}

// A sum starts from -0, which compilers know to change nothing.
void LanesInMemory::hold_run(int count) {
  holds_run_ = true;
  for (int i = 0; i < count; ++i) held_.push_back(e_.alloca_at_entry(vector_));
  llvm::Value* const identity = how_ == Combine::sum ? llvm::ConstantFP::getNegativeZero(vector_) : identity_of(how_, vector_);
  for (llvm::AllocaInst* const lane : held_) b_.CreateStore(identity, lane);
}

llvm::Value* LanesInMemory::fold_vectors() {
  llvm::Value* const folded = holds_run_ ? fold_run() : fold_array();
  return nans_ ? nans_->take_by_lane(folded) : folded;
}

llvm::Value* LanesInMemory::fold_array() {
  join_levels();
  llvm::Value* const folded = b_.CreateLoad(vector_, array_);
  if (e_.inner_rank() > 1) reset();
  return folded;
}

// Lanes that start from 0 never sum to -0.
llvm::Value* LanesInMemory::fold_run() {
  llvm::Value* folded = joined(0, 1);
  if (how_ == Combine::sum) folded = b_.CreateFAdd(folded, identity_of(how_, vector_));
  held_.clear();
  holds_run_ = false;
  return folded;
}

// `lane` after the levels of the tree down to `distance`, depth first, so that few values are live.
llvm::Value* LanesInMemory::joined(size_t lane, size_t distance) {
  if (distance >= held_.size()) return b_.CreateLoad(vector_, held_[lane]);
  llvm::Value* const low = joined(lane, 2 * distance);
  return lane + distance < held_.size() ? combine_lanes(low, joined(lane + distance, 2 * distance)) : low;
}

// Lanes past the end of a short row contain the identity; the levels of the tree that would only add them are omitted. The
// upper levels share their code.
void LanesInMemory::join_levels() {
  const int levels = std::bit_width(static_cast<unsigned>(in_memory_ / kLanesPerIteration)) - 1;
  e_.loop(i64(0), i64(levels), i64(1), [&](llvm::Value* level) {
    llvm::Value* const half = b_.CreateLShr(i64(in_memory_ / 2), level);
    e_.loop(i64(0), half, i64(kLanesPerIteration), [&](llvm::Value* lane) {
      for (int i = 0; i < kLanesPerIteration; ++i) join(b_.CreateAdd(lane, i64(i)), half);
    });
  });
  for (int half = std::min(in_memory_, kLanesPerIteration) / 2; half >= 1; half /= 2) {
    for (int lane = 0; lane < half; ++lane) join(i64(lane), i64(half));
  }
}

void LanesInMemory::join(llvm::Value* lane, llvm::Value* half) {
  llvm::Value* const low = slot_of(lane);
  llvm::Value* const high = slot_of(b_.CreateAdd(lane, half));
  b_.CreateStore(combine_lanes(b_.CreateLoad(vector_, low), b_.CreateLoad(vector_, high)), low);
}

// Calls body for lanes 0 .. count - 1, a few per iteration. count is a power of two.
void LanesInMemory::for_each_lane(int count, const std::function<void(llvm::Value*)>& body) {
  const int step = std::min(count, kLanesPerIteration);
  const auto iteration = [&](llvm::Value* first) {
    for (int i = 0; i < step; ++i) body(b_.CreateAdd(first, i64(i)));
  };
  if (count == step)
    iteration(i64(0));
  else
    e_.loop(i64(0), i64(count), i64(step), iteration);
}

}  // namespace lamina::cpu
