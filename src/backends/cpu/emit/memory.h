// Elements in memory: loads, stores and the conversions in both.
#pragma once

#include <array>
#include <vector>

#include "backends/cpu/emit/row.h"
#include "kernels/bytes_of_numbers.h"

namespace lamina::cpu {

// The destination of a value.
struct Store {
  int arg;
  kernel::Type type;          // of the value
  bool non_temporal = false;  // for whole vectors, which must then be aligned to their size
  kernel::NumberRange range = kernel::NumberRange::any;
};

class Memory : private Part {
 public:
  explicit Memory(Emission& emission) : Part(emission) {}

  // Accesses lanes.offset steps of `stride` from `pointer`. Consecutive lanes have that stride too or, across rows, the
  // row's.
  llvm::Value* load_arg(llvm::Value* pointer, int arg, const Lanes& lanes, int64_t stride);
  void store_arg(llvm::Value* pointer, const Store& to, llvm::Value* value, const Lanes& lanes, int64_t stride);
  // The same in an entry of the arg.
  struct Entry {
    llvm::Value* number;              // i64, that all lanes share, or one per lane
    llvm::Value* exists = nullptr;    // i1, likewise; null: in all lanes
    double otherwise = 0;             // the value where it does not exist
    llvm::Value* of_first = nullptr;  // of lane 0, if each lane's number is `step` more than that of the lane before
    int64_t step = 0;
    llvm::Value* common = nullptr;  // is added to all numbers; null: 0
    llvm::Value* in_row = nullptr;  // i1, with of_first: if false, it exists in no lane; null: true
  };
  llvm::Value* load_entry(llvm::Value* pointer, int arg, const Entry& entry, const Lanes& lanes, int64_t stride);
  // Contiguous elements.
  llvm::Value* load_vector(llvm::Value* pointer, int arg, const Lanes& lanes);
  void store_vector(llvm::Value* pointer, const Store& to, llvm::Value* value, const Lanes& lanes);
  // A line of elements in the stored type, from one or two vectors. The store writes the lanes of `mask`, or all of them,
  // past the caches.
  llvm::Value* line_of(const Store& to, const ValueList& vectors);
  void store_line(llvm::Value* pointer, llvm::Value* line, llvm::Value* mask);
  bool stores_pairs(int arg) const;  // two vectors are rounded and stored as one
  // A chunk of 64 elements in one store.
  bool stores_whole_chunks(const kernel::Node& store, const std::vector<Lanes>& chunk) const;
  void store_chunk(llvm::Value* pointer, const Store& to, const ValueList& vectors, const Lanes& first);

  // `value` as it reads back from memory.
  llvm::Value* round_trip(DataType dtype, kernel::Type type, llvm::Value* value);

 private:
  llvm::Value* to_compute(DataType dtype, llvm::Value* raw);
  llvm::Value* to_storage(DataType dtype, kernel::Type type, llvm::Value* value);
  llvm::Value* lane_addresses(llvm::Value* first, int arg, const Lanes& lanes, int64_t stride);
  llvm::Value* load_lanes(llvm::Value* addresses, DataType dtype, llvm::Value* mask, int width);
  // Every second element of two vectors. Their masks, from the mask of the lanes; null: all elements.
  using TwoMasks = std::array<llvm::Value*, 2>;
  TwoMasks masks_of_every_second(llvm::Value* mask, int width);
  llvm::Value* load_every_second(llvm::Value* first, DataType dtype, const TwoMasks& masks, int width);
  llvm::Value* load_regular(llvm::Value* first, DataType dtype, int64_t step, llvm::Value* mask, const TwoMasks& masks,
                            int width);
  void mark_non_temporal(llvm::StoreInst* store);
};

}  // namespace lamina::cpu
