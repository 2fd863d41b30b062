// Elements of s8 and u8 leave a chunk of 64 at a time: converted vector by vector, packed and stored as one line. Alone, a
// vector of them would be a quarter of a line, which AVX-512 narrows and stores in one instruction that cannot go past the
// caches.
#include "backends/cpu/emit/kernel_emitter.h"
#include "backends/cpu/vector/convert.h"

namespace lamina::cpu {

using kernel::Node;

bool KernelEmitter::stores_whole_chunks(const Node& store, const std::vector<Lanes>& chunk) const {
  constexpr size_t kVectors = 4;
  const kernel::Arg& arg = kernel_.args[static_cast<size_t>(store.arg)];
  const bool is_byte = arg.dtype == DataType::s8 || arg.dtype == DataType::u8;
  return target_.avx512 && !rows_in_lanes() && is_byte && store.type == kernel::Type::f32 && arg.strides.back() == 1 &&
         chunk.size() == kVectors && chunk.front().width == kVirtualLanes / static_cast<int>(kVectors) &&
         chunk.back().mask == nullptr;
}

void KernelEmitter::store_chunk(llvm::Value* pointer, int arg, const Values& vectors, const Lanes& first) {
  llvm::Value* const bytes = emit_bytes_from_f32(b_, kernel_.args[static_cast<size_t>(arg)].dtype, vectors);
  llvm::Value* const address = b_.CreateGEP(b_.getInt8Ty(), pointer, first.offset);
  llvm::StoreInst* const store = b_.CreateAlignedStore(bytes, address, llvm::Align(streams(arg) ? kVirtualLanes : 1));
  if (streams(arg)) mark_non_temporal(store);
}

}  // namespace lamina::cpu
