// Rows, phases and loops. A team processes its rows one after the other. Per row it traverses the inner dims once per phase,
// block by block.
#include "backends/gpu/emit_c.h"

#include <algorithm>

#include "backends/gpu/program_text.h"
#include "backends/gpu/source_emitter.h"
#include "backends/gpu/tuning.h"

namespace lamina::gpu {

using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;
using kernel::Type;

namespace {

using tuning::kColumnLanes;

// The number of groups that should be resident on a multiprocessor, so that some load while others reduce. With 1024 threads,
// each has 64 registers. If a thread's values need more, half of the threads are resident. Kernels in double only need one
// group.
int resident_groups(const kernel::Kernel& kernel, const Schedule& schedule, int group_size) {
  const bool light = static_cast<int64_t>(kernel.nodes.size()) <= tuning::kFewNodes &&
                     std::none_of(kernel.nodes.begin(), kernel.nodes.end(),
                                  [](const Node& n) { return cost_of(n) == kernel::CostClass::function; });
  const bool many_addresses = schedule.vector == 1 && schedule.steps > tuning::kFewSteps;
  const bool holds_much = !light || many_addresses || (schedule.column_registers && schedule.team < tuning::kWarp);
  if (needs_f64(kernel)) return 1;
  return std::max(1, (holds_much ? tuning::kThreadsOfManyRegisters : tuning::kThreadsOfFewRegisters) / group_size);
}

}  // namespace

SourceEmitter::SourceEmitter(const kernel::Kernel& kernel, const Schedule& schedule, const DeviceLimits& limits,
                             std::string symbol)
    : kernel_(kernel),
      schedule_(schedule),
      plan_(kernel, loop_policy(kernel, schedule)),
      limits_(limits),
      symbol_(std::move(symbol)),
      outer_(static_cast<size_t>(kernel.outer_rank)),
      row_size_(kernel.row_size()),
      one_block_(is_persistent(kernel, schedule)),
      known_(kernel.nodes.size(), false),
      column_slot_(kernel.nodes.size(), -1) {
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    if (kernel.nodes[i].kind == NodeKind::column_sum) column_slot_[i] = columns_++;
  }
}

// ---- the kernel

void SourceEmitter::emit() {
  if (schedule_.split) {
    emit_split();
    return;
  }
  symbols_ = {symbol_};
  emit_signature(symbol_, schedule_.group_size(), false);
  if (schedule_.flat) {
    emit_flat();
    out_.close();
    return;
  }
  emit_threads();
  const std::string place = join("(lm_s64)LM_GROUP * ", schedule_.rows_per_group, " + team");
  if (columns_ == 0) {
    out_.line("const lm_s64 wanted = ", place, ";");
    emit_row();
    out_.close();
    return;
  }
  out_.line("const lm_s64 block = ", place, ";");
  emit_columns_begin();
  out_.open("for (int r = 0; r < ", schedule_.column_rows, "; ++r)");
  out_.line("const lm_s64 wanted = block * ", schedule_.column_rows, " + r;");
  emit_row();
  out_.close();
  if (schedule_.column_registers) emit_stores();
  out_.close();
  emit_columns_kernel();
}

// Sets up the partial sums of the current block of rows, in memory or in registers.
void SourceEmitter::emit_columns_begin() {
  out_.line("const lm_s64 blocks = (rows + ", schedule_.column_rows - 1, ") / ", schedule_.column_rows, ";");
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    if (column_slot_[i] < 0) continue;
    const char* type = c_type(kernel_.nodes[i].type);
    out_.line("LM_GLOBAL ", type, "* const q", i, " = (LM_GLOBAL ", type,
              "*)(partials + partials_offset) + ((block < blocks ? block : 0) * ", columns_, " + ", column_slot_[i],
              ") * (lm_s64)", row_size_, ";");
    if (!schedule_.column_registers) continue;
    out_.line(type, " c", i, "[", schedule_.vector * schedule_.steps, "];");
    out_.line("LM_UNROLL for (int e = 0; e < ", schedule_.vector * schedule_.steps, "; ++e) c", i, "[e] = 0;");
  }
}

