#include "backends/cpu/emit/values.h"

#include <algorithm>
#include <numeric>

#include "backends/cpu/schedule/lane_order.h"
#include "backends/cpu/vector/convert.h"
#include "backends/cpu/vector/philox.h"
#include "backends/cpu/vector/simple_map.h"
#include "kernels/bytes_of_numbers.h"

namespace lamina::cpu {

using kernel::MapOp;
using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;
using kernel::Type;

Values::Values(Emission& emission, Memory& memory)
    : Part(emission),
      memory_(memory),
      is_equal_in_lanes_(emission.across_rows() ? equal_in_lanes(kernel_, schedule_.lane_steps)
                                                : std::vector<bool>(kernel_.nodes.size())) {
  for (size_t i = 0; i < kernel_.nodes.size(); ++i)
    may_clear_nan_.push_back(kernel::may_clear_nan(kernel_, static_cast<NodeIndex>(i)));
}

// Computes the row values that phase `phase` may use: all whose operands are row values and known.
void Values::compute_row_values(Row& row, int phase) {
  const Lanes lanes{row.frame.lanes, nullptr, row.frame.mask};
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    const Node& n = kernel_.nodes[i];
    if (n.per_element || n.phase > phase || row.values[i] != nullptr) continue;
    if (row.computes != nullptr && !(*row.computes)[i]) continue;
    const auto operand = [&](int k) { return row.values[static_cast<size_t>(n.operands[static_cast<size_t>(k)])]; };
    switch (n.kind) {
      case NodeKind::load: row.values[i] = memory_.load_arg(row.pointers[static_cast<size_t>(n.arg)], n.arg, lanes, 0); break;
      case NodeKind::load_entry:
        row.values[i] = memory_.load_entry(row.pointers[static_cast<size_t>(n.arg)], n.arg,
                                           {operand(0), n.operands[1] < 0 ? nullptr : operand(1), n.value}, lanes, 0);
        break;
      case NodeKind::sum_entries: row.values[i] = sum_entries(row, n, operand(0), operand(1), {&lanes, 1}).front(); break;
      case NodeKind::constant: {
        llvm::Type* const type = e_.type(n.type, row.frame.lanes);
        row.values[i] = type->isFPOrFPVectorTy() ? llvm::ConstantFP::get(type, n.value)
                                                 : llvm::ConstantInt::getSigned(type, static_cast<int64_t>(n.value));
        break;
      }
      case NodeKind::index: row.values[i] = row.index_base[i]; break;
      case NodeKind::center:
        row.values[i] = centered(row, n.operands[1], operand(0), n.operands[2] < 0 ? nullptr : operand(2));
        break;
      case NodeKind::map: {
        ValueList operands;
        for (int k = 0; k < kernel::operand_count(n); ++k) operands.push_back(operand(k));
        row.values[i] = map_value(n, operands);
        break;
      }
      case NodeKind::store:
        memory_.store_arg(row.pointers[static_cast<size_t>(n.arg)], {n.arg, n.type}, operand(0), lanes, 0);
        row.values[i] = operand(0);  // marks it as done
        break;
      default: break;  // reductions, and nodes that read moments, are set at the end of their loop
    }
  }
}

// Values that all lanes share are not widened.
static llvm::Value* narrow_value(const Row& row, NodeIndex i, const ElementValues& known) {
  llvm::Value* const of_lanes = known[static_cast<size_t>(i)];
  return of_lanes != nullptr ? of_lanes : row.value(i);
}

