#include "backends/gpu/emit/reductions.h"

#include <cmath>

#include "backends/gpu/emit/c_types.h"
#include "backends/gpu/schedule/tuning.h"

namespace lamina::gpu {

using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;
using kernel::Reduction;

namespace {

const char* fold_name(Reduction reduction) {
  static constexpr const char* names[] = {"sum", "maximum", "minimum", "product"};
  return names[static_cast<size_t>(reduction)];
}

double identity(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum: return 0;
    case Reduction::product: return 1;
    case Reduction::maximum: return -HUGE_VAL;
    case Reduction::minimum: return HUGE_VAL;
  }
  return 0;
}

std::string combined(Reduction reduction, const char* suffix, const std::string& a, const std::string& b) {
  if (reduction == Reduction::sum) return join(a, " + ", b);
  if (reduction == Reduction::product) return join(a, " * ", b);
  return join("lm_", fold_name(reduction), "_", suffix, "(", a, ", ", b, ")");
}

// The results of a reduction's block, as variables of the text.
std::vector<std::string> block_results(NodeIndex root, const Node& n, int phase) {
  if (n.kind == NodeKind::moments) return {join("part", root, ".hi"), join("part", root, ".lo"), join("spread", root)};
  return {join("a", root, "_", phase, "_0")};
}

// Those of the nodes before `end`.
int64_t count_results_before(const kernel::Kernel& kernel, size_t end) {
  int64_t count = 0;
  for (size_t i = 0; i < end; ++i) {
    const Node& n = kernel.nodes[i];
    if (n.kind == NodeKind::reduce || n.kind == NodeKind::moments)
      count += static_cast<int64_t>(block_results(static_cast<NodeIndex>(i), n, 0).size());
  }
  return count;
}

}  // namespace

int64_t count_block_results(const kernel::Kernel& kernel) { return count_results_before(kernel, kernel.nodes.size()); }

void Reductions::emit_team_memory() {
  bool wide = false, narrow = false;
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    if (!is_reduction(static_cast<NodeIndex>(i))) continue;
    (kernel_.nodes[i].type == kernel::Type::f64 ? wide : narrow) = true;
  }
  if (e_.order.lanes > 1 && narrow) out_.line("LM_SHARED lm_f32 shared_f32[", schedule_.group_size(), "];");
  if (e_.order.lanes > 1 && wide) out_.line("LM_SHARED lm_f64 shared_f64[", schedule_.group_size(), "];");
}

bool Reductions::is_sum(NodeIndex root) const {
  return node(root).kind == NodeKind::moments || node(root).reduction == Reduction::sum;
}

int Reductions::accumulator_count(NodeIndex root, int phase) const {
  if (!is_reduction(root)) return 0;
  return node(root).kind == NodeKind::moments && plan_.loop_of(root) != phase ? 2 : 1;
}

// The number of the row's elements, as a pair.
std::string Reductions::count(kernel::Type type) const {
  const auto size = static_cast<double>(e_.row_size);
  const double high = type == kernel::Type::f64 ? size : static_cast<double>(static_cast<float>(size));
  return join(constant(high, type), ", ", constant(size - high, type));
}

void Reductions::begin_root(NodeIndex root, int phase) {
  if (node(root).kind == NodeKind::moments && plan_.loop_of(root) == phase) emit_shift(root);
  begin_totals(root, phase);
}

void Reductions::begin_totals(NodeIndex root, int phase) {
  const Node& n = node(root);
  const char* suffix = suffix_of(n.type);
  if (by_block(root)) {
    out_.line("lm_moments_", suffix, " moments", root, " = lm_moments_of_", suffix, "(lm_pair_of_", suffix, "(0, 0), 0);");
    return;
  }
  for (int j = 0; j < accumulator_count(root, phase); ++j) {
    const std::string total = join("total", root, "_", phase, "_", j);
    if (is_sum(root))
      out_.line("lm_pair_", suffix, " ", total, " = lm_pair_of_", suffix, "(0, 0);");
    else
      out_.line(c_type(n.type), " ", total, " = ", constant(identity(n.reduction), n.type), ";");
  }
}

