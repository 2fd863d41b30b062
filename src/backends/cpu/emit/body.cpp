// What a walk does at a chunk of vectors: the values of the nodes there, then what becomes of them (stores, column sums,
// accumulators).
#include <algorithm>

#include "backends/cpu/emit/kernel_emitter.h"

namespace lamina::cpu {

using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;

llvm::Value* KernelEmitter::kept_address(const Row& row, NodeIndex index, const Lanes& lanes) {
  return b_.CreateGEP(row_type(node(index).type), row.kept[static_cast<size_t>(index)], lanes.offset);
}

void KernelEmitter::emit_body(const std::vector<Row*>& rows, const NodeList& nodes, int phase,
                              const std::vector<Lanes>& lanes) {
  const bool one_by_one = rows.size() > 1 || phases_.is_heavy(nodes) || (e_.across_rows() && step_ == row_lanes_);
  // Two vectors that leave as one line stay together.
  const auto in_twos = [&](const RootState& root) {
    return node(root.node).kind == NodeKind::store && memory_.stores_in_twos(node(root.node).arg);
  };
  const size_t fewest = !e_.across_rows() && std::any_of(roots_.begin(), roots_.end(), in_twos) ? 2 : 1;
  const size_t group = one_by_one ? fewest : lanes.size();
  const auto loaded = e_.across_rows() ? transposed_loads(*rows.front(), nodes, phase, lanes) : std::vector<ElementValues>();
  for (size_t first = 0; first < lanes.size(); first += group) {
    emit_lane_group(rows, nodes, phase, lanes, loaded, first, std::min(group, lanes.size() - first));
  }
  if (e_.across_rows()) prefetch_group(lanes, phase);
}

llvm::Value* KernelEmitter::kept_or_computed(Row& row, NodeIndex index, int phase, const Lanes& lanes,
                                             const ElementValues& known) {
  const int since = phases_.kept_since(index);
  const uint64_t bytes = node(index).type == kernel::Type::f64 ? 8 : 4;
  const auto align = llvm::Align(follows_lines() ? bytes : bytes * static_cast<uint64_t>(lanes.width));
  if (phases_.is_read_back(index, phase)) {
    return b_.CreateAlignedLoad(e_.type(node(index).type, lanes.width), kept_address(row, index, lanes), align);
  }
  llvm::Value* const loaded = known[static_cast<size_t>(index)];
  llvm::Value* const value = loaded != nullptr ? loaded : element_value(row, index, lanes, known);
  if (since == phase) b_.CreateAlignedStore(value, kept_address(row, index, lanes), align);
  return value;
}

// `loaded`: per vector of the chunk, what is known already; none where nothing is.
void KernelEmitter::emit_lane_group(const std::vector<Row*>& rows, const NodeList& nodes, int phase,
                                    const std::vector<Lanes>& lanes, const std::vector<ElementValues>& loaded, size_t first,
                                    size_t count) {
  // values[row][vector][node]
  std::vector<std::vector<ElementValues>> values(rows.size(), std::vector<ElementValues>(count));
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t v = 0; v < count; ++v)
      values[r][v] = loaded.empty() ? ElementValues(kernel_.nodes.size(), nullptr) : loaded[first + v];
    for (const NodeIndex i : nodes) {
      for (size_t v = 0; v < count; ++v) {
        values[r][v][static_cast<size_t>(i)] = kept_or_computed(*rows[r], i, phase, lanes[first + v], values[r][v]);
      }
    }
  }
  if (!e_.across_rows()) prefetch(rows, nodes, lanes, first, count, phase);
  for (RootState& root : roots_) {
    const auto operand = static_cast<size_t>(node(root.node).operands[0]);
    std::vector<ValueList> operands(rows.size());
    for (size_t r = 0; r < rows.size(); ++r) {
      for (size_t v = 0; v < count; ++v) {
        llvm::Value* const known = values[r][v][operand];
        operands[r].push_back(known != nullptr ? known : e_.widen(rows[r]->values[operand], lanes[first + v].width));
      }
    }
    emit_root(rows, root, phase, lanes, first, operands);
  }
}

