// One value per node: element nodes as vectors of lanes, row nodes as row values.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "backends/cpu/emit/memory.h"
#include "backends/cpu/emit/row.h"

namespace lamina::cpu {

class Values : private Part {
 public:
  Values(Emission& emission, Memory& memory);

  // Computes the row values that phase `phase` may use, as far as they are computed for this row, including their stores.
  void compute_row_values(Row& row, int phase);
  // `known`: the values of earlier nodes.
  llvm::Value* element(const Row& row, kernel::NodeIndex node, const Lanes& lanes, const ElementValues& known);

  // A function that needs many operations, each of which waits for the one before. Vectors that are computed as one long vector
  // have their operations interleaved.
  bool is_function(kernel::NodeIndex node) const;
  ValueList of_function(const Row& row, kernel::NodeIndex node, std::span<const Lanes> vectors,
                        std::span<const ElementValues> known);

  // Nodes whose values are computed for all vectors of a chunk together. Random words: four neighbours share a call of the
  // generator, whose rounds are a long dependence chain. Sums of entries: the vectors share the loop over the entries.
  bool takes_chunks(kernel::NodeIndex node) const;
  bool any_takes_chunks(const NodeList& nodes) const;
  ValueList values_of_chunk(const Row& row, kernel::NodeIndex node, std::span<const Lanes> chunk);

 private:
  bool draws_for_neighbours(kernel::NodeIndex node) const;
  ValueList draw_for_neighbours(const Row& row, kernel::NodeIndex node, std::span<const Lanes> chunk);
  // In each vector, lanes that share the entries from `begin` to `end` - 1; or one vector with a first and last one per lane.
  ValueList sum_entries(const Row& row, const kernel::Node& node, llvm::Value* begin, llvm::Value* end,
                        std::span<const Lanes> vectors);
  llvm::Value* map_value(const kernel::Node& node, ValueList operands);
  llvm::Value* cast_value(llvm::Value* value, kernel::Type from, kernel::Type to);
  // If each element's value is as much more than that of the element before: how much.
  std::optional<int64_t> step_along_row(kernel::NodeIndex node) const;
  llvm::Value* value_at(const Row& row, kernel::NodeIndex node, llvm::Value* offset);
  struct Terms {
    llvm::Value *&of_lanes, *&common;
  };
  void split_terms(const Row& row, kernel::NodeIndex node, kernel::MapOp op, const ElementValues& known, Terms terms);
  Memory::Entry entry_of(const Row& row, const kernel::Node& node, const Lanes& lanes, const ElementValues& known);
  llvm::Value* centered(const Row& row, kernel::NodeIndex moments, llvm::Value* value, llvm::Value* scale = nullptr);

  Memory& memory_;
  std::vector<bool> may_clear_nan_;
  std::vector<bool> is_equal_in_lanes_;  // if lanes are rows; else none is
};

}  // namespace lamina::cpu