// The first element, or 0 if it is not finite: an infinite shift would turn every difference into NaN.
void Reductions::emit_shift(NodeIndex root) {
  const Node& n = node(root);
  out_.line(c_type(n.type), " shift", root, " = 0;");
  if (e_.row_size == 0) return;
  const std::vector<bool> needed = element_nodes_of(kernel_, n.operands[0]);
  out_.open("");
  for (size_t i = 0; i < needed.size(); ++i) {
    if (!needed[i]) continue;
    out_.line("const ", c_type(kernel_.nodes[i].type), " n", i, " = ", values_.element_value(static_cast<NodeIndex>(i), true),
              ";");
  }
  out_.line("if (", Values::operand(n, 0), " - ", Values::operand(n, 0), " == 0) shift", root, " = ", Values::operand(n, 0),
            ";");
  out_.close();
}

// One per lane of the thread.
void Reductions::declare_accumulator(const std::string& name, kernel::Type type, const std::string& first) {
  const int lanes = e_.lanes_of_thread();
  if (lanes == 1) return out_.line(c_type(type), " ", name, " = ", first, ";");
  out_.line(c_type(type), " lanes_", name, "[", lanes, "];");
  out_.line("LM_UNROLL for (int lane = 0; lane < ", lanes, "; ++lane) lanes_", name, "[lane] = ", first, ";");
}

// That of the lane of the thread's chunk `k`.
std::string Reductions::accumulator(const std::string& name) const {
  return e_.lanes_of_thread() == 1 ? name : join("lanes_", name, "[k % ", e_.lanes_of_thread(), "]");
}

void Reductions::begin_block(NodeIndex root, int phase) {
  const Node& n = node(root);
  const double first = is_sum(root) ? 0 : is_reduction(root) ? identity(n.reduction) : 0;
  for (int j = 0; j < accumulator_count(root, phase); ++j)
    declare_accumulator(join("a", root, "_", phase, "_", j), n.type, constant(first, n.type));
  if (by_block(root)) out_.line(c_type(n.type), " held", root, "[", e_.elements(), "];");
}

void Reductions::accumulate(NodeIndex root, int phase, const std::string& value) {
  const Node& n = node(root);
  const char* suffix = suffix_of(n.type);
  const auto slot = [&](int j) { return accumulator(join("a", root, "_", phase, "_", j)); };
  if (n.kind == NodeKind::reduce) {
    out_.line(slot(0), " = ", combined(n.reduction, suffix, slot(0), value), ";");
  } else if (plan_.loop_of(root) == phase) {
    if (by_block(root)) out_.line("held", root, "[k * ", schedule_.vector, " + v] = ", value, ";");
    out_.line(slot(0), " = ", slot(0), " + (", value, " - shift", root, ");");
  } else {
    out_.line("const ", c_type(n.type), " d", root, " = ", value, " - mean", root, ".hi;");
    out_.line(slot(0), " = ", slot(0), " + d", root, ";");
    out_.line(slot(1), " = lm_fma_", suffix, "(d", root, ", d", root, ", ", slot(1), ");");
  }
}

// The sum (or product, ...) of the lanes' values, in every thread.
void Reductions::fold_team(const std::string& slot, kernel::Type type, Reduction reduction) {
  if (e_.order.lanes == 1) return;
  const char* suffix = suffix_of(type);
  const int lanes = e_.lanes_of_thread();
  const std::string first = schedule_.rows_adjacent ? "team" : join("team * ", schedule_.team);
  const std::string fold = join("lm_fold_", fold_name(reduction), "_", suffix),
                    place = join("shared_", suffix, ", t, ", schedule_.team, ", ", first, ", ",
                                 schedule_.rows_adjacent ? schedule_.rows_per_group : 1);
  if (lanes == 1)
    out_.line(slot, " = ", fold, "(", slot, ", ", place, ");");
  else
    out_.line("const ", c_type(type), " ", slot, " = ", fold, "_of_lanes(lanes_", slot, ", ", lanes, ", ", place, ");");
}