llvm::Value* Values::element(const Row& row, NodeIndex index, const Lanes& lanes, const ElementValues& known) {
  const Node& n = node(index);
  const auto operand = [&](int k) {
    const auto i = static_cast<size_t>(n.operands[static_cast<size_t>(k)]);
    return known[i] != nullptr ? known[i] : e_.widen(row.values[i], lanes.width);
  };
  switch (n.kind) {
    case NodeKind::load:
      return memory_.load_arg(row.segment[static_cast<size_t>(n.arg)], n.arg, lanes,
                              kernel_.args[static_cast<size_t>(n.arg)].strides.back());
    case NodeKind::load_entry:
      return memory_.load_entry(row.segment[static_cast<size_t>(n.arg)], n.arg, entry_of(row, n, lanes, known), lanes,
                                kernel_.args[static_cast<size_t>(n.arg)].strides.back());
    case NodeKind::sum_entries: {
      llvm::Value* const begin = narrow_value(row, n.operands[0], known);
      return sum_entries(row, n, begin, narrow_value(row, n.operands[1], known), {&lanes, 1}).front();
    }
    case NodeKind::index: {
      const int64_t step = n.coefficients.back();
      llvm::Value* const base =
          b_.CreateAdd(row.index_base[static_cast<size_t>(index)], e_.widen(b_.CreateMul(lanes.offset, i64(step)), e_.group));
      if (lanes.width == 1 || e_.across_rows()) return base;
      auto* const type = llvm::FixedVectorType::get(b_.getInt64Ty(), static_cast<unsigned>(lanes.width));
      return b_.CreateAdd(e_.widen(base, lanes.width),
                          b_.CreateMul(b_.CreateStepVector(type), e_.widen(i64(step), lanes.width)));
    }
    case NodeKind::center: return centered(row, n.operands[1], operand(0), n.operands[2] < 0 ? nullptr : operand(2));
    default: {
      ValueList operands;
      for (int k = 0; k < kernel::operand_count(n); ++k) operands.push_back(operand(k));
      return map_value(n, operands);
    }
  }
}

bool Values::is_function(NodeIndex index) const {
  return node(index).kind == NodeKind::map && plan_.cost(index) == kernel::CostClass::function;
}

ValueList Values::of_function(const Row& row, NodeIndex index, std::span<const Lanes> vectors,
                              std::span<const ElementValues> known) {
  const Node& n = node(index);
  const int width = vectors.front().width;
  ValueList operands;
  for (int k = 0; k < kernel::operand_count(n); ++k) {
    const auto i = static_cast<size_t>(n.operands[static_cast<size_t>(k)]);
    ValueList parts;
    for (const ElementValues& of_vector : known) parts.push_back(of_vector[i]);
    operands.push_back(parts[0] != nullptr ? e_.side_by_side(parts)
                                           : e_.widen(row.values[i], width * static_cast<int>(vectors.size())));
  }
  llvm::Value* const all = map_value(n, operands);
  ValueList values;
  for (size_t v = 0; v < vectors.size(); ++v) {
    std::vector<int> lanes(static_cast<size_t>(width));
    std::iota(lanes.begin(), lanes.end(), static_cast<int>(v) * width);
    values.push_back(b_.CreateShuffleVector(all, lanes));
  }
  return values;
}

// If all lanes share the number, the entry is contiguous.
Memory::Entry Values::entry_of(const Row& row, const Node& n, const Lanes& lanes, const ElementValues& known) {
  const auto value = [&](NodeIndex i) {
    llvm::Value* const found = narrow_value(row, i, known);
    return is_equal_in_lanes_[static_cast<size_t>(i)] && lanes_of(found) > 1 ? b_.CreateExtractElement(found, i64(0)) : found;
  };
  Memory::Entry entry{value(n.operands[0]), n.operands[1] < 0 ? nullptr : value(n.operands[1]), n.value};
  if (const std::optional<int64_t> step = step_along_row(n.operands[0]); step && !e_.across_rows()) {
    entry.of_first = value_at(row, n.operands[0], lanes.offset);
    entry.step = *step;
    if (n.operands[1] >= 0 && lanes_of(entry.number) > 1) {
      entry.exists = nullptr;
      split_terms(row, n.operands[1], MapOp::logical_and, known, {entry.exists, entry.in_row});
    }
    return entry;
  }
  if (lanes.width > 1 && lanes_of(entry.number) > 1 && node(n.operands[0]).per_element) {
    entry.number = nullptr;
    split_terms(row, n.operands[0], MapOp::add, known, {entry.number, entry.common});
  }
  return entry;
}

