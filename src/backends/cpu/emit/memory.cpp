// Elements in memory: loads and stores along a row, across rows and one at a time, with the conversions between the stored
// type and the compute type.
//
// Elements of s8 and u8 are stored in chunks of 64: converted vector by vector, packed and stored as one line. A single
// vector would be a quarter of a line, and its narrowing store instruction cannot bypass the caches.
#include "backends/cpu/emit/memory.h"

#include <array>
#include <cmath>

#include "backends/cpu/emit/nibbles.h"
#include "backends/cpu/schedule/streaming.h"
#include "backends/cpu/schedule/tuning.h"
#include "backends/cpu/vector/convert.h"

namespace lamina::cpu {

using kernel::Type;

llvm::Value* Memory::to_compute(DataType dtype, llvm::Value* raw) {
  switch (kernel::compute_type(dtype)) {
    case Type::boolean: return b_.CreateICmpNE(raw, llvm::Constant::getNullValue(raw->getType()));
    case Type::f32: return emit_to_f32(b_, dtype, raw, e_.target);
    default: return raw;
  }
}

llvm::Value* Memory::to_storage(DataType dtype, Type type, llvm::Value* value) {
  switch (type) {
    case Type::f32: return emit_from_f32(b_, dtype, value, e_.target);
    case Type::f64: return emit_from_f64(b_, dtype, value, e_.target);
    case Type::boolean: return b_.CreateZExt(value, with_lanes(b_.getInt8Ty(), lanes_of(value)));
    default: return value;
  }
}

// The value as it reads back from memory.
llvm::Value* Memory::round_trip(DataType dtype, Type type, llvm::Value* value) {
  if (is_byte_integer(dtype)) return emit_rounded_to_byte(b_, dtype, value, e_.target);
  llvm::Value* const stored = to_storage(dtype, type, value);
  return type == Type::f64 ? emit_to_f64(b_, dtype, stored, e_.target) : emit_to_f32(b_, dtype, stored, e_.target);
}

llvm::Value* Memory::lane_addresses(llvm::Value* first, int arg, const Lanes& lanes, int64_t stride) {
  auto* const words = llvm::FixedVectorType::get(b_.getInt64Ty(), static_cast<unsigned>(lanes.width));
  llvm::Value* const bytes = e_.across_rows() ? e_.bytes_to_next_row(arg) : i64(stride * bytes_of(kernel_.arg(arg).dtype, 1));
  return b_.CreateGEP(b_.getInt8Ty(), first, b_.CreateMul(b_.CreateStepVector(words), e_.widen(bytes, lanes.width)));
}

llvm::Value* Memory::load_arg(llvm::Value* pointer, int arg, const Lanes& lanes, int64_t stride) {
  const DataType dtype = kernel_.arg(arg).dtype;
  if (bits_of(dtype) < 8) return to_compute(dtype, load_nibbles(e_, pointer, kernel_.arg(arg), lanes, stride));
  llvm::Type* const scalar = storage_type(e_.context, dtype);
  const auto align = llvm::Align(static_cast<uint64_t>(bytes_of(dtype, 1)));
  llvm::Value* const first = stride == 0 ? pointer : b_.CreateGEP(scalar, pointer, b_.CreateMul(lanes.offset, i64(stride)));
  const LaneStep step = e_.lane_step(arg, stride);
  if (lanes.width == 1 || step == LaneStep::none)
    return e_.widen(to_compute(dtype, b_.CreateAlignedLoad(scalar, first, align)), lanes.width);
  if (step == LaneStep::one) return load_vector(first, arg, {lanes.width, nullptr, lanes.mask});
  return load_lanes(lane_addresses(first, arg, lanes, stride), dtype, lanes.mask, lanes.width);
}

// What masked loads give for lanes that they leave out, in every type.
static bool is_zero(double value) { return value == 0 && !std::signbit(value); }

// `mask` may be null.
llvm::Value* Memory::load_lanes(llvm::Value* addresses, DataType dtype, llvm::Value* mask, int width) {
  llvm::Type* const type = with_lanes(storage_type(e_.context, dtype), width);
  if (mask == nullptr) mask = e_.widen(b_.getTrue(), width);
  const auto align = llvm::Align(static_cast<uint64_t>(bytes_of(dtype, 1)));
  return to_compute(dtype, b_.CreateMaskedGather(type, addresses, align, mask, llvm::Constant::getNullValue(type)));
}

llvm::Value* Memory::load_entry(llvm::Value* pointer, int arg, const Entry& entry, const Lanes& lanes, int64_t stride) {
  const DataType dtype = kernel_.arg(arg).dtype;
  const int64_t entry_stride = kernel_.arg(arg).entry_stride;
  const auto address_of = [&](llvm::Value* number) {
    return b_.CreateMul(number, e_.widen(i64(bytes_of(dtype, entry_stride)), lanes_of(number)));
  };
  const auto other = [&](llvm::Type* type) -> llvm::Value* {
    return type->isFPOrFPVectorTy() ? llvm::ConstantFP::get(type, entry.otherwise)
                                    : llvm::ConstantInt::getSigned(type, static_cast<int64_t>(entry.otherwise));
  };
  const auto or_other = [&](llvm::Value* loaded) {
    if (entry.exists == nullptr) return loaded;
    return b_.CreateSelect(e_.widen(entry.exists, lanes_of(loaded)), loaded, other(loaded->getType()));
  };
  if (lanes_of(entry.number) == 1) {  // the first entry can always be read
    llvm::Value* const number = entry.exists == nullptr || lanes_of(entry.exists) > 1
                                    ? entry.number
                                    : b_.CreateSelect(entry.exists, entry.number, i64(0));
    Lanes where = lanes;
    if (entry.exists != nullptr && lanes_of(entry.exists) > 1)
      where.mask = lanes.mask == nullptr ? entry.exists : b_.CreateAnd(lanes.mask, entry.exists);
    return or_other(load_arg(b_.CreateGEP(b_.getInt8Ty(), pointer, address_of(number)), arg, where, stride));
  }
  const auto or_other_than_zero = [&](llvm::Value* loaded) { return is_zero(entry.otherwise) ? loaded : or_other(loaded); };
  llvm::Value* mask = entry.exists == nullptr ? nullptr : e_.widen(entry.exists, lanes.width);
  if (lanes.mask != nullptr) mask = mask == nullptr ? lanes.mask : b_.CreateAnd(mask, lanes.mask);
  llvm::Type* const scalar = storage_type(e_.context, dtype);
  llvm::Value* const first = stride == 0 ? pointer : b_.CreateGEP(scalar, pointer, b_.CreateMul(lanes.offset, i64(stride)));
  if (entry.of_first != nullptr && !e_.across_rows()) {
    llvm::Value* const begin = b_.CreateGEP(b_.getInt8Ty(), first, address_of(entry.of_first));
    const int64_t step = entry.step * entry_stride + stride;
    // Ahead of the branch: taps with the same mask compute these once.
    const TwoMasks masks = step == 2 && mask != nullptr ? masks_of_every_second(mask, lanes.width) : TwoMasks{};
    const auto load = [&] { return or_other_than_zero(load_regular(begin, dtype, step, mask, masks, lanes.width)); };
    if (entry.in_row == nullptr) return load();
    return e_.choose(entry.in_row, load, [&] { return other(e_.type(kernel::compute_type(dtype), lanes.width)); });
  }
  // Instructions that load single lanes add vectors of positions to one address.
  const bool is_one_address = stride == 0 && !e_.across_rows();
  llvm::Value* const start = entry.common == nullptr ? first : b_.CreateGEP(b_.getInt8Ty(), first, address_of(entry.common));
  llvm::Value* const addresses =
      is_one_address ? b_.CreateGEP(scalar, start, b_.CreateMul(entry.number, e_.widen(i64(entry_stride), lanes.width)))
                     : b_.CreateGEP(b_.getInt8Ty(), lane_addresses(start, arg, lanes, stride), address_of(entry.number));
  return or_other_than_zero(load_lanes(addresses, dtype, mask, lanes.width));
}

// Lanes that are `step` elements apart. Where lanes are masked, their addresses may be outside of the memory.
llvm::Value* Memory::load_regular(llvm::Value* first, DataType dtype, int64_t step, llvm::Value* mask, const TwoMasks& masks,
                                  int width) {
  llvm::Type* const type = with_lanes(storage_type(e_.context, dtype), width);
  const auto align = llvm::Align(static_cast<uint64_t>(bytes_of(dtype, 1)));
  const auto gathered = [&] {
    auto* const words = llvm::FixedVectorType::get(b_.getInt64Ty(), static_cast<unsigned>(width));
    llvm::Value* const steps = b_.CreateMul(b_.CreateStepVector(words), e_.widen(i64(step * bytes_of(dtype, 1)), width));
    return load_lanes(b_.CreateGEP(b_.getInt8Ty(), first, steps), dtype, mask, width);
  };
  if (step == 1 && mask == nullptr) return to_compute(dtype, b_.CreateAlignedLoad(type, first, align));
  if (step == 1) return to_compute(dtype, b_.CreateMaskedLoad(type, first, align, mask, llvm::Constant::getNullValue(type)));
  if (step != 2) return gathered();
  if (mask == nullptr || e_.target->keeps_masks_in_bits) return load_every_second(first, dtype, masks, width);
  return e_.choose(
      b_.CreateAndReduce(mask), [&] { return load_every_second(first, dtype, {}, width); },
      [&] { return load_every_second(first, dtype, masks, width); });
}

Memory::TwoMasks Memory::masks_of_every_second(llvm::Value* mask, int width) {
  llvm::Value* const no = llvm::Constant::getNullValue(mask->getType());
  TwoMasks masks;
  for (int half = 0; half < 2; ++half) {
    std::vector<int> live;  // the lane of the mask for each element, or one of `no`
    for (int i = half * (width - 1); i < half * (width - 1) + width; ++i) live.push_back(i % 2 == 0 ? i / 2 : width);
    masks[static_cast<size_t>(half)] = b_.CreateShuffleVector(mask, no, live);
  }
  return masks;
}

// From two vectors, the second of which ends with the last lane.
llvm::Value* Memory::load_every_second(llvm::Value* first, DataType dtype, const TwoMasks& masks, int width) {
  llvm::Type* const scalar = storage_type(e_.context, dtype);
  llvm::Type* const type = with_lanes(scalar, width);
  const auto align = llvm::Align(static_cast<uint64_t>(bytes_of(dtype, 1)));
  std::vector<int> lanes;
  for (int lane = 0; lane < width; ++lane) lanes.push_back(2 * lane < width ? 2 * lane : 2 * lane + 1);
  std::array<llvm::Value*, 2> loaded;
  for (size_t half = 0; half < loaded.size(); ++half) {
    llvm::Value* const at = b_.CreateGEP(scalar, first, i64(static_cast<int64_t>(half) * (width - 1)));
    if (masks[half] == nullptr)
      loaded[half] = b_.CreateAlignedLoad(type, at, align);
    else
      loaded[half] = b_.CreateMaskedLoad(type, at, align, masks[half], llvm::Constant::getNullValue(type));
  }
  return to_compute(dtype, b_.CreateShuffleVector(loaded[0], loaded[1], lanes));
}

llvm::Value* Memory::load_vector(llvm::Value* pointer, int arg, const Lanes& lanes) {
  const DataType dtype = kernel_.arg(arg).dtype;
  llvm::Type* const scalar = storage_type(e_.context, dtype);
  llvm::Type* const type = with_lanes(scalar, lanes.width);
  const auto align = llvm::Align(static_cast<uint64_t>(bytes_of(dtype, 1)));
  llvm::Value* const first = lanes.offset == nullptr ? pointer : b_.CreateGEP(scalar, pointer, lanes.offset);
  if (lanes.mask == nullptr) return to_compute(dtype, b_.CreateAlignedLoad(type, first, align));
  return to_compute(dtype, b_.CreateMaskedLoad(type, first, align, lanes.mask, llvm::Constant::getNullValue(type)));
}

bool Memory::stores_pairs(int index) const {
  const kernel::Arg& arg = kernel_.arg(index);
  return rounds_in_pairs(arg.dtype, e_.width, e_.target) && !e_.across_rows() && arg.strides.back() == 1;
}

void Memory::mark_non_temporal(llvm::StoreInst* store) {
  auto* const one = llvm::ConstantAsMetadata::get(b_.getInt32(1));
  store->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(e_.context, {one}));
}