void Reductions::fold_block(NodeIndex root, int phase) {
  const Node& n = node(root);
  for (int j = 0; j < accumulator_count(root, phase); ++j) {
    fold_team(join("a", root, "_", phase, "_", j), n.type, is_sum(root) ? Reduction::sum : n.reduction);
  }
  if (by_block(root)) fold_deviations(root, phase);
}

// The second walk over a block, which is in registers: the error of the mean, and the squared distances to the mean.
void Reductions::fold_deviations(NodeIndex root, int phase) {
  const Node& n = node(root);
  const char* suffix = suffix_of(n.type);
  const char* type = c_type(n.type);
  const std::string size = join("size", root), part = join("part", root), error = join("error", root),
                    spread = join("spread", root);
  const std::string residual = join("residual", root), squares = join("squares", root);
  const bool all_full = e_.row_size % e_.order.block() == 0;  // divisions by constants are faster
  const std::string elements = all_full ? join(e_.order.block())
                                        : join("(base + ", e_.order.block(), " < ", e_.row_size, " ? ", e_.order.block(), " : ",
                                               e_.row_size, " - base)");
  out_.line("const ", type, " ", size, " = (", type, ")", elements, ";");
  out_.line("lm_pair_", suffix, " ", part, " = lm_pair_divide_", suffix, "(lm_pair_of_", suffix, "(a", root, "_", phase,
            "_0, 0), ", size, ", 0);");
  out_.line(part, " = lm_pair_add_", suffix, "(", part, ", shift", root, ");");
  if (e_.lanes_of_thread() == 1)
    out_.line(type, " ", residual, " = 0, ", squares, " = 0;");
  else
    for (const std::string& name : {residual, squares}) declare_accumulator(name, n.type, "0");
  out_.open(e_.for_chunks());
  out_.open("if (live && base + (lm_ix)(k * ", schedule_.team, " + t) * ", schedule_.vector, " < ", e_.row_size, ")");
  out_.open("LM_UNROLL for (int v = 0; v < ", schedule_.vector, "; ++v)");
  out_.line("const ", type, " d = held", root, "[k * ", schedule_.vector, " + v] - ", part, ".hi;");
  out_.line(accumulator(residual), " = ", accumulator(residual), " + d;");
  out_.line(accumulator(squares), " = lm_fma_", suffix, "(d, d, ", accumulator(squares), ");");
  out_.close();
  out_.close();
  out_.close();
  fold_team(residual, n.type, Reduction::sum);
  fold_team(squares, n.type, Reduction::sum);
  out_.line("const lm_pair_", suffix, " ", error, " = lm_pair_divide_", suffix, "(lm_pair_of_", suffix, "(", residual, ", 0), ",
            size, ", 0);");
  out_.line(type, " ", spread, " = lm_fma_", suffix, "(-", error, ".hi, ", residual, ", ", squares, ");");
  out_.line(spread, " = ", spread, " < 0 ? 0 : ", spread, ";");
  // An infinite mean has a NaN residual and must stay infinite.
  out_.line(part, " = ", error, ".hi == ", error, ".hi ? lm_pair_add_", suffix, "(", error, ", ", part, ".hi) : lm_pair_of_",
            suffix, "(", part, ".hi, 0);");
}

void Reductions::for_results(int phase, const VisitResult& visit) const {
  for (const NodeIndex root : plan_.roots(phase)) {
    if (!is_reduction(root)) continue;
    int64_t number = count_results_before(kernel_, static_cast<size_t>(root));
    for (const std::string& result : block_results(root, node(root), phase)) visit(node(root).type, number++, result);
  }
}

void Reductions::join_results(int phase, const PlaceOfResult& place) {
  // Unrolled, the counts of elements are constants, and so are their quotients.
  const char* const unroll = blocks_of_row(kernel_, e_.order) <= tuning::kMostUnrolledChunks ? "LM_UNROLL " : "";
  out_.open(unroll, "for (lm_ix base = 0; base < ", e_.row_size, "; base += ", e_.order.block(), ")");
  for (const NodeIndex root : plan_.roots(phase))
    if (is_reduction(root) && by_block(root)) out_.line("lm_pair_", suffix_of(node(root).type), " part", root, ";");
  for_results(phase, [&](kernel::Type type, int64_t number, const std::string& result) {
    const bool declared = result.find('.') != std::string::npos;
    out_.line(declared ? "" : join("const ", c_type(type), " "), result, " = ", place(type, number), ";");
  });
  for (const NodeIndex root : plan_.roots(phase)) join_block(root, phase);
  out_.close();
}

