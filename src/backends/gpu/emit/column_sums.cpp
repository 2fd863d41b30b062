#include "backends/gpu/emit/column_sums.h"

#include <algorithm>

#include "backends/gpu/emit/c_types.h"
#include "backends/gpu/schedule/tuning.h"

namespace lamina::gpu {

using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;
using tuning::kColumnLanes;

ColumnSums::ColumnSums(Emission& emission) : Part(emission) {
  for (size_t i = 0; i < kernel_.nodes.size(); ++i)
    if (kernel_.nodes[i].kind == NodeKind::column_sum) sums_.push_back(static_cast<NodeIndex>(i));
  count_ = static_cast<int>(sums_.size());
}

bool ColumnSums::is_wide() const {
  return std::any_of(sums_.begin(), sums_.end(), [&](NodeIndex i) { return node(i).type == kernel::Type::f64; });
}

void ColumnSums::begin() {
  out_.line("const lm_s64 blocks = (rows + ", e_.order.column_rows - 1, ") / ", e_.order.column_rows, ";");
  for (int slot = 0; slot < count_; ++slot) {
    const NodeIndex i = sums_[static_cast<size_t>(slot)];
    const char* type = c_type(node(i).type);
    out_.line("LM_GLOBAL ", type, "* const q", i, " = (LM_GLOBAL ", type,
              "*)(partials + partials_offset) + ((block < blocks ? block : 0) * ", count_, " + ", slot, ") * (lm_s64)",
              e_.row_size, ";");
    if (!schedule_.column_registers) continue;
    out_.line(type, " c", i, "[", e_.elements(), "];");
    out_.line("LM_UNROLL for (int e = 0; e < ", e_.elements(), "; ++e) c", i, "[e] = 0;");
  }
}

void ColumnSums::add(NodeIndex root, const std::string& value) {
  if (schedule_.column_registers)
    out_.line("c", root, "[k * ", schedule_.vector, " + v] += ", value, ";");
  else
    out_.line("q", root, "[at + v] = (r == 0 ? 0 : q", root, "[at + v]) + ", value, ";");
}

void ColumnSums::store() {
  out_.open("if (block < blocks)");
  out_.open(e_.for_chunks());
  out_.line("const lm_ix at = ", schedule_.split ? "begin + " : "", "(lm_ix)(k * ", schedule_.team, " + t) * ",
            schedule_.vector, ";");
  out_.open("if (at < ", e_.row_size, ")");
  for (const NodeIndex i : sums_) {
    if (schedule_.vector > 1)
      out_.line("LM_STORE(", schedule_.vector, ", q", i, " + at, c", i, " + k * ", schedule_.vector, ");");
    else
      out_.line("q", i, "[at] = c", i, "[k];");
  }
  out_.close();
  out_.close();
  out_.close();
}

// Groups of 32 columns. The threads of a column have one place each of the order of summation, or take the places in rounds.
void ColumnSums::emit_kernel() {
  const int threads = schedule_.column_threads;
  const auto groups = (e_.row_size + kColumnLanes - 1) / kColumnLanes;
  const char* suffix = is_wide() ? "f64" : "f32";
  out_.line("LM_SHARED lm_", suffix, " shared_hi[", kColumnLanes * threads, "], shared_lo[", kColumnLanes * threads, "];");
  out_.line("const int thread = LM_THREAD, lane = thread % ", kColumnLanes, ", t = thread / ", kColumnLanes, ";");
  out_.line("const int slot = (int)(LM_GROUP / ", groups, ");");
  out_.line("const lm_ix column = (lm_ix)(LM_GROUP % ", groups, ") * ", kColumnLanes, " + lane;");
  out_.line("LM_GLOBAL const lm_", suffix, "* const q = (LM_GLOBAL const lm_", suffix,
            "*)(partials + partials_offset) + slot * (lm_s64)", e_.row_size, " + column;");
  join_places(suffix);
  e_.emit_positions("column", e_.outer, kernel_.extents.size(), "lm_ix", "");
  for (int slot = 0; slot < count_; ++slot) {
    const Node& n = node(sums_[static_cast<size_t>(slot)]);
    const std::string type = join("LM_GLOBAL ", storage_type(arg(n.arg).dtype), "*");
    out_.line("if (slot == ", slot, ") ((", type, ")(b", n.arg, " + o", n.arg, "))[",
              e_.place_sum(arg(n.arg).strides, e_.outer, kernel_.extents.size(), "x"),
              "] = ", to_storage(arg(n.arg).dtype, n.type, "total.hi"), ";");
  }
}

// Every thread adds the partial sums of its place. Then the places are joined in their order: by the first thread of a column
// or, if there are fewer threads than places and so several rounds, by all threads in each round.
void ColumnSums::join_places(const std::string& suffix) {
  const int threads = schedule_.column_threads;
  const bool in_rounds = threads < kColumnPlaces;
  const std::string part = in_rounds ? "part" : "total", zero = join(" = lm_pair_of_", suffix, "(0, 0);");
  const std::string leaves = join("if (t != 0 || column >= ", e_.row_size, ") return;");
  const std::string place =
      join("lm_pair_of_", suffix, "(shared_hi[u * ", kColumnLanes, " + lane], shared_lo[u * ", kColumnLanes, " + lane])");
  out_.line("lm_pair_", suffix, " total", zero);
  if (in_rounds) {
    out_.open("for (int place = 0; place < ", kColumnPlaces, "; place += ", threads, ")");
    out_.line("lm_pair_", suffix, " part", zero);
  }
  out_.open("if (column < ", e_.row_size, ")");
  out_.line("for (lm_s64 b = ", in_rounds ? "place + t" : "t", "; b < blocks; b += ", kColumnPlaces, ") ", part,
            " = lm_pair_add_", suffix, "(", part, ", q[b * ", count_ * e_.row_size, "]);");
  out_.close();
  if (in_rounds) out_.line("LM_BARRIER;");
  out_.line("shared_hi[thread] = ", part, ".hi;");
  out_.line("shared_lo[thread] = ", part, ".lo;");
  out_.line("LM_BARRIER;");
  if (!in_rounds) {
    out_.line(leaves);
    out_.line("for (int u = 1; u < ", threads, "; ++u) total = lm_pair_join_", suffix, "(total, ", place, ");");
    return;
  }
  out_.open("for (int u = 0; u < ", threads, "; ++u)");
  out_.line("part = ", place, ";");
  out_.line("total = place + u == 0 ? part : lm_pair_join_", suffix, "(total, part);");
  out_.close();
  out_.close();
  out_.line(leaves);
}

}  // namespace lamina::gpu