void Memory::store_arg(llvm::Value* pointer, const Store& to, llvm::Value* value, const Lanes& lanes, int64_t stride) {
  const DataType dtype = kernel_.arg(to.arg).dtype;
  llvm::Type* const scalar = storage_type(e_.context, dtype);
  const auto bytes = static_cast<uint64_t>(bytes_of(dtype, 1));
  if (bits_of(dtype) < 8)
    return store_nibbles(e_, pointer, kernel_.arg(to.arg), to_storage(dtype, to.type, e_.widen(value, lanes.width)), lanes,
                         stride);
  llvm::Value* const first = stride == 0 ? pointer : b_.CreateGEP(scalar, pointer, b_.CreateMul(lanes.offset, i64(stride)));
  const LaneStep step = e_.lane_step(to.arg, stride);
  if (lanes.width > 1 && step == LaneStep::one) return store_vector(first, to, value, {lanes.width, nullptr, lanes.mask});
  llvm::Value* const raw = to_storage(dtype, to.type, e_.widen(value, lanes.width));
  if (lanes.width == 1) {
    b_.CreateAlignedStore(raw, first, llvm::Align(bytes));
    return;
  }
  llvm::Value* const mask = lanes.mask != nullptr ? lanes.mask : e_.widen(b_.getTrue(), lanes.width);
  b_.CreateMaskedScatter(raw, lane_addresses(first, to.arg, lanes, stride), llvm::Align(bytes), mask);
}