// operands[row][vector]: of vectors `first` and after of the chunk `lanes`.
void KernelEmitter::emit_root(const std::vector<Row*>& rows, RootState& root, int phase, const std::vector<Lanes>& lanes,
                              size_t first, const std::vector<ValueList>& operands) {
  const Node& n = node(root.node);
  const auto arg = static_cast<size_t>(n.arg);
  const bool is_store = n.kind == NodeKind::store, transposes = is_transposed_in_registers(n),
             whole_chunks = is_store && memory_.stores_whole_chunks(n, lanes);
  if (whole_chunks || transposes) root.chunk.resize(rows.size());
  for (size_t v = 0; v < operands[0].size(); ++v) {
    const Lanes& at = lanes[first + v];
    const bool ends_chunk = first + v + 1 == lanes.size();
    if (transposes) {
      root.chunk[0].push_back(e_.widen(operands[0][v], at.width));
      if (ends_chunk || root.chunk[0].size() == static_cast<size_t>(row_lanes_))
        finish_transpose(*rows.front(), root, lanes[first + v + 1 - root.chunk[0].size()].offset);
    } else if (is_realigned(n)) {
      append_to_stream(*rows.front(), n.arg, operands[0][v], at, begins_row_ && first + v == 0);
    } else if (whole_chunks) {
      for (size_t r = 0; r < rows.size(); ++r) {
        root.chunk[r].push_back(e_.widen(operands[r][v], at.width));
        if (!ends_chunk) continue;
        memory_.store_chunk(rows[r]->segment[arg], {n.arg, n.type, streams(n.arg)}, root.chunk[r], lanes.front());
        root.chunk[r].clear();
      }
    } else if (is_store) {
      const bool two = v + 1 < operands[0].size() && memory_.stores_in_twos(n.arg) && at.mask == nullptr &&
                       lanes[first + v + 1].mask == nullptr;
      for (size_t r = 0; r < rows.size(); ++r) {
        llvm::Value* const value = two ? e_.side_by_side(operands[r][v], operands[r][v + 1]) : operands[r][v];
        memory_.store_arg(rows[r]->segment[arg], {n.arg, n.type, streams(n.arg)}, value,
                          two ? Lanes{2 * at.width, at.offset, nullptr} : at, kernel_.args[arg].strides.back());
      }
      v += two ? 1 : 0;
    } else if (n.kind == NodeKind::column_sum) {
      llvm::Type* const scalar = operands[0][v]->getType()->getScalarType();
      const ColumnSums sums = column_sums(
          root.node, at.width == 1 ? scalar : llvm::FixedVectorType::get(scalar, static_cast<unsigned>(at.width)), at);
      llvm::Value* sum = sums.so_far;
      for (size_t r = 0; r < rows.size(); ++r) sum = b_.CreateFAdd(sum, operands[r][v]);
      store_column_sums(sums, sum, at);
    } else {
      accumulate_root(*rows.front(), root, phase, operands[0][v], at);
    }
  }
}

// The partial sums at `lanes`; 0 where the tile starts a block of rows.
KernelEmitter::ColumnSums KernelEmitter::column_sums(NodeIndex root, llvm::Type* type, const Lanes& lanes) {
  llvm::Type* const scalar = type->getScalarType();
  llvm::Value* position =
      b_.CreateAdd(lanes.offset, i64(column_slot_[static_cast<size_t>(root)] * column_pitch(kernel_.row_size())));
  if (segment_index_ != nullptr) position = b_.CreateAdd(position, b_.CreateMul(segment_index_, i64(kernel_.extents.back())));
  llvm::Value* const address = b_.CreateGEP(scalar, e_.column_sums, position);
  const auto align = llvm::Align(scalar->getPrimitiveSizeInBits() / 8);
  llvm::Value* const zero = llvm::Constant::getNullValue(type);
  llvm::Value* const sum = lanes.mask == nullptr ? static_cast<llvm::Value*>(b_.CreateAlignedLoad(type, address, align))
                                                 : b_.CreateMaskedLoad(type, address, align, lanes.mask, zero);
  return {address, b_.CreateSelect(first_of_partials_, zero, sum)};
}

void KernelEmitter::store_column_sums(const ColumnSums& sums, llvm::Value* sum, const Lanes& lanes) {
  const auto align = llvm::Align(sum->getType()->getScalarType()->getPrimitiveSizeInBits() / 8);
  if (lanes.mask == nullptr)
    b_.CreateAlignedStore(sum, sums.address, align);
  else
    b_.CreateMaskedStore(sum, sums.address, align, lanes.mask);
}

}  // namespace lamina::cpu
