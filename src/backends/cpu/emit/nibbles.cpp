// Elements of four bits, two per byte. The element with the even index is in the low half.
//
// The address of such an arg counts nibbles: twice the byte address, plus one for a high half. So rows, segments and lanes
// step through it by elements as through any other arg, and only this file handles odd positions.
//   packed:    the lanes fill whole bytes: loads or stores half as many bytes, and splits or joins them
//   byte-wise: one lane at a time; a store changes half of a byte, so two threads must not share a byte (see shares_bytes)
#include "backends/cpu/emit/nibbles.h"

#include "backends/cpu/schedule/footprint.h"

namespace lamina::cpu {

namespace {

bool is_packed(const kernel::Arg& arg, const Lanes& lanes) { return lanes.width > 1 && !shares_bytes(arg); }

std::vector<int> every_other(int first, int width) {
  std::vector<int> lanes;
  for (int lane = first; lane < width; lane += 2) lanes.push_back(lane);
  return lanes;
}

struct Nibble {
  llvm::Value* byte;
  llvm::Value* shift;  // i8: 0 or 4
};

// The byte of the nibble at `address`, and the nibble's shift in it.
Nibble nibble_at(Emission& e, llvm::Value* address, llvm::Value* element) {
  llvm::Value* const position = e.b.CreateAdd(e.b.CreatePtrToInt(address, e.b.getInt64Ty()), element);
  llvm::Value* const shift = e.b.CreateShl(e.b.CreateTrunc(e.b.CreateAnd(position, e.i64(1)), e.b.getInt8Ty()), 2);
  return {e.b.CreateIntToPtr(e.b.CreateLShr(position, 1), e.b.getPtrTy()), shift};
}

llvm::Value* lane_of(Emission& e, llvm::Value* vector, int lane) {
  return vector->getType()->isVectorTy() ? e.b.CreateExtractElement(vector, e.i64(lane)) : vector;
}

// A byte that exists only if `live` is true (null: always).
llvm::Value* load_byte(Emission& e, llvm::Value* at, llvm::Value* live) {
  if (live == nullptr) return e.b.CreateAlignedLoad(e.b.getInt8Ty(), at, llvm::Align(1));
  auto* const one = llvm::FixedVectorType::get(e.b.getInt8Ty(), 1);
  llvm::Value* const loaded =
      e.b.CreateMaskedLoad(one, at, llvm::Align(1), e.b.CreateVectorSplat(1, live), llvm::Constant::getNullValue(one));
  return e.b.CreateExtractElement(loaded, e.i64(0));
}

void store_byte(Emission& e, llvm::Value* value, llvm::Value* at, llvm::Value* live) {
  if (live == nullptr)
    e.b.CreateAlignedStore(value, at, llvm::Align(1));
  else
    e.b.CreateMaskedStore(e.b.CreateVectorSplat(1, value), at, llvm::Align(1), e.b.CreateVectorSplat(1, live));
}

// If the last live lane is an even one, the other half of its byte is no element of the row and keeps its bits.
void store_packed(Emission& e, llvm::Value* to, llvm::Value* raw, const Lanes& lanes) {
  const auto low_lanes = every_other(0, lanes.width), high_lanes = every_other(1, lanes.width);
  llvm::Value* const low = e.b.CreateShuffleVector(raw, low_lanes);
  llvm::Value* const high = e.b.CreateShl(e.b.CreateShuffleVector(raw, high_lanes), 4);
  if (lanes.mask == nullptr) {
    e.b.CreateAlignedStore(e.b.CreateOr(low, high), to, llvm::Align(1));
    return;
  }
  llvm::Value* const low_live = e.b.CreateShuffleVector(lanes.mask, low_lanes);
  llvm::Value* const high_live = e.b.CreateShuffleVector(lanes.mask, high_lanes);
  llvm::Value* const before =
      e.b.CreateMaskedLoad(low->getType(), to, llvm::Align(1), low_live, llvm::Constant::getNullValue(low->getType()));
  llvm::Value* const kept = e.b.CreateAnd(before, llvm::ConstantInt::get(low->getType(), 0xf0));
  e.b.CreateMaskedStore(e.b.CreateOr(low, e.b.CreateSelect(high_live, high, kept)), to, llvm::Align(1), low_live);
}

}  // namespace

llvm::Value* nibble_address(llvm::IRBuilder<>& b, llvm::Value* byte_pointer) {
  llvm::Value* const bytes = b.CreatePtrToInt(byte_pointer, b.getInt64Ty());
  return b.CreateIntToPtr(b.CreateShl(bytes, 1), b.getPtrTy());
}

// One nibble per lane, in the low half of an i8. The high half is undefined.
llvm::Value* load_nibbles(Emission& e, llvm::Value* address, const kernel::Arg& arg, const Lanes& lanes, int64_t stride) {
  auto* const byte = e.b.getInt8Ty();
  const auto one_byte = llvm::Align(1);
  if (lanes.width == 1 || stride == 0) {
    const Nibble at = nibble_at(e, address, stride == 0 ? e.i64(0) : e.b.CreateMul(lanes.offset, e.i64(stride)));
    return e.widen(e.b.CreateLShr(e.b.CreateAlignedLoad(byte, at.byte, one_byte), at.shift), lanes.width);
  }
  if (is_packed(arg, lanes)) {
    auto* const bytes = llvm::FixedVectorType::get(byte, static_cast<unsigned>(lanes.width / 2));
    llvm::Value* const from = nibble_at(e, address, lanes.offset).byte;
    llvm::Value* loaded = nullptr;
    if (lanes.mask == nullptr) {
      loaded = e.b.CreateAlignedLoad(bytes, from, one_byte);
    } else {
      llvm::Value* const live = e.b.CreateShuffleVector(lanes.mask, every_other(0, lanes.width));
      loaded = e.b.CreateMaskedLoad(bytes, from, one_byte, live, llvm::Constant::getNullValue(bytes));
    }
    std::vector<int> twice;
    std::vector<llvm::Constant*> shifts;
    for (int lane = 0; lane < lanes.width; ++lane) {
      twice.push_back(lane / 2);
      shifts.push_back(e.b.getInt8(static_cast<uint8_t>(lane % 2 * 4)));
    }
    return e.b.CreateLShr(e.b.CreateShuffleVector(loaded, twice), llvm::ConstantVector::get(shifts));
  }
  llvm::Value* result = llvm::Constant::getNullValue(llvm::FixedVectorType::get(byte, static_cast<unsigned>(lanes.width)));
  for (int lane = 0; lane < lanes.width; ++lane) {
    const Nibble at = nibble_at(e, address, e.b.CreateMul(e.b.CreateAdd(lanes.offset, e.i64(lane)), e.i64(stride)));
    llvm::Value* const value =
        e.b.CreateLShr(load_byte(e, at.byte, lanes.mask == nullptr ? nullptr : lane_of(e, lanes.mask, lane)), at.shift);
    result = e.b.CreateInsertElement(result, value, e.i64(lane));
  }
  return result;
}

// `raw`: one nibble per lane, in the low half of an i8, with a high half of 0.
void store_nibbles(Emission& e, llvm::Value* address, const kernel::Arg& arg, llvm::Value* raw, const Lanes& lanes,
                   int64_t stride) {
  if (is_packed(arg, lanes)) return store_packed(e, nibble_at(e, address, lanes.offset).byte, raw, lanes);
  for (int lane = 0; lane < lanes.width; ++lane) {
    llvm::Value* const element =
        stride == 0 ? e.i64(0) : e.b.CreateMul(e.b.CreateAdd(lanes.offset, e.i64(lane)), e.i64(stride));
    const Nibble at = nibble_at(e, address, element);
    llvm::Value* const live = lanes.mask == nullptr ? nullptr : lane_of(e, lanes.mask, lane);
    llvm::Value* const others = e.b.CreateAnd(load_byte(e, at.byte, live), e.b.CreateLShr(e.b.getInt8(0xf0), at.shift));
    store_byte(e, e.b.CreateOr(others, e.b.CreateShl(lane_of(e, raw, lane), at.shift)), at.byte, live);
  }
}

}  // namespace lamina::cpu