void SourceEmitter::emit_signature(const std::string& symbol, int group_size, bool columns_only) {
  std::string parameters;
  for (size_t a = 0; a < kernel_.args.size(); ++a) {
    if (!columns_only || kernel_.args[a].column) parameters += join("LM_BUFFER b", a, ", const lm_s64 o", a, ", ");
  }
  if (columns_ > 0 || schedule_.split) parameters += "LM_BUFFER partials, const lm_s64 partials_offset, ";
  if (columns_only) {
    out_.open("LM_KERNEL(", group_size, ", ", resident_groups(kernel_, schedule_, group_size), ") ", symbol, "(", parameters,
              "const lm_s64 blocks)");
    return;
  }
  parameters += "const lm_s64 rows, const lm_s64 inner";
  for (size_t d = 0; d < outer_; ++d) parameters += join(", const lm_s64 e", d);
  for (size_t a = 0; a < kernel_.args.size(); ++a) {
    for (size_t d = 0; d < outer_; ++d) {
      if (kernel_.args[a].strides[d] != 0) parameters += join(", const lm_s64 s", a, "_", d);
    }
  }
  if (schedule_.split) parameters += ", const lm_s64 states, const lm_s64 span";
  out_.open("LM_KERNEL(", group_size, ", ", resident_groups(kernel_, schedule_, group_size), ") ", symbol, "(", parameters,
            ")");
}

void SourceEmitter::emit_threads() {
  const int team = schedule_.team, teams = schedule_.rows_per_group;
  bool wide = false, narrow = false;
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    if (!is_reduction(static_cast<NodeIndex>(i))) continue;
    (kernel_.nodes[i].type == Type::f64 ? wide : narrow) = true;
  }
  if (team > 1 && narrow) out_.line("LM_SHARED lm_f32 shared_f32[", schedule_.group_size(), "];");
  if (team > 1 && wide) out_.line("LM_SHARED lm_f64 shared_f64[", schedule_.group_size(), "];");
  out_.line("const int thread = LM_THREAD;");
  if (schedule_.rows_adjacent)
    out_.line("const int t = thread / ", teams, ", team = thread % ", teams, ";");
  else
    out_.line("const int t = thread % ", team, ", team = thread / ", team, ";");
}

// Positions of `row` along the outer dims, in `type`; `cast` converts an extent to it.
void SourceEmitter::emit_outer_positions(const std::string& type, const std::string& cast) {
  std::string rest = "row";
  for (size_t d = outer_; d-- > 1;) {
    out_.line("const ", type, " x", d, " = ", rest, " % ", cast, "e", d, ", y", d, " = ", rest, " / ", cast, "e", d, ";");
    rest = join("y", d);
  }
  out_.line("const ", type, " x0 = ", rest, ";");
}

// Positions along the outer dims, and pointers to the args there.
void SourceEmitter::emit_row_place() {
  if (outer_ > 0) emit_outer_positions("lm_s64", "");
  emit_row_pointers();
}

void SourceEmitter::emit_row_pointers() {
  for (size_t a = 0; a < kernel_.args.size(); ++a) {
    const kernel::Arg& arg = kernel_.args[a];
    if (arg.column) continue;
    std::string place;
    for (size_t d = 0; d < outer_; ++d) {
      if (arg.strides[d] != 0) place += join(" + x", d, " * s", a, "_", d);
    }
    const std::string type = join("LM_GLOBAL ", arg.output ? "" : "const ", storage_type(arg.dtype), "*");
    if (shares_bytes(static_cast<int>(a))) {
      out_.line("const lm_s64 f", a, " = 0", place, ";");
      place.clear();
    }
    out_.line(type, " const p", a, " = (", type, ")(b", a, " + o", a, ")", place, ";");
  }
}

void SourceEmitter::begin_row() {
  known_.assign(kernel_.nodes.size(), false);
  const bool always = schedule_.rows_per_group == 1 && columns_ == 0;  // there are as many groups as rows
  if (always)
    out_.line("const int live = 1;");
  else
    out_.line("const int live = wanted < rows;");
  out_.line("const lm_s64 row = ", always ? "wanted" : "live ? wanted : rows - 1", ";");
  emit_row_place();
}

