// The state of source emission, shared by emit_c (rows, phases, loops), emit_c_values (one value per node), emit_c_reductions
// (accumulators) and emit_c_split. Not part of the module's interface.
#pragma once

#include <string>
#include <vector>

#include "backends/gpu/emit_c.h"
#include "interface/status.h"

namespace lamina::gpu {

// Lines of C with the right indentation.
class Text {
 public:
  template <typename... Parts>
  void line(const Parts&... parts) {
    text_ += std::string(static_cast<size_t>(depth_) * 2, ' ') + join(parts...) + "\n";
  }
  template <typename... Parts>
  void open(const Parts&... parts) {
    line(parts..., " {");
    ++depth_;
  }
  void close() {
    --depth_;
    line("}");
  }
  const std::string& str() const { return text_; }

 private:
  std::string text_;
  int depth_ = 0;
};

class SourceEmitter {
 public:
  SourceEmitter(const kernel::Kernel& kernel, const Schedule& schedule, const DeviceLimits& limits, std::string symbol);
  void emit();
  const std::string& text() const { return out_.str(); }
  const std::vector<std::string>& symbols() const { return symbols_; }

 private:
  using NodeList = kernel::NodeList;

  // emit_c.cpp: the kernel, rows, phases and loops.
  void emit_signature(const std::string& symbol, int group_size, bool columns_only);
  void emit_threads();
  void emit_row_place();
  void emit_outer_positions(const std::string& type, const std::string& cast);
  void emit_row_pointers();
  void begin_row();
  void emit_row();
  void emit_flat();
  void emit_phase(int phase);
  void emit_block(int phase);
  void emit_columns_begin();
  void emit_chunk(const NodeList& nodes, int phase);
  void emit_places(const NodeList& nodes);
  void emit_loads(const NodeList& nodes, int phase);
  void emit_elements(const NodeList& nodes, int phase);
  void emit_root(kernel::NodeIndex root, int phase);
  void emit_stores();
  void emit_columns_kernel();

  // emit_c_split.cpp: several teams per row, one kernel per phase.
  void emit_split();
  void emit_split_kernel(int phase);
  void emit_split_row(int phase);
  void join_blocks(int phase);
  void emit_result_accesses(int phase, bool loads);

  // emit_c_values.cpp: one value per node.
  void emit_row_values(int phase);
  std::string element_value(kernel::NodeIndex node, bool first_element) const;
  std::string map_value(const kernel::Node& node) const;
  std::string power_value(const kernel::Node& node, const std::string& x) const;
  std::string constant(double value, kernel::Type type) const;
  std::string constant(const kernel::Node& node) const;
  std::string from_storage(DataType dtype, const std::string& raw) const;
  // the element of the arg at that offset, in the compute type
  std::string load_at(int arg, const std::string& offset) const;
  std::string to_storage(DataType dtype, kernel::Type type, const std::string& value) const;
  std::string cast_value(kernel::Type from, kernel::Type to, const std::string& value) const;
  std::string centered(const kernel::Node& node) const;
  std::string name(kernel::NodeIndex node) const { return join("n", node); }
  std::string operand(const kernel::Node& node, int k) const { return name(node.operands[static_cast<size_t>(k)]); }
  std::string offset(int arg) const;  // of the current chunk from the row's first element
  std::string entry_offset(const kernel::Node& n) const;
  std::string index_at(const kernel::Node& node, const std::string& inside) const;
  std::string place_sum(const Dims& steps, size_t first, size_t last, const char* prefix) const;

  // emit_c_reductions.cpp: accumulators.
  void begin_root(kernel::NodeIndex root, int phase);  // once per phase
  void begin_totals(kernel::NodeIndex root, int phase);
  void begin_block(kernel::NodeIndex root, int phase);  // once per block of the row
  void accumulate(kernel::NodeIndex root, int phase, const std::string& value);
  void fold_block(kernel::NodeIndex root, int phase);  // computes the result of the block
  void join_block(kernel::NodeIndex root, int phase);  // joins it with the results of the row's earlier blocks
  void finish_root(kernel::NodeIndex root, int phase);
  void finish_moments(kernel::NodeIndex root, const std::string& variance);
  void fold_team(const std::string& slot, kernel::Type type, kernel::Reduction reduction);
  void fold_deviations(kernel::NodeIndex root, int phase);
  void emit_shift(kernel::NodeIndex root);
  int accumulator_count(kernel::NodeIndex root, int phase) const;
  bool is_sum(kernel::NodeIndex root) const;
  // For rows of several blocks, both walks of the moments run over each block, and blocks are joined.
  bool by_block(kernel::NodeIndex root) const { return node(root).kind == kernel::NodeKind::moments && !one_block_; }
  std::string count(kernel::Type type) const;  // number of the row's elements, as a pair

  const kernel::Node& node(kernel::NodeIndex i) const { return kernel_.node(i); }
  const kernel::Arg& arg(int a) const { return kernel_.arg(a); }
  bool is_reduction(kernel::NodeIndex i) const {
    return node(i).kind == kernel::NodeKind::reduce || node(i).kind == kernel::NodeKind::moments;
  }
  bool shares_bytes(int a) const { return bits_of(arg(a).dtype) < 8; }
  bool is_vector_access(int a) const { return schedule_.vector > 1 && arg(a).strides.back() == 1 && !shares_bytes(a); }

  const kernel::Kernel& kernel_;
  const Schedule& schedule_;
  const kernel::LoopPlan plan_;
  DeviceLimits limits_;
  std::string symbol_;
  size_t outer_;
  int64_t row_size_;
  bool one_block_;
  std::vector<bool> known_;       // per node: whether its row value is already in the text
  std::vector<int> column_slot_;  // per node: position among the column sums
  int columns_ = 0;
  bool stores_rows_ = true;  // row values are stored as soon as they are computed
  std::vector<std::string> symbols_;
  Text out_;
};

// The results of a reduction's block, as variables of the text. Splitting a row stores them in memory.
std::vector<std::string> block_results(kernel::NodeIndex root, const kernel::Node& node, int phase);

const char* c_type(kernel::Type type);     // lm_f32
const char* suffix_of(kernel::Type type);  // f32: the suffix of functions for that type
const char* storage_type(DataType dtype);  // lm_u16

}  // namespace lamina::gpu