void Memory::store_vector(llvm::Value* pointer, const Store& to, llvm::Value* value, const Lanes& lanes) {
  const DataType dtype = kernel_.arg(to.arg).dtype;
  const auto bytes = static_cast<uint64_t>(bytes_of(dtype, 1));
  llvm::Value* const raw = to_storage(dtype, to.type, e_.widen(value, lanes.width));
  llvm::Value* const first =
      lanes.offset == nullptr ? pointer : b_.CreateGEP(storage_type(e_.context, dtype), pointer, lanes.offset);
  if (lanes.mask != nullptr) {
    b_.CreateMaskedStore(raw, first, llvm::Align(bytes), lanes.mask);
    return;
  }
  llvm::StoreInst* const store =
      b_.CreateAlignedStore(raw, first, llvm::Align(to.non_temporal ? bytes * static_cast<uint64_t>(lanes.width) : bytes));
  if (to.non_temporal) mark_non_temporal(store);
}

llvm::Value* Memory::line_of(const Store& to, const ValueList& vectors) {
  const DataType dtype = kernel_.arg(to.arg).dtype;
  ValueList parts;
  for (llvm::Value* value : vectors) parts.push_back(e_.widen(value, e_.width));
  if (parts.size() == 1) return to_storage(dtype, to.type, parts[0]);
  if (stores_pairs(to.arg)) return to_storage(dtype, to.type, e_.side_by_side(parts[0], parts[1]));
  return e_.side_by_side(to_storage(dtype, to.type, parts[0]), to_storage(dtype, to.type, parts[1]));
}