void SourceEmitter::emit_row() {
  begin_row();
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    if (plan_.live_since(static_cast<NodeIndex>(i)) >= 0)
      out_.line(c_type(kernel_.nodes[i].type), " kept", i, "[", schedule_.vector * schedule_.steps, "];");
  }
  for (int phase = 0; phase < plan_.count(); ++phase) emit_phase(phase);
}

// One chunk per thread, with the rows one after the other.
void SourceEmitter::emit_flat() {
  const int vector = schedule_.vector;
  out_.line("const lm_ix chunks = (lm_ix)(inner / ", vector, ");");
  out_.line("const lm_ix chunk = (lm_ix)LM_GROUP * ", schedule_.group_size(), " + LM_THREAD;");
  out_.line("if (chunk >= (lm_ix)rows * chunks) return;");
  if (outer_ == 0) {
    out_.line("const lm_ix at = chunk * ", vector, ";");
  } else {
    out_.line("const lm_ix row = chunk / chunks;");
    out_.line("const lm_ix at = (chunk - row * chunks) * ", vector, ";");
    emit_outer_positions("lm_ix", "(lm_ix)");
  }
  emit_row_pointers();
  out_.line("const int k = 0;");
  for (int phase = 0; phase < plan_.count(); ++phase) {
    emit_row_values(phase);
    if (!plan_.roots(phase).empty()) emit_chunk(plan_.nodes(phase), phase);
  }
}

void SourceEmitter::emit_phase(int phase) {
  out_.line("// phase ", phase);
  emit_row_values(phase);
  const NodeList roots = plan_.roots(phase);
  if (roots.empty()) return;
  for (const NodeIndex root : roots) begin_root(root, phase);
  if (one_block_) {
    emit_block(phase);
  } else {
    out_.open("for (lm_ix base = 0; base < ", row_size_, "; base += ", schedule_.block(), ")");
    emit_block(phase);
  }
  for (const NodeIndex root : roots) join_block(root, phase);
  if (!one_block_) out_.close();
  for (const NodeIndex root : roots) finish_root(root, phase);
}

// One block of the row, starting at `base` if there are several, and the results of its reductions.
void SourceEmitter::emit_block(int phase) {
  const NodeList roots = plan_.roots(phase);
  for (const NodeIndex root : roots) begin_block(root, phase);
  if (row_size_ > 0) {
    const bool exact = one_block_ && schedule_.block() == row_size_;
    out_.open("LM_UNROLL for (int k = 0; k < ", schedule_.steps, "; ++k)");
    out_.line("const lm_ix at = ", one_block_ ? "" : "base + ", "(lm_ix)(k * ", schedule_.team, " + t) * ", schedule_.vector,
              ";");
    out_.open(exact ? "if (live)" : join("if (live && at < ", row_size_, ")"));
    emit_chunk(plan_.nodes(phase), phase);
    out_.close();
    out_.close();
  }
  for (const NodeIndex root : roots) fold_block(root, phase);
}

// ---- one chunk

void SourceEmitter::emit_chunk(const NodeList& nodes, int phase) {
  emit_places(nodes);
  emit_loads(nodes, phase);
  const NodeList roots = plan_.roots(phase);
  for (const NodeIndex root : roots) {
    const Node& n = node(root);
    if (n.kind == NodeKind::store && is_vector_access(n.arg))
      out_.line(storage_type(arg(n.arg).dtype), " w", root, "[", schedule_.vector, "];");
  }
  out_.open("LM_UNROLL for (int v = 0; v < ", schedule_.vector, "; ++v)");
  emit_elements(nodes, phase);
  for (const NodeIndex root : roots) emit_root(root, phase);
  out_.close();
  for (const NodeIndex root : roots) {
    const Node& n = node(root);
    if (n.kind == NodeKind::store && is_vector_access(n.arg))
      out_.line("LM_STORE(", schedule_.vector, ", p", n.arg, " + ", offset(n.arg), ", w", root, ");");
  }
}