ValueList Values::sum_entries(const Row& row, const Node& n, llvm::Value* begin, llvm::Value* end,
                              std::span<const Lanes> vectors) {
  const auto arg = static_cast<size_t>(n.arg), order = static_cast<size_t>(n.order);
  const int limits = std::max(lanes_of(begin), lanes_of(end));  // per lane, or 1
  ValueList sums;
  for (const Lanes& lanes : vectors) {
    sums.push_back(e_.alloca_at_entry(e_.type(Type::f64, lanes.width)));
    b_.CreateStore(llvm::Constant::getNullValue(e_.type(Type::f64, lanes.width)), sums.back());
  }
  begin = e_.widen(begin, limits), end = e_.widen(end, limits);
  const auto add = [&](llvm::Value* place, llvm::Value* exists) {
    const Lanes of_order = limits == 1 ? Lanes{} : vectors.front();
    llvm::Value* const entry = memory_.load_entry(row.pointers[order], n.order, {place, exists}, of_order, 0);
    for (size_t v = 0; v < vectors.size(); ++v) {
      llvm::Value* const element =
          memory_.load_entry(n.per_element ? row.segment[arg] : row.pointers[arg], n.arg, {entry, exists}, vectors[v],
                             n.per_element ? kernel_.args[arg].strides.back() : 0);
      llvm::Type* const type = e_.type(Type::f64, vectors[v].width);
      b_.CreateStore(b_.CreateFAdd(b_.CreateLoad(type, sums[v]), b_.CreateFPCast(element, type)), sums[v]);
    }
  };
  if (limits == 1) {
    e_.loop(begin, end, i64(1), [&](llvm::Value* place) { add(place, nullptr); });
  } else {
    e_.loop(i64(0), b_.CreateIntMaxReduce(b_.CreateSub(end, begin), true), i64(1), [&](llvm::Value* i) {
      llvm::Value* const place = b_.CreateAdd(begin, e_.widen(i, limits));
      add(place, b_.CreateICmpSLT(place, end));
    });
  }
  for (size_t v = 0; v < vectors.size(); ++v) sums[v] = b_.CreateLoad(e_.type(Type::f64, vectors[v].width), sums[v]);
  return sums;
}

bool Values::takes_chunks(NodeIndex index) const {
  const Node& n = node(index);
  const bool sums_together = n.kind == NodeKind::sum_entries && n.per_element && !node(n.operands[0]).per_element;
  return sums_together || draws_for_neighbours(index);
}

bool Values::any_takes_chunks(const NodeList& nodes) const {
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeIndex i) { return takes_chunks(i); });
}

ValueList Values::values_of_chunk(const Row& row, NodeIndex index, std::span<const Lanes> chunk) {
  const Node& n = node(index);
  if (n.kind != NodeKind::sum_entries) return draw_for_neighbours(row, index, chunk);
  constexpr size_t kTogether = 8;  // their sums are in registers
  ValueList values;
  for (size_t first = 0; first < chunk.size(); first += kTogether) {
    const auto some = chunk.subspan(first, std::min(kTogether, chunk.size() - first));
    const ValueList sums = sum_entries(row, n, row.value(n.operands[0]), row.value(n.operands[1]), some);
    values.insert(values.end(), sums.begin(), sums.end());
  }
  return values;
}

// Joins the terms of a sum or of a conjunction: those that differ between lanes, and those that are the same for all lanes.
void Values::split_terms(const Row& row, NodeIndex index, MapOp op, const ElementValues& known, Terms terms) {
  const Node& n = node(index);
  if (n.per_element && n.kind == NodeKind::map && n.op == op) {
    for (const int k : {0, 1}) split_terms(row, n.operands[static_cast<size_t>(k)], op, known, terms);
    return;
  }
  llvm::Value* const term = n.per_element ? known[static_cast<size_t>(index)] : row.value(index);
  llvm::Value*& all = n.per_element ? terms.of_lanes : terms.common;
  all = all == nullptr ? term : op == MapOp::add ? b_.CreateAdd(all, term) : b_.CreateAnd(all, term);
}

// x minus the mean, with the mean as high + low. With a scale: (x - high) * scale - low * scale, rounded once at the end.
llvm::Value* Values::centered(const Row& row, NodeIndex moments, llvm::Value* value, llvm::Value* scale) {
  const auto slot = static_cast<size_t>(moments);
  const int width = lanes_of(value);
  llvm::Value* const difference = b_.CreateFSub(value, e_.widen(row.mean_high[slot], width));
  llvm::Value* const low = row.mean_low[slot];
  if (scale == nullptr) return low == nullptr ? difference : b_.CreateFSub(difference, e_.widen(low, width));
  if (low == nullptr) return b_.CreateFMul(difference, scale);
  return e_.fma(difference, scale, b_.CreateFNeg(b_.CreateFMul(e_.widen(low, width), scale)));
}

// x - max(x), as in a softmax: at most 0, or NaN.
static bool is_below_its_maximum(const kernel::Kernel& kernel, NodeIndex index) {
  const Node& difference = kernel.nodes[static_cast<size_t>(index)];
  if (difference.kind != NodeKind::map || difference.op != MapOp::subtract) return false;
  const Node& maximum = kernel.nodes[static_cast<size_t>(difference.operands[1])];
  return maximum.kind == NodeKind::reduce && maximum.reduction == kernel::Reduction::maximum &&
         maximum.operands[0] == difference.operands[0];
}

