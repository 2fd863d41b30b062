// Elements of four bits, two to a byte, the even one in the low half.
//
// The address of such an arg counts nibbles: twice the byte address, plus one for a high half. So rows, segments and lanes step
// through it by elements like through any other arg, and what lies at an odd place is known only here.
//   packed:    the lanes fill whole bytes: half as many bytes are loaded or stored at once, and spread or joined
//   byte-wise: a lane at a time; storing one changes half of a byte, so two threads must not share a byte (see shares_bytes)
#include "backends/cpu/emit/kernel_emitter.h"

namespace lamina::cpu {

namespace {

bool is_packed(const kernel::Arg& arg, const Lanes& lanes) { return lanes.width > 1 && !shares_bytes(arg); }

std::vector<int> every_other(int first, int width) {
  std::vector<int> lanes;
  for (int lane = first; lane < width; lane += 2) lanes.push_back(lane);
  return lanes;
}

}  // namespace

llvm::Value* KernelEmitter::nibble_address(llvm::Value* byte_pointer) {
  llvm::Value* const bytes = b_.CreatePtrToInt(byte_pointer, b_.getInt64Ty());
  return b_.CreateIntToPtr(b_.CreateShl(bytes, 1), b_.getPtrTy());
}

// The byte that holds the nibble at `address`, and how far up in it.
KernelEmitter::Nibble KernelEmitter::nibble_at(llvm::Value* address, llvm::Value* element) {
  llvm::Value* const position = b_.CreateAdd(b_.CreatePtrToInt(address, b_.getInt64Ty()), element);
  llvm::Value* const shift = b_.CreateShl(b_.CreateTrunc(b_.CreateAnd(position, i64(1)), b_.getInt8Ty()), 2);
  return {b_.CreateIntToPtr(b_.CreateLShr(position, 1), b_.getPtrTy()), shift};
}

llvm::Value* KernelEmitter::lane_of(llvm::Value* vector, int lane) {
  return vector->getType()->isVectorTy() ? b_.CreateExtractElement(vector, i64(lane)) : vector;
}

// One nibble a lane, in the low half of an i8; what is in the high half means nothing.
llvm::Value* KernelEmitter::load_nibbles(llvm::Value* address, const kernel::Arg& arg, const Lanes& lanes, int64_t stride) {
  auto* const byte = b_.getInt8Ty();
  const auto one_byte = llvm::Align(1);
  if (lanes.width == 1 || stride == 0) {
    const Nibble at = nibble_at(address, stride == 0 ? i64(0) : b_.CreateMul(lanes.offset, i64(stride)));
    return widen(b_.CreateLShr(b_.CreateAlignedLoad(byte, at.byte, one_byte), at.shift), lanes.width);
  }
  if (is_packed(arg, lanes)) {
    auto* const bytes = llvm::FixedVectorType::get(byte, static_cast<unsigned>(lanes.width / 2));
    llvm::Value* const from = nibble_at(address, lanes.offset).byte;
    llvm::Value* loaded = nullptr;
    if (lanes.mask == nullptr) {
      loaded = b_.CreateAlignedLoad(bytes, from, one_byte);
    } else {
      llvm::Value* const live = b_.CreateShuffleVector(lanes.mask, every_other(0, lanes.width));
      loaded = b_.CreateMaskedLoad(bytes, from, one_byte, live, llvm::Constant::getNullValue(bytes));
    }
    std::vector<int> twice;
    std::vector<llvm::Constant*> shifts;
    for (int lane = 0; lane < lanes.width; ++lane) {
      twice.push_back(lane / 2);
      shifts.push_back(b_.getInt8(static_cast<uint8_t>(lane % 2 * 4)));
    }
    return b_.CreateLShr(b_.CreateShuffleVector(loaded, twice), llvm::ConstantVector::get(shifts));
  }
  llvm::Value* result = llvm::Constant::getNullValue(llvm::FixedVectorType::get(byte, static_cast<unsigned>(lanes.width)));
  for (int lane = 0; lane < lanes.width; ++lane) {
    const Nibble at = nibble_at(address, b_.CreateMul(b_.CreateAdd(lanes.offset, i64(lane)), i64(stride)));
    llvm::Value* const value =
        b_.CreateLShr(load_byte(at.byte, lanes.mask == nullptr ? nullptr : lane_of(lanes.mask, lane)), at.shift);
    result = b_.CreateInsertElement(result, value, i64(lane));
  }
  return result;
}

// A byte that exists only where `live` (null: always) holds.
llvm::Value* KernelEmitter::load_byte(llvm::Value* at, llvm::Value* live) {
  if (live == nullptr) return b_.CreateAlignedLoad(b_.getInt8Ty(), at, llvm::Align(1));
  auto* const one = llvm::FixedVectorType::get(b_.getInt8Ty(), 1);
  llvm::Value* const loaded =
      b_.CreateMaskedLoad(one, at, llvm::Align(1), b_.CreateVectorSplat(1, live), llvm::Constant::getNullValue(one));
  return b_.CreateExtractElement(loaded, i64(0));
}

void KernelEmitter::store_byte(llvm::Value* value, llvm::Value* at, llvm::Value* live) {
  if (live == nullptr)
    b_.CreateAlignedStore(value, at, llvm::Align(1));
  else
    b_.CreateMaskedStore(b_.CreateVectorSplat(1, value), at, llvm::Align(1), b_.CreateVectorSplat(1, live));
}

// `raw`: one nibble a lane, in the low half of an i8, the high half 0.
void KernelEmitter::store_nibbles(llvm::Value* address, const kernel::Arg& arg, llvm::Value* raw, const Lanes& lanes,
                                  int64_t stride) {
  if (is_packed(arg, lanes)) return store_packed(nibble_at(address, lanes.offset).byte, raw, lanes);
  for (int lane = 0; lane < lanes.width; ++lane) {
    llvm::Value* const element = stride == 0 ? i64(0) : b_.CreateMul(b_.CreateAdd(lanes.offset, i64(lane)), i64(stride));
    const Nibble at = nibble_at(address, element);
    llvm::Value* const live = lanes.mask == nullptr ? nullptr : lane_of(lanes.mask, lane);
    llvm::Value* const others = b_.CreateAnd(load_byte(at.byte, live), b_.CreateLShr(b_.getInt8(0xf0), at.shift));
    store_byte(b_.CreateOr(others, b_.CreateShl(lane_of(raw, lane), at.shift)), at.byte, live);
  }
}

// Where the last live lane is an even one, the other half of its byte is no element of the row and keeps its bits.
void KernelEmitter::store_packed(llvm::Value* to, llvm::Value* raw, const Lanes& lanes) {
  const auto low_lanes = every_other(0, lanes.width), high_lanes = every_other(1, lanes.width);
  llvm::Value* const low = b_.CreateShuffleVector(raw, low_lanes);
  llvm::Value* const high = b_.CreateShl(b_.CreateShuffleVector(raw, high_lanes), 4);
  if (lanes.mask == nullptr) {
    b_.CreateAlignedStore(b_.CreateOr(low, high), to, llvm::Align(1));
    return;
  }
  llvm::Value* const low_live = b_.CreateShuffleVector(lanes.mask, low_lanes);
  llvm::Value* const high_live = b_.CreateShuffleVector(lanes.mask, high_lanes);
  llvm::Value* const before =
      b_.CreateMaskedLoad(low->getType(), to, llvm::Align(1), low_live, llvm::Constant::getNullValue(low->getType()));
  llvm::Value* const kept = b_.CreateAnd(before, llvm::ConstantInt::get(low->getType(), 0xf0));
  b_.CreateMaskedStore(b_.CreateOr(low, b_.CreateSelect(high_live, high, kept)), to, llvm::Align(1), low_live);
}

}  // namespace lamina::cpu