// Positions along several inner dims.
void SourceEmitter::emit_places(const NodeList&) {
  if (kernel_.extents.size() == outer_ + 1) return;
  std::string rest = "at";
  for (size_t d = kernel_.extents.size(); d-- > outer_ + 1;) {
    out_.line("const lm_ix x", d, " = ", rest, " % ", kernel_.extents[d], ", y", d, " = ", rest, " / ", kernel_.extents[d],
              ";");
    rest = join("y", d);
  }
  out_.line("const lm_ix x", outer_, " = ", rest, ";");
}

void SourceEmitter::emit_loads(const NodeList& nodes, int phase) {
  for (const NodeIndex i : nodes) {
    const Node& n = node(i);
    if (n.kind != NodeKind::load || plan_.is_read_back(i, phase)) continue;
    const char* type = storage_type(arg(n.arg).dtype);
    if (is_vector_access(n.arg)) {
      out_.line(type, " r", i, "[", schedule_.vector, "];");
      out_.line("LM_LOAD(", schedule_.vector, ", r", i, ", p", n.arg, " + ", offset(n.arg), ");");
    } else if (arg(n.arg).strides.back() == 0 && !shares_bytes(n.arg)) {
      out_.line("const ", type, " r", i, " = p", n.arg, "[", offset(n.arg), "];");
    }
  }
}

void SourceEmitter::emit_elements(const NodeList& nodes, int phase) {
  for (const NodeIndex i : nodes) {
    const char* type = c_type(node(i).type);
    const std::string kept = join("kept", i, "[k * ", schedule_.vector, " + v]");
    out_.line("const ", type, " ", name(i), " = ", plan_.is_read_back(i, phase) ? kept : element_value(i, false), ";");
    if (plan_.live_since(i) == phase) out_.line(kept, " = ", name(i), ";");
  }
}

void SourceEmitter::emit_root(NodeIndex root, int phase) {
  const Node& n = node(root);
  const std::string value = operand(n, 0);
  if (n.kind == NodeKind::store) {
    const std::string raw = to_storage(arg(n.arg).dtype, n.type, value);
    if (is_vector_access(n.arg))
      out_.line("w", root, "[v] = ", raw, ";");
    else
      out_.line("p", n.arg, "[", offset(n.arg), " + v * (lm_ix)", arg(n.arg).strides.back(), "] = ", raw, ";");
  } else if (n.kind == NodeKind::column_sum) {
    if (schedule_.column_registers)
      out_.line("c", root, "[k * ", schedule_.vector, " + v] += ", value, ";");
    else
      out_.line("q", root, "[at + v] = (r == 0 ? 0 : q", root, "[at + v]) + ", value, ";");
  } else {
    accumulate(root, phase, value);
  }
}

// Stores column sums that were in registers.
void SourceEmitter::emit_stores() {
  out_.open("if (block < blocks)");
  out_.open("LM_UNROLL for (int k = 0; k < ", schedule_.steps, "; ++k)");
  out_.line("const lm_ix at = (lm_ix)(k * ", schedule_.team, " + t) * ", schedule_.vector, ";");
  out_.open("if (at < ", row_size_, ")");
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    if (column_slot_[i] < 0) continue;
    out_.line("LM_UNROLL for (int v = 0; v < ", schedule_.vector, "; ++v) q", i, "[at + v] = c", i, "[k * ", schedule_.vector,
              " + v];");
  }
  out_.close();
  out_.close();
  out_.close();
}

