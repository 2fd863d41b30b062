#include "backends/cpu/dispatch/window_rows.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <utility>

#include "backends/cpu/dispatch/program_checks.h"
#include "interface/logical_tensor.h"

namespace lamina::cpu {

namespace {

using Axis = kernel::WindowAxis;

constexpr size_t kMostAxes = kMaxRank;

int64_t row_count(const Axis& axis) { return axis.rows; }
int64_t term_count(const Axis& axis) { return axis.terms; }

// Splits an index into the places along the axes; returns the rest.
template <typename Extent>
int64_t split(int64_t index, std::span<const Axis> axes, const Extent& extent, int64_t* places) {
  for (size_t a = axes.size(); a-- > 0; index /= extent(axes[a])) places[a] = index % extent(axes[a]);
  return index;
}

int64_t product_of_extents(std::span<const Axis> axes, int64_t Axis::* extent, int64_t count) {
  for (const Axis& axis : axes) count *= axis.*extent;
  return count;
}

}  // namespace

WindowRows::WindowRows(WindowRowsProgram program, MatrixCopy copy)
    : c_(std::move(program)),
      rows_per_group_(product_of_extents(c_.axes, &Axis::rows, c_.outer_rows.extent * c_.inner_rows.extent)),
      line_(c_.axes.back().terms * c_.inner_terms.extent),
      copy_(std::move(copy)),
      zeros_(static_cast<char*>(std::calloc(static_cast<size_t>(zero_bytes()), 1)), std::free) {
  if (zeros_ == nullptr) throw std::bad_alloc();
  for (const Axis& axis : c_.axes) {
    std::vector<int64_t>& offsets = offsets_.emplace_back();
    for (int64_t row = 0; row < axis.rows; ++row)
      for (int64_t term = 0; term < axis.terms; ++term)
        offsets.push_back(axis.pixel(row, term) < 0 ? -1 : axis.pixel(row, term) * axis.left * c_.element_bytes);
  }
}

// A part of a row, from the entries of the first group to behind those of the last one.
int64_t WindowRows::zero_bytes() const {
  const int64_t elements = c_.column_groups.columns == 0 ? 1 : c_.column_group_count * c_.column_groups.step;
  return part() * std::abs(to_next_k()) + c_.element_bytes * elements;
}

void WindowRows::write(ProgramWriter& to) const {
  to.write(c_);
  copy_.write(to);
}

std::unique_ptr<const WindowRows> WindowRows::read(ProgramReader& from) {
  auto program = from.get<WindowRowsProgram>();
  check(program);
  MatrixCopy copy = MatrixCopy::read(from);
  return std::make_unique<const WindowRows>(std::move(program), std::move(copy));
}

const char* WindowRows::row_at(const void* src, int64_t entry, int64_t index, int64_t* places) const {
  const int64_t entries = rows_per_group_ / c_.rows, row = entry % entries * c_.rows + index, inner = c_.inner_rows.extent;
  const int64_t outer = split(row / inner, c_.axes, row_count, places);
  const int64_t at = entry / entries * c_.groups.left + outer * c_.outer_rows.left + row % inner * c_.inner_rows.left;
  return static_cast<const char*>(src) + at * c_.element_bytes;
}

void WindowRows::make_rows(const void* src, int64_t entry, int64_t first_row, int64_t rows, int64_t first_k, int64_t count,
                           char* to, int64_t to_next_row) const {
  for (int64_t i = 0; i < rows; ++i, to += to_next_row) {
    std::array<int64_t, kMostAxes> places;
    const char* const row = row_at(src, entry, first_row + i, places.data());
    make_row(row, places.data(), first_k, count, to);
  }
}

void WindowRows::find_rows(const void* src, int64_t entry, int64_t first_row, int64_t rows, int64_t first_part, int64_t parts,
                           const void** to, char* made) const {
  const size_t last = c_.axes.size() - 1;
  std::array<int64_t, kMostAxes> places;
  const char* row = row_at(src, entry, first_row, places.data());
  for (int64_t i = 0; i < rows; ++i) {
    if (c_.finds_lines)
      made = find_lines(row, places.data(), first_part, parts, to + i, rows, made);
    else
      find_parts(row, places.data(), first_part, parts, to + i, rows);
    const bool stays_in_line = c_.inner_rows.extent == 1 && ++places[last] < c_.axes[last].rows;
    if (!stays_in_line && i + 1 < rows) row = row_at(src, entry, first_row + i + 1, places.data());
  }
}

// Returns the place after the lines that are made.
char* WindowRows::find_lines(const char* row, const int64_t* places, int64_t first, int64_t count, const void** to,
                             int64_t step, char* made) const {
  const Axis& axis = c_.axes.back();
  const int64_t place = places[c_.axes.size() - 1], start = place * axis.per_row + axis.first;
  const bool is_inside = start >= 0 && start + axis.terms <= axis.pixels;
  for (int64_t line = first; line < first + count; ++line, to += step) {
    const char* const pixels = line_at(row, places, line);
    if (pixels == nullptr || is_inside) {
      *to = pixels == nullptr ? zeros_.get() : pixels + start * axis.left * c_.element_bytes;
      continue;
    }
    make_line(pixels, place, 0, line_, made);
    *to = made;
    made += line_ * c_.element_bytes;
  }
  return made;
}

// Line after line of terms.
void WindowRows::find_parts(const char* row, const int64_t* places, int64_t first, int64_t count, const void** to,
                            int64_t step) const {
  const int64_t terms = c_.axes.back().terms;
  const int64_t* const all = offsets_.back().data() + places[c_.axes.size() - 1] * terms;
  for (int64_t line = first / terms, term = first % terms; count > 0; ++line, term = 0) {
    const char* const pixels = line_at(row, places, line);
    for (; term < terms && count > 0; ++term, --count, to += step)
      *to = pixels != nullptr && all[term] >= 0 ? pixels + all[term] : zeros_.get();
  }
}

// The first pixel of a row's line of terms; null: there is none.
const char* WindowRows::line_at(const char* row, const int64_t* places, int64_t line) const {
  const size_t before = c_.axes.size() - 1;
  std::array<int64_t, kMostAxes> terms;
  row += split(line, std::span(c_.axes).first(before), term_count, terms.data()) * c_.outer_terms.left * c_.element_bytes;
  for (size_t a = 0; a < before; ++a) {
    const int64_t offset = offsets_[a][static_cast<size_t>(places[a] * c_.axes[a].terms + terms[a])];
    if (offset < 0) return nullptr;
    row += offset;
  }
  return row;
}

// Line after line of terms. `row`: the first pixel.
void WindowRows::make_row(const char* row, const int64_t* places, int64_t first_k, int64_t count, char* to) const {
  while (count > 0) {
    const int64_t first = first_k % line_, part = std::min(count, line_ - first);
    if (const char* const line = line_at(row, places, first_k / line_); line != nullptr)
      make_line(line, places[c_.axes.size() - 1], first, part, to);
    else
      std::memset(to, 0, static_cast<size_t>(part * c_.row_bytes));
    first_k += part, count -= part, to += part * c_.row_bytes;
  }
}

// `count` terms from `first` on, of a line whose first pixel is `line`.
void WindowRows::make_line(const char* line, int64_t row_place, int64_t first, int64_t count, char* to) const {
  const Axis& axis = c_.axes.back();
  const int64_t inner = c_.inner_terms.extent;
  if (c_.is_contiguous) {
    const int64_t start = row_place * axis.per_row + axis.first;
    const int64_t begin = std::clamp(-start * inner - first, int64_t{0}, count);
    const int64_t end = std::clamp((axis.pixels - start) * inner - first, begin, count);
    std::memset(to, 0, static_cast<size_t>(begin * c_.row_bytes));
    if (end > begin) copy(line + (start * inner + first + begin) * c_.element_bytes, end - begin, to + begin * c_.row_bytes);
    std::memset(to + end * c_.row_bytes, 0, static_cast<size_t>((count - end) * c_.row_bytes));
    return;
  }
  while (count > 0) {
    const int64_t part = std::min(count, inner - first % inner), pixel = axis.pixel(row_place, first / inner);
    const char* const from = line + (pixel * axis.left + first % inner * c_.inner_terms.left) * c_.element_bytes;
    if (pixel < 0)
      std::memset(to, 0, static_cast<size_t>(part * c_.row_bytes));
    else
      copy_(from, {0, c_.inner_terms.left * c_.element_bytes}, to, {0, c_.row_bytes}, 1, part);
    first += part, count -= part, to += part * c_.row_bytes;
  }
}

void WindowRows::copy(const char* from, int64_t count, char* to) const {
  copy_(from, {0, c_.element_bytes}, to, {0, c_.row_bytes}, 1, count);
}

}  // namespace lamina::cpu