// Of integers, cut off and modulo the type; 0 where b is 0. A processor may fault on divisors of 0 and on the one overflow,
// by -1, so that these divide by 1.
static llvm::Value* integer_quotient(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* y, bool is_signed) {
  llvm::Value *const zero = llvm::Constant::getNullValue(y->getType()), *const one = llvm::ConstantInt::get(y->getType(), 1);
  llvm::Value* const is_zero = b.CreateICmpEQ(y, zero);
  if (!is_signed) return b.CreateSelect(is_zero, zero, b.CreateUDiv(x, b.CreateSelect(is_zero, one, y)));
  llvm::Value* const negates = b.CreateICmpEQ(y, llvm::Constant::getAllOnesValue(y->getType()));
  llvm::Value* const quotient = b.CreateSDiv(x, b.CreateSelect(b.CreateOr(is_zero, negates), one, y));
  return b.CreateSelect(is_zero, zero, b.CreateSelect(negates, b.CreateNeg(x), quotient));
}

// A shift by the width or more moves all bits out.
static llvm::Value* shifted(llvm::IRBuilder<>& b, MapOp op, llvm::Value* x, llvm::Value* count, bool is_signed) {
  llvm::Type* const type = x->getType();
  llvm::Constant *const zero = llvm::Constant::getNullValue(type), *const last = llvm::ConstantInt::get(
                                                                       type, type->getScalarSizeInBits() - 1);
  llvm::Value* const inside = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, count, last);
  if (op == MapOp::shift_right && is_signed) return b.CreateAShr(x, inside);
  llvm::Value* const moved = op == MapOp::shift_left ? b.CreateShl(x, inside) : b.CreateLShr(x, inside);
  return b.CreateSelect(b.CreateICmpUGT(count, last), zero, moved);
}

llvm::Value* Values::map_value(const Node& n, ValueList operands) {
  using Predicate = llvm::CmpInst::Predicate;
  llvm::Value* const a = operands[0];
  llvm::Value* const b = operands.size() > 1 ? operands[1] : nullptr;
  const bool integer = a->getType()->isIntOrIntVectorTy(), is_signed = is_signed_integer(node(n.operands[0]).type);
  const auto compared = [&](Predicate of_signed, Predicate of_unsigned) {
    return b_.CreateICmp(is_signed ? of_signed : of_unsigned, a, b);
  };
  if (n.op == MapOp::maximum && may_clear_nan_[static_cast<size_t>(&n - kernel_.nodes.data())])
    return emit_positive_part(b_, a);
  if (!integer && is_simple_map(n.op)) return emit_simple_map(b_, n.op, operands);
  switch (n.op) {
    case MapOp::add: return b_.CreateAdd(a, b);
    case MapOp::subtract: return b_.CreateSub(a, b);
    case MapOp::multiply: return b_.CreateMul(a, b);
    case MapOp::divide: return integer ? integer_quotient(b_, a, b, is_signed) : b_.CreateFDiv(a, b);
    case MapOp::maximum: return b_.CreateSelect(compared(Predicate::ICMP_SGT, Predicate::ICMP_UGT), a, b);
    case MapOp::minimum: return b_.CreateSelect(compared(Predicate::ICMP_SLT, Predicate::ICMP_ULT), a, b);
    case MapOp::bit_and: return b_.CreateAnd(a, b);
    case MapOp::bit_or: return b_.CreateOr(a, b);
    case MapOp::bit_xor: return b_.CreateXor(a, b);
    case MapOp::shift_left:
    case MapOp::shift_right: return shifted(b_, n.op, a, b, is_signed);
    case MapOp::negate: return b_.CreateNeg(a);
    case MapOp::square_root: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a);
    case MapOp::exp:
      if (is_below_its_maximum(kernel_, n.operands[0])) return emit_exp_of_at_most_zero(b_, a, e_.target);
      return emit_function(b_, n.op, operands, n.value, e_.target);
    case MapOp::equal: return integer ? b_.CreateICmpEQ(a, b) : b_.CreateFCmpOEQ(a, b);
    case MapOp::less: return integer ? compared(Predicate::ICMP_SLT, Predicate::ICMP_ULT) : b_.CreateFCmpOLT(a, b);
    case MapOp::less_equal: return integer ? compared(Predicate::ICMP_SLE, Predicate::ICMP_ULE) : b_.CreateFCmpOLE(a, b);
    case MapOp::greater: return integer ? compared(Predicate::ICMP_SGT, Predicate::ICMP_UGT) : b_.CreateFCmpOGT(a, b);
    case MapOp::greater_equal: return integer ? compared(Predicate::ICMP_SGE, Predicate::ICMP_UGE) : b_.CreateFCmpOGE(a, b);
    case MapOp::logical_and: return b_.CreateAnd(a, b);
    case MapOp::logical_not: return b_.CreateNot(a);
    case MapOp::select: return b_.CreateSelect(a, b, operands[2]);
    case MapOp::cast: return cast_value(a, node(n.operands[0]).type, n.type);
    case MapOp::cast_to_odd: return emit_odd_f64_from_integers(b_, a, is_signed);
    case MapOp::round_to: return memory_.round_trip(n.dtype, n.type, a);
    case MapOp::philox_word: return emit_philox_word(b_, a, b, operands[2]);
    default: return emit_function(b_, n.op, operands, n.value, e_.target);
  }
}

