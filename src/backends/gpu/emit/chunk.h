// The work of a phase at one chunk of a thread's elements: loads, the values of the nodes, then their uses.
#pragma once

#include "backends/gpu/emit/column_sums.h"
#include "backends/gpu/emit/reductions.h"
#include "backends/gpu/emit/values.h"

namespace lamina::gpu {

class Chunk : private Part {
 public:
  Chunk(Emission& emission, const Values& values, Reductions& reductions, ColumnSums& columns)
      : Part(emission), values_(values), reductions_(reductions), columns_(columns) {}

  void declare_live_values();  // of a row
  // The chunk starts at `at` and is the thread's chunk number `k` of its block.
  void emit(int phase);

 private:
  void emit_loads(int phase);
  void emit_elements(int phase);
  void emit_root(kernel::NodeIndex root, int phase);
  bool is_vector_store(kernel::NodeIndex root) const {
    return node(root).kind == kernel::NodeKind::store && e_.is_vector_access(node(root).arg);
  }

  const Values& values_;
  Reductions& reductions_;
  ColumnSums& columns_;
};

}  // namespace lamina::gpu