void Reductions::join_block(NodeIndex root, int phase) {
  const Node& n = node(root);
  const char* suffix = suffix_of(n.type);
  const char* type = c_type(n.type);
  if (by_block(root)) {
    const std::string after = join("after", root), moments = join("moments", root);
    out_.line("const lm_ix ended", root, " = base + ", e_.order.block(), " < ", e_.row_size, " ? base + ", e_.order.block(),
              " : ", e_.row_size, ";");
    out_.line("const ", type, " ", after, " = (", type, ")ended", root, ";");
    out_.line(moments, " = lm_moments_join_", suffix, "(", moments, ", (", type, ")base, part", root, ", spread", root, ", (",
              type, ")(ended", root, " - base), lm_pair_of_", suffix, "(", after, ", (", type, ")(ended", root, " - (lm_ix)",
              after, ")));");
    return;
  }
  for (int j = 0; j < accumulator_count(root, phase); ++j) {
    const std::string slot = join("a", root, "_", phase, "_", j), total = join("total", root, "_", phase, "_", j);
    if (is_sum(root))
      out_.line(total, " = lm_pair_add_", suffix, "(", total, ", ", slot, ");");
    else
      out_.line(total, " = ", combined(n.reduction, suffix, total, slot), ";");
  }
}

void Reductions::finish_root(NodeIndex root, int phase) {
  const Node& n = node(root);
  const char* suffix = suffix_of(n.type);
  const auto total = [&](int j) { return join("total", root, "_", phase, "_", j); };
  if (n.kind == NodeKind::reduce) {
    out_.line("const ", c_type(n.type), " ", Values::name(root), " = ", total(0), is_sum(root) ? ".hi" : "", ";");
    e_.known[static_cast<size_t>(root)] = true;
    return;
  }
  if (n.kind != NodeKind::moments) return;
  const auto average = [&](const std::string& sum) {
    return join("lm_pair_divide_", suffix, "(", sum, ", ", count(n.type), ")");
  };
  if (by_block(root)) {
    out_.line("const lm_pair_", suffix, " mean", root, " = moments", root, ".mean;");
    finish_moments(root, join(average(join("moments", root, ".deviations")), ".hi"));
    return;
  }
  if (plan_.loop_of(root) == phase) {
    out_.line("lm_pair_", suffix, " mean", root, " = ", average(total(0)), ";");
    out_.line("mean", root, " = lm_pair_add_", suffix, "(mean", root, ", shift", root, ");");
    return;
  }
  out_.line("const lm_pair_", suffix, " error", root, " = ", average(total(0)), ";");
  out_.line("const ", c_type(n.type), " spread", root, " = lm_fma_", suffix, "(-error", root, ".hi, error", root, ".hi, ",
            average(total(1)), ".hi);");
  out_.line("mean", root, " = error", root, ".hi == error", root, ".hi ? lm_pair_add_", suffix, "(error", root, ", mean", root,
            ".hi) : lm_pair_of_", suffix, "(mean", root, ".hi, 0);");
  finish_moments(root, join("spread", root, " < 0 ? 0 : spread", root));
}

// Sets the nodes that read the moments. The mean is already computed.
void Reductions::finish_moments(NodeIndex root, const std::string& variance) {
  const char* type = c_type(node(root).type);
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    const Node& reader = kernel_.nodes[i];
    if (reader.operands[0] != root) continue;
    if (reader.kind == NodeKind::mean) out_.line("const ", type, " n", i, " = mean", root, ".hi;");
    if (reader.kind == NodeKind::variance) out_.line("const ", type, " n", i, " = ", variance, ";");
    e_.known[i] = e_.known[i] || reader.kind == NodeKind::mean || reader.kind == NodeKind::variance;
  }
}

}  // namespace lamina::gpu
