// Accumulators and the roots that fill them.
//
// A thread adds its elements of a block in order; the team's sums are folded in a fixed tree; blocks are added up as pairs of
// floats, so no f64 is needed. Mean and variance take two walks: the first sums x - s, s being the row's first element; the
// second takes d = x - high around that mean, sums d^2, and sums d as well: the average of d is the mean's error, which corrects
// the mean and the variance. E[x^2] - E[x]^2 is never formed.
#include <cmath>

#include "backends/gpu/source_emitter.h"

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

}  // namespace

bool SourceEmitter::is_sum(NodeIndex root) const { return node(root).kind == NodeKind::moments || node(root).reduction == Reduction::sum; }

int SourceEmitter::accumulator_count(NodeIndex root, int phase) const {
  if (!is_reduction(root)) return 0;
  return node(root).kind == NodeKind::moments && loop_of(node(root)) != phase ? 2 : 1;
}

void SourceEmitter::begin_root(NodeIndex root, int phase) {
  const Node& n = node(root);
  const char* suffix = suffix_of(n.type);
  if (n.kind == NodeKind::moments && loop_of(n) == phase) emit_shift(root);
  for (int j = 0; j < accumulator_count(root, phase); ++j) {
    const std::string total = join("total", root, "_", phase, "_", j);
    if (is_sum(root)) out_.line("lm_pair_", suffix, " ", total, " = lm_pair_of_", suffix, "(0, 0);");
    else out_.line(c_type(n.type), " ", total, " = ", constant(identity(n.reduction), n.type), ";");
  }
}

// The first element, or 0 where that is not finite: an infinity would turn every difference into NaN.
void SourceEmitter::emit_shift(NodeIndex root) {
  const Node& n = node(root);
  out_.line(c_type(n.type), " shift", root, " = 0;");
  if (row_size_ == 0) return;
  std::vector<bool> needed(kernel_.nodes.size(), false);
  needed[static_cast<size_t>(n.operands[0])] = true;
  for (auto i = static_cast<size_t>(n.operands[0]) + 1; i-- > 0;) {
    const Node& used = kernel_.nodes[i];
    for (int k = 0; needed[i] && used.per_element && k < kernel::operand_count(used); ++k) needed[static_cast<size_t>(used.operands[static_cast<size_t>(k)])] = true;
  }
  out_.open("");
  for (size_t i = 0; i <= static_cast<size_t>(n.operands[0]); ++i) {
    if (!needed[i] || !kernel_.nodes[i].per_element) continue;
    out_.line("const ", c_type(kernel_.nodes[i].type), " n", i, " = ", element_value(static_cast<NodeIndex>(i), true), ";");
  }
  out_.line("if (", operand(n, 0), " - ", operand(n, 0), " == 0) shift", root, " = ", operand(n, 0), ";");
  out_.close();
}

void SourceEmitter::begin_block(NodeIndex root, int phase) {
  const Node& n = node(root);
  const double first = is_sum(root) ? 0 : is_reduction(root) ? identity(n.reduction) : 0;
  for (int j = 0; j < accumulator_count(root, phase); ++j) {
    out_.line(c_type(n.type), " a", root, "_", phase, "_", j, " = ", constant(first, n.type), ";");
  }
}

void SourceEmitter::accumulate(NodeIndex root, int phase, const std::string& value) {
  const Node& n = node(root);
  const char* suffix = suffix_of(n.type);
  const auto slot = [&](int j) { return join("a", root, "_", phase, "_", j); };
  if (n.kind == NodeKind::reduce) {
    out_.line(slot(0), " = ", combined(n.reduction, suffix, slot(0), value), ";");
  } else if (loop_of(n) == phase) {
    out_.line(slot(0), " = ", slot(0), " + (", value, " - shift", root, ");");
  } else {
    out_.line("const ", c_type(n.type), " d", root, " = ", value, " - mean", root, ".hi;");
    out_.line(slot(0), " = ", slot(0), " + d", root, ";");
    out_.line(slot(1), " = lm_fma_", suffix, "(d", root, ", d", root, ", ", slot(1), ");");
  }
}

void SourceEmitter::fold_block(NodeIndex root, int phase) {
  const Node& n = node(root);
  const char* suffix = suffix_of(n.type);
  const Reduction reduction = is_sum(root) ? Reduction::sum : n.reduction;
  for (int j = 0; j < accumulator_count(root, phase); ++j) {
    const std::string slot = join("a", root, "_", phase, "_", j), total = join("total", root, "_", phase, "_", j);
    if (schedule_.team > 1) {
      const std::string first = schedule_.rows_adjacent ? "team" : join("team * ", schedule_.team);
      out_.line(slot, " = lm_fold_", fold_name(reduction), "_", suffix, "(", slot, ", shared_", suffix, ", t, ", schedule_.team, ", ", first, ", ",
                schedule_.rows_adjacent ? schedule_.rows_per_group : 1, ");");
    }
    if (is_sum(root)) out_.line(total, " = lm_pair_add_", suffix, "(", total, ", ", slot, ");");
    else out_.line(total, " = ", combined(reduction, suffix, total, slot), ";");
  }
}

void SourceEmitter::finish_root(NodeIndex root, int phase) {
  const Node& n = node(root);
  const char* suffix = suffix_of(n.type);
  const auto total = [&](int j) { return join("total", root, "_", phase, "_", j); };
  if (n.kind == NodeKind::reduce) {
    out_.line("const ", c_type(n.type), " ", name(root), " = ", total(0), is_sum(root) ? ".hi" : "", ";");
    known_[static_cast<size_t>(root)] = true;
    return;
  }
  if (n.kind != NodeKind::moments) return;
  const auto size = static_cast<double>(row_size_);
  const double high = n.type == kernel::Type::f64 ? size : static_cast<double>(static_cast<float>(size));
  const std::string count = join(constant(high, n.type), ", ", constant(size - high, n.type));
  const auto average = [&](int j) { return join("lm_pair_divide_", suffix, "(", total(j), ", ", count, ")"); };
  if (loop_of(n) == phase) {
    out_.line("lm_pair_", suffix, " mean", root, " = ", average(0), ";");
    out_.line("mean", root, " = lm_pair_add_", suffix, "(mean", root, ", shift", root, ");");
    return;
  }
  out_.line("const lm_pair_", suffix, " error", root, " = ", average(0), ";");
  out_.line("const ", c_type(n.type), " spread", root, " = lm_fma_", suffix, "(-error", root, ".hi, error", root, ".hi, ", average(1), ".hi);");
  // The residual of an infinite mean is NaN; such a mean stays what it is.
  out_.line("mean", root, " = error", root, ".hi == error", root, ".hi ? lm_pair_add_", suffix, "(error", root, ", mean", root, ".hi) : lm_pair_of_", suffix,
            "(mean", root, ".hi, 0);");
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    const Node& reader = kernel_.nodes[i];
    if (reader.operands[0] != root) continue;
    if (reader.kind == NodeKind::mean) out_.line("const ", c_type(n.type), " n", i, " = mean", root, ".hi;");
    if (reader.kind == NodeKind::variance) out_.line("const ", c_type(n.type), " n", i, " = spread", root, " < 0 ? 0 : spread", root, ";");
    known_[i] = known_[i] || reader.kind == NodeKind::mean || reader.kind == NodeKind::variance;
  }
}

}  // namespace lamina::gpu
