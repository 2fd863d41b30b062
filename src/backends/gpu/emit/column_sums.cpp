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
  const int64_t rows = e_.order.column_rows;
  if (kernel_.entry_rank == 0) {
    out_.line("const lm_s64 blocks = (rows + ", rows - 1, ") / ", rows, ";");
  } else {
    std::string of_entry, entries;
    for (int d = 0; d < kernel_.outer_rank; ++d) (d < kernel_.entry_rank ? entries : of_entry) += join(" * e", d);
    out_.line("const lm_s64 of_entry = 1", of_entry, ", blocks_of_entry = (of_entry + ", rows - 1, ") / ", rows, ";");
    out_.line("const lm_s64 blocks = blocks_of_entry", entries, ";");
    out_.line("const lm_s64 entry = block / blocks_of_entry * of_entry, of_block = block % blocks_of_entry * ", rows, ";");
  }
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
  out_.line("const lm_ix at = ",
            schedule_.split      ? "begin + "
            : schedule_.together ? "first + "
                                 : "",
            "(lm_ix)(k * ", schedule_.team, " + t) * ", schedule_.vector, ";");
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

// What KernelRunner::words_of_columns gives.
std::string ColumnSums::parameters() const {
  if (kernel_.entry_rank == 0) return "const lm_s64 blocks";
  std::string text = "const lm_s64 blocks_of_entry, const lm_s64 entries";
  for (int d = 0; d < kernel_.entry_rank; ++d) text += join(", const lm_s64 e", d);
  for (size_t a = 0; a < kernel_.args.size(); ++a) {
    for (int d = 0; d < kernel_.entry_rank && kernel_.args[a].column; ++d)
      if (kernel_.args[a].strides[static_cast<size_t>(d)] != 0) text += join(", const lm_s64 s", a, "_", d);
  }
  return text;
}

// Groups of 32 columns. The threads of a column have one place each of the order of summation, or take the places in rounds.
void ColumnSums::emit_kernel() {
  const int threads = schedule_.column_threads;
  const auto groups = (e_.row_size + kColumnLanes - 1) / kColumnLanes;
  const char* suffix = is_wide() ? "f64" : "f32";
  out_.line("LM_SHARED lm_", suffix, " shared_hi[", kColumnLanes * threads, "], shared_lo[", kColumnLanes * threads, "];");
  out_.line("const int thread = LM_THREAD, lane = thread % ", kColumnLanes, ", t = thread / ", kColumnLanes, ";");
  if (kernel_.entry_rank == 0)
    out_.line("const int slot = (int)(LM_GROUP / ", groups, ");");
  else
    begin_entry(join(groups));
  out_.line("const lm_ix column = (lm_ix)(LM_GROUP % ", groups, ") * ", kColumnLanes, " + lane;");
  const std::string first = kernel_.entry_rank == 0 ? "slot" : join("(first * ", count_, " + slot)");
  out_.line("LM_GLOBAL const lm_", suffix, "* const q = (LM_GLOBAL const lm_", suffix, "*)(partials + partials_offset) + ",
            first, " * (lm_s64)", e_.row_size, " + column;");
  join_places(suffix);
  if (kernel_.entry_rank > 0) e_.emit_positions("entry", 0, static_cast<size_t>(kernel_.entry_rank), "lm_s64", "");
  e_.emit_positions("column", e_.outer, kernel_.extents.size(), "lm_ix", "");
  for (int slot = 0; slot < count_; ++slot) {
    const Node& n = node(sums_[static_cast<size_t>(slot)]);
    const std::string type = join("LM_GLOBAL ", storage_type(arg(n.arg).dtype), "*");
    const bool is_of_first = kernel_.entry_rank > 0 && !kernel_.sums_entries(arg(n.arg));
    out_.line("if (slot == ", slot, is_of_first ? " && entry == 0" : "", ") ((", type, ")(b", n.arg, " + o", n.arg, "))[",
              e_.place_sum(arg(n.arg).strides, e_.outer, kernel_.extents.size(), "x"), place_of_entry(n.arg),
              "] = ", to_storage(arg(n.arg).dtype, n.type, "total.hi"), ";");
  }
}

// Groups of one entry after the other. A sum over all rows is that of the first entry, over the blocks of all.
void ColumnSums::begin_entry(const std::string& groups) {
  std::string by_entry;
  for (int slot = 0; slot < count_; ++slot)
    if (kernel_.sums_entries(arg(node(sums_[static_cast<size_t>(slot)]).arg))) by_entry += join(" || slot == ", slot);
  out_.line("const int slot = (int)(LM_GROUP / ", groups, " % ", count_, "), by_entry = 0", by_entry, ";");
  out_.line("const lm_s64 entry = LM_GROUP / ", groups, " / ", count_, ", first = by_entry ? entry * blocks_of_entry : 0;");
  out_.line("const lm_s64 blocks = by_entry ? blocks_of_entry : entry == 0 ? entries * blocks_of_entry : 0;");
}

std::string ColumnSums::place_of_entry(int a) const {
  std::string place;
  for (int d = 0; d < kernel_.entry_rank; ++d)
    if (arg(a).strides[static_cast<size_t>(d)] != 0) place += join(" + x", d, " * s", a, "_", d);
  return place;
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