bool Values::draws_for_neighbours(NodeIndex index) const {
  const Node& n = node(index);
  return n.kind == NodeKind::map && n.op == MapOp::philox_word && n.per_element && !e_.across_rows() && e_.width % 4 == 0 &&
         step_along_row(n.operands[0]) == 1 && !node(n.operands[1]).per_element && !node(n.operands[2]).per_element;
}

std::optional<int64_t> Values::step_along_row(NodeIndex index) const {
  const Node& n = node(index);
  if (!n.per_element) return 0;
  if (n.kind == NodeKind::index) return n.coefficients.back();
  if (n.kind != NodeKind::map || n.op != MapOp::add) return std::nullopt;
  const std::optional<int64_t> a = step_along_row(n.operands[0]), b = step_along_row(n.operands[1]);
  return a && b ? std::optional(*a + *b) : std::nullopt;
}

// i64: the value at `offset` of a node that has a step along the row.
llvm::Value* Values::value_at(const Row& row, NodeIndex index, llvm::Value* offset) {
  const Node& n = node(index);
  if (!n.per_element) return row.value(index);
  if (n.kind == NodeKind::index)
    return b_.CreateAdd(row.index_base[static_cast<size_t>(index)], b_.CreateMul(offset, i64(n.coefficients.back())));
  return b_.CreateAdd(value_at(row, n.operands[0], offset), value_at(row, n.operands[1], offset));
}

ValueList Values::draw_for_neighbours(const Row& row, NodeIndex index, std::span<const Lanes> lanes) {
  const Node& n = node(index);
  const int width = lanes.front().width;
  llvm::Value* const words =
      emit_philox_words_from(b_, value_at(row, n.operands[0], lanes.front().offset), width * static_cast<int>(lanes.size()),
                             row.value(n.operands[1]), row.value(n.operands[2]));
  ValueList of_vectors;
  for (size_t v = 0; v < lanes.size(); ++v) {
    std::vector<int> places(static_cast<size_t>(width));
    std::iota(places.begin(), places.end(), static_cast<int>(v) * width);
    of_vectors.push_back(b_.CreateZExt(b_.CreateShuffleVector(words, places), e_.type(Type::s64, width)));
  }
  return of_vectors;
}

llvm::Value* Values::cast_value(llvm::Value* value, Type from, Type to) {
  llvm::Type* const type = e_.type(to, lanes_of(value));
  const bool from_float = is_real(from), to_float = is_real(to), is_signed = is_signed_integer(from);
  if (from_float && to_float) return b_.CreateFPCast(value, type);
  if (to_float) return emit_from_integers(b_, value, is_signed, type, e_.target);
  if (from_float && to == Type::boolean) return b_.CreateFCmpUNE(value, llvm::Constant::getNullValue(value->getType()));
  if (from_float)
    return from == Type::f32 ? emit_from_f32(b_, data_type_of(to), value, e_.target)
                             : emit_from_f64(b_, data_type_of(to), value, e_.target);
  if (to == Type::boolean) return b_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
  return is_signed ? b_.CreateSExtOrTrunc(value, type) : b_.CreateZExtOrTrunc(value, type);
}

}  // namespace lamina::cpu