void Memory::store_line(llvm::Value* pointer, llvm::Value* line, llvm::Value* mask) {
  constexpr auto kLine = static_cast<uint64_t>(tuning::kLine);
  if (mask == nullptr)
    mark_non_temporal(b_.CreateAlignedStore(line, pointer, llvm::Align(kLine)));
  else
    b_.CreateMaskedStore(line, pointer, llvm::Align(kLine / static_cast<uint64_t>(lanes_of(line))), mask);
}

// A chunk of as many bytes as a line, in vectors of the machine's width.
bool Memory::stores_whole_chunks(const kernel::Node& store, const std::vector<Lanes>& chunk) const {
  const kernel::Arg& arg = kernel_.arg(store.arg);
  const int width = vector_bits(e_.target) / 32;
  return e_.target->packs_bytes && !e_.across_rows() && is_byte_integer(arg.dtype) && store.type == Type::f32 &&
         arg.strides.back() == 1 && static_cast<int>(chunk.size()) * width == kVirtualLanes && chunk.front().width == width &&
         chunk.back().mask == nullptr;
}

void Memory::store_chunk(llvm::Value* pointer, const Store& to, const ValueList& vectors, const Lanes& first) {
  constexpr size_t kPacked = 4;
  const KnownValues known{to.range != kernel::NumberRange::any, to.range == kernel::NumberRange::nonnegative};
  for (size_t v = 0; v < vectors.size(); v += kPacked) {
    const ValueList some(vectors.begin() + static_cast<std::ptrdiff_t>(v),
                         vectors.begin() + static_cast<std::ptrdiff_t>(v + kPacked));
    llvm::Value* const bytes = emit_bytes_from_f32(b_, kernel_.arg(to.arg).dtype, some, known, e_.target);
    llvm::Value* const address =
        b_.CreateGEP(b_.getInt8Ty(), pointer, b_.CreateAdd(first.offset, i64(static_cast<int64_t>(v) * first.width)));
    const auto lanes = static_cast<uint64_t>(lanes_of(bytes));
    llvm::StoreInst* const store = b_.CreateAlignedStore(bytes, address, llvm::Align(to.non_temporal ? lanes : 1));
    if (to.non_temporal) mark_non_temporal(store);
  }
}

}  // namespace lamina::cpu
