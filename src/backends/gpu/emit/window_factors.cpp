#include "backends/gpu/emit/window_factors.h"

#include <algorithm>
#include <initializer_list>

namespace lamina::gpu {

namespace {

using kernel::WindowAxis;
using kernel::WindowDim;
using kernel::WindowedContraction;

constexpr int64_t kChunk = 8;

bool all_are_whole(std::initializer_list<int64_t> extents) {
  return std::all_of(extents.begin(), extents.end(), [](int64_t extent) { return extent % kChunk == 0; });
}

bool axes_are_whole(const WindowedContraction& c, int64_t WindowAxis::* stride, size_t count) {
  return std::all_of(c.axes.begin(), c.axes.begin() + static_cast<int64_t>(count),
                     [&](const WindowAxis& axis) { return axis.*stride % kChunk == 0; });
}

bool has_inner_rows(const WindowedContraction& c) { return c.inner_rows.extent > 1; }

// A position along the axis is a pixel of left, and all of them are inside.
bool is_still(const WindowAxis& axis) {
  return axis.per_row == 1 && axis.divisor == 1 && axis.terms == 1 && axis.first == 0 && axis.pixels >= axis.rows;
}

// The distance in left from one row to the next, or from one term to the next.
int64_t step_in_left(const WindowedContraction& c, bool of_rows) {
  const WindowDim& inner = of_rows ? c.inner_rows : c.inner_terms;
  if (inner.extent > 1) return inner.left;
  for (size_t a = c.axes.size(); a-- > 0;) {
    const WindowAxis& axis = c.axes[a];
    if ((of_rows ? axis.rows : axis.terms) > 1) return axis.left * (of_rows ? axis.per_row : axis.per_term);
  }
  return (of_rows ? c.outer_rows : c.outer_terms).left;
}

int64_t step_in_right(const WindowedContraction& c) {
  if (c.inner_terms.extent > 1) return c.inner_terms.right;
  for (size_t a = c.axes.size(); a-- > 0;)
    if (c.axes[a].terms > 1) return c.axes[a].right;
  return c.outer_terms.right;
}

// The distance between eight terms, or eight rows, if they are a run.
std::optional<int64_t> run_of_left(const WindowedContraction& c, bool along_terms) {
  if (along_terms) return c.inner_terms.extent % kChunk == 0 ? std::optional(c.inner_terms.left) : std::nullopt;
  if (has_inner_rows(c)) return c.inner_rows.extent % kChunk == 0 ? std::optional(c.inner_rows.left) : std::nullopt;
  const WindowAxis& last = c.axes.back();
  return is_still(last) && last.rows % kChunk == 0 ? std::optional(last.left) : std::nullopt;
}

bool left_is_whole(const WindowedContraction& c, bool along_terms) {
  if (!all_are_whole({c.groups.left, c.outer_rows.left, c.outer_terms.left})) return false;
  if (along_terms) return c.inner_rows.left % kChunk == 0 && axes_are_whole(c, &WindowAxis::left, c.axes.size());
  return c.inner_terms.left % kChunk == 0 && axes_are_whole(c, &WindowAxis::left, c.axes.size() - (has_inner_rows(c) ? 0 : 1));
}

std::optional<int64_t> run_of_right(const WindowedContraction& c, bool along_terms) {
  if (!along_terms) return c.columns.right;
  return c.inner_terms.extent % kChunk == 0 ? std::optional(c.inner_terms.right) : std::nullopt;
}

bool right_is_whole(const WindowedContraction& c, bool along_terms) {
  return all_are_whole({c.groups.right, c.outer_terms.right, along_terms ? c.columns.right : c.inner_terms.right}) &&
         axes_are_whole(c, &WindowAxis::right, c.axes.size());
}

std::string both(const std::string& condition, const std::string& other) {
  if (condition.empty() || other.empty()) return condition + other;
  return join(condition, " && ", other);
}

}  // namespace

bool left_is_along_terms(const WindowedContraction& contraction) {
  return are_neighbours(step_in_left(contraction, false), step_in_left(contraction, true));
}

bool right_is_along_terms(const WindowedContraction& contraction) {
  return are_neighbours(step_in_right(contraction), contraction.columns.right);
}

void WindowedFactor::emit_start(Text& out, const TileCopies& copies) const {
  out.line("const int ", name(), "_in_chunks = ", is_in_chunks() ? join("(lm_s64)from_", name(), " % 16 == 0") : "0", ";");
  emit_rows(out, copies);
}

void WindowedFactor::emit_step(Text& out, const TileCopies& copies) const {
  if (!run_) return;
  const WindowText text(c_, out);
  if (steps_are_in_a_tap(copies))
    text.split(join(name(), "_term").c_str(), "(lm_ix)done", false);
  else if (along_terms())
    text.split(join(name(), "_term").c_str(), join("(lm_ix)done + ", name(), "_first"), false);
}

std::string WindowedFactor::channel(const TileCopies& copies) const {
  if (!steps_are_in_a_tap(copies)) return "";
  return along_terms() ? join(name(), "_first") : "line";
}

void WindowedFactor::emit_terms(Text& out, const TileCopies& copies) const {
  if (!along_terms() && !steps_are_in_a_tap(copies)) WindowText(c_, out).split("term", "(lm_ix)done + line", false);
}

// `inside`: a condition besides the count, or "".
void WindowedFactor::emit_run(Text& out, const std::string& place, const std::string& inside, bool in_chunks) const {
  const std::string within = inside.empty() ? "count" : "inside";
  if (!inside.empty()) out.line("const int inside = ", inside, " ? count : 0;");
  out.line("LM_GLOBAL const lm_u16* const from = from_", name(), " + (", place, ");");
  if (in_chunks) return out.line("lm_copy_chunk(to, from, ", within, ");");
  out.line("LM_UNROLL for (int e = 0; e < ", kChunk, "; ++e) to[e] = e < ", within, " ? from[", at_start(plus("e", *run_)),
           "] : (lm_u16)0;");
}

WindowedLeft::WindowedLeft(const WindowedContraction& contraction)
    : WindowedFactor("left", contraction, left_is_along_terms(contraction),
                     run_of_left(contraction, left_is_along_terms(contraction)),
                     left_is_whole(contraction, left_is_along_terms(contraction))) {}

// The places of the thread's lines, or of its chunk. Where an axis has no divisor, a pixel's offset is the sum of those of the
// row and of the term.
void WindowedLeft::emit_rows(Text& out, const TileCopies& copies) const {
  const WindowText text(c_, out);
  if (!along_terms()) {
    if (run_) text.split("left_chunk", "(lm_ix)first_row + left_first", true);
    return;
  }
  std::string places = join("lm_ix left_row[", copies.per_thread(), "]");
  for (size_t a = 0; a < c_.axes.size(); ++a) places += join(", left_row", a, "[", copies.per_thread(), "]");
  out.line(places, ";");
  out.open("LM_UNROLL for (int i = 0; i < ", copies.per_thread(), "; ++i)");
  text.split("row", join("(lm_ix)first_row + left_line + i * ", copies.lines_apart), true);
  std::string place = text.at_outer_and_inner(&WindowDim::left, true);
  for (size_t a = 0; a < c_.axes.size(); ++a) {
    out.line("left_row", a, "[i] = ", text.at_row(a), ";");
    if (run_ && c_.axes[a].divisor == 1) place += plus(join("left_row", a, "[i]"), c_.axes[a].left);
  }
  if (run_) place += plus(channel(copies), c_.inner_terms.left);
  out.line("left_row[i] = ", at_start(place), ";");
  out.close();
}

std::string WindowedLeft::place(Text& out, const TileCopies& copies, std::string& inside) const {
  const WindowText text(c_, out);
  std::string place = text.at_outer_and_inner(&WindowDim::left, false);
  if (along_terms()) {
    place = " + left_row[i]" + place;
  } else {
    place = text.at_outer_and_inner(&WindowDim::left, true) + place + plus(channel(copies), c_.inner_terms.left);
  }
  for (size_t a = 0; a < c_.axes.size(); ++a) {
    const WindowAxis& axis = c_.axes[a];
    const std::string at_row = along_terms() ? join("left_row", a, "[i]") : text.at_row(a);
    if (axis.divisor != 1 || !along_terms()) {
      text.emit_pixel(a, at_row, inside, place);
      continue;
    }
    place += plus(join("t", a), axis.per_term * axis.left);
    if (axis.lowest() < 0 || axis.highest() >= axis.pixels)
      inside += join(" && (lm_ux)(", at_row, plus(join("t", a), axis.per_term), ") < ", axis.pixels);
  }
  if (inside.starts_with(" && ")) inside = inside.substr(4);
  return at_start(place);
}

void WindowedLeft::emit_copy(Text& out, const TileCopies& copies, bool in_chunks) const {
  if (!run_) return emit_elements(out);
  emit_terms(out, copies);
  std::string inside;
  const std::string at = place(out, copies, inside);
  emit_run(out, at, inside, in_chunks);
}

void WindowedLeft::emit_elements(Text& out) const {
  const WindowText text(c_, out);
  std::string inside, place;
  if (!along_terms()) text.split("term", "(lm_ix)done + line", false);
  out.open("LM_UNROLL for (int e = 0; e < ", kChunk, "; ++e)");
  if (along_terms()) {
    text.split("term", "(lm_ix)done + left_first + e", false);
    place = " + left_row[i]" + text.at_outer_and_inner(&WindowDim::left, false);
    for (size_t a = 0; a < c_.axes.size(); ++a) text.emit_pixel(a, join("left_row", a, "[i]"), inside, place);
  } else {
    text.split("row", "(lm_ix)first_row + left_first + e", true);
    place = text.left(inside);
  }
  if (inside.starts_with(" && ")) inside = inside.substr(4);
  out.line("to[e] = ", both("e < count", inside), " ? from_left[", at_start(place), "] : (lm_u16)0;");
  out.close();
}

WindowedRight::WindowedRight(const WindowedContraction& contraction)
    : WindowedFactor("right", contraction, right_is_along_terms(contraction),
                     run_of_right(contraction, right_is_along_terms(contraction)),
                     right_is_whole(contraction, right_is_along_terms(contraction))) {}

void WindowedRight::emit_copy(Text& out, const TileCopies& copies, bool in_chunks) const {
  const WindowText text(c_, out);
  const std::string column = join("((lm_ix)first_column + ", along_terms() ? "line" : "right_first", ")");
  if (run_) {
    emit_terms(out, copies);
    const std::string place = " + " + text.right(column) + plus(channel(copies), c_.inner_terms.right);
    return emit_run(out, at_start(place), "", in_chunks);
  }
  out.open("LM_UNROLL for (int e = 0; e < ", kChunk, "; ++e)");
  text.split("term", "(lm_ix)done + right_first + e", false);
  out.line("to[e] = e < count ? from_right[", text.right(column), "] : (lm_u16)0;");
  out.close();
}

}  // namespace lamina::gpu