// Groups of 32 columns. Each thread of a column adds every `depth`-th block of rows, and the threads' sums are joined in
// order.
void SourceEmitter::emit_columns_kernel() {
  const int depth = columns_depth(limits_);
  const auto groups = (row_size_ + kColumnLanes - 1) / kColumnLanes;
  symbols_.push_back(symbol_ + "_columns");
  emit_signature(symbols_.back(), kColumnLanes * depth, true);
  bool wide = false;
  for (const Node& n : kernel_.nodes) wide |= n.kind == NodeKind::column_sum && n.type == Type::f64;
  const char* suffix = wide ? "f64" : "f32";
  out_.line("LM_SHARED lm_", suffix, " shared_hi[", kColumnLanes * depth, "], shared_lo[", kColumnLanes * depth, "];");
  out_.line("const int thread = LM_THREAD, lane = thread % ", kColumnLanes, ", t = thread / ", kColumnLanes, ";");
  out_.line("const int slot = (int)(LM_GROUP / ", groups, ");");
  out_.line("const lm_ix column = (lm_ix)(LM_GROUP % ", groups, ") * ", kColumnLanes, " + lane;");
  out_.line("LM_GLOBAL const lm_", suffix, "* const q = (LM_GLOBAL const lm_", suffix,
            "*)(partials + partials_offset) + slot * (lm_s64)", row_size_, " + column;");
  out_.line("lm_pair_", suffix, " total = lm_pair_of_", suffix, "(0, 0);");
  out_.open("if (column < ", row_size_, ")");
  out_.line("for (lm_s64 b = t; b < blocks; b += ", depth, ") total = lm_pair_add_", suffix, "(total, q[b * ",
            columns_ * row_size_, "]);");
  out_.close();
  out_.line("shared_hi[thread] = total.hi;");
  out_.line("shared_lo[thread] = total.lo;");
  out_.line("LM_BARRIER;");
  out_.line("if (t != 0 || column >= ", row_size_, ") return;");
  out_.line("for (int u = 1; u < ", depth, "; ++u) total = lm_pair_join_", suffix, "(total, lm_pair_of_", suffix,
            "(shared_hi[u * ", kColumnLanes, " + lane], shared_lo[u * ", kColumnLanes, " + lane]));");
  std::string rest = "column";
  for (size_t d = kernel_.extents.size(); d-- > outer_ + 1;) {
    out_.line("const lm_ix x", d, " = ", rest, " % ", kernel_.extents[d], ", y", d, " = ", rest, " / ", kernel_.extents[d],
              ";");
    rest = join("y", d);
  }
  out_.line("const lm_ix x", outer_, " = ", rest, ";");
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    if (column_slot_[i] < 0) continue;
    const Node& n = kernel_.nodes[i];
    const std::string type = join("LM_GLOBAL ", storage_type(arg(n.arg).dtype), "*");
    out_.line("if (slot == ", column_slot_[i], ") ((", type, ")(b", n.arg, " + o", n.arg, "))[",
              place_sum(arg(n.arg).strides, outer_, kernel_.extents.size(), "x"),
              "] = ", to_storage(arg(n.arg).dtype, n.type, "total.hi"), ";");
  }
  out_.close();
}

int columns_depth(const DeviceLimits& limits) {
  return std::max(1, std::min(tuning::kMaxGroup, limits.max_group) / kColumnLanes);
}

bool needs_f64(const kernel::Kernel& kernel) {
  for (const kernel::Arg& arg : kernel.args) {
    if (arg.dtype == DataType::f64) return true;
  }
  return std::any_of(kernel.nodes.begin(), kernel.nodes.end(), [](const Node& n) {
    if (n.kind == NodeKind::map && (n.op == kernel::MapOp::sin || n.op == kernel::MapOp::cos)) return true;
    return n.type == Type::f64 || (n.kind == NodeKind::map && n.op == kernel::MapOp::power && needs_general_power(n.value));
  });
}

KernelSource emit_kernel(const kernel::Kernel& kernel, const Schedule& schedule, const DeviceLimits& limits, Language language,
                         bool aligned, bool disjoint) {
  KernelSource source;
  source.symbol = "lamina_" + kernel.name;
  SourceEmitter emitter(kernel, schedule, limits, source.symbol);
  emitter.emit();
  source.symbols = emitter.symbols();
  source.body = join("typedef ", schedule.wide_offsets ? "lm_s64" : "int", " lm_ix;\n\n", emitter.text());
  source.text = program_prelude(kernel, language, aligned, disjoint) + source.body;
  return source;
}

}  // namespace lamina::gpu
