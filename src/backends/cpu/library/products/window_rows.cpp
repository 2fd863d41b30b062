#include "backends/cpu/library/products/window_rows.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <span>

#include "backends/cpu/library/products/product_runner.h"
#include "backends/cpu/product/tuning.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

using kernel::WindowedContraction;
using Axis = WindowedContraction::Axis;

constexpr size_t kMostAxes = kMaxRank;

int64_t row_count(const Axis& axis) { return axis.rows; }
int64_t term_count(const Axis& axis) { return axis.terms; }

// Splits an index into the places along the axes; returns the rest.
template <typename Extent>
int64_t split(int64_t index, std::span<const Axis> axes, const Extent& extent, int64_t* places) {
  for (size_t a = axes.size(); a-- > 0; index /= extent(axes[a])) places[a] = index % extent(axes[a]);
  return index;
}

DataType type_of_sums(const WindowedContraction& c) {
  return c.sum_type() == kernel::Type::f64 ? DataType::f64 : DataType::f32;
}

MatrixCopy copy_of(const WindowedContraction& c, const Machine& machine, int vector_bits) {
  if (c.integers) return copy_of_integers(c.left.dtype, c.integers->src_zero_point, machine, vector_bits);
  return matrix_copy(c.left.dtype, type_of_sums(c), machine, vector_bits);
}

// Whether a line without pads is contiguous in memory.
bool has_contiguous_lines(const WindowedContraction& c) {
  const Axis& last = c.axes.back();
  return (c.inner_terms.extent == 1 || c.inner_terms.left == 1) && last.per_term == 1 && last.divisor == 1 &&
         last.left == c.inner_terms.extent;
}

// A pointer per line pays off for few channels. Lines with pads are made.
bool finds_lines(const WindowedContraction& c, const ColumnGroups& groups) {
  return groups.columns == 0 && has_contiguous_lines(c) && c.inner_terms.extent <= product_tuning::kChannelsOfLines;
}

// From the entries of the first group to behind those of the last one.
int64_t row_elements(const WindowedContraction& c, const ColumnGroups& groups) {
  return groups.columns == 0 ? 1 : c.columns.extent / groups.columns * groups.step;
}

}  // namespace

WindowRows::WindowRows(const WindowedContraction& contraction, const ColumnGroups& groups, int64_t rows, const Machine& machine,
                       int vector_bits)
    : c_(contraction),
      groups_(groups),
      rows_(rows),
      rows_per_group_(c_.row_count()),
      bytes_(bytes_of(c_.left.dtype, 1)),
      row_bytes_(c_.integers ? int64_t{sizeof(int16_t)} : bytes_of(type_of_sums(c_), 1)),
      line_(c_.axes.back().terms * c_.inner_terms.extent),
      is_contiguous_(has_contiguous_lines(c_)),
      finds_lines_(finds_lines(c_, groups)),
      copy_(copy_of(c_, machine, vector_bits)),
      zeros_(static_cast<char*>(
                 std::calloc(static_cast<size_t>(part() * std::abs(to_next_k()) + bytes_ * row_elements(c_, groups)), 1)),
             std::free) {
  if (zeros_ == nullptr) throw std::bad_alloc();
  LAMINA_CHECK(c_.axes.size() <= kMostAxes, kernel::print(c_));
  for (const Axis& axis : c_.axes) {
    std::vector<int64_t>& offsets = offsets_.emplace_back();
    for (int64_t row = 0; row < axis.rows; ++row)
      for (int64_t term = 0; term < axis.terms; ++term)
        offsets.push_back(axis.pixel(row, term) < 0 ? -1 : axis.pixel(row, term) * axis.left * bytes_);
  }
}

int64_t WindowRows::part_of(const WindowedContraction& c, const ColumnGroups& groups) {
  if (bytes_of(c.left.dtype, 1) != bytes_of(type_of_sums(c), 1)) return 0;
  if (finds_lines(c, groups)) return c.axes.back().terms * c.inner_terms.extent;
  return groups.columns == 0 && c.inner_terms.extent < product_tuning::kLeastPart ? 0 : c.inner_terms.extent;
}

const char* WindowRows::row_at(const void* src, int64_t entry, int64_t index, int64_t* places) const {
  const int64_t entries = rows_per_group_ / rows_, row = entry % entries * rows_ + index, inner = c_.inner_rows.extent;
  const int64_t outer = split(row / inner, c_.axes, row_count, places);
  const int64_t at = entry / entries * c_.groups.left + outer * c_.outer_rows.left + row % inner * c_.inner_rows.left;
  return static_cast<const char*>(src) + at * bytes_;
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
    if (finds_lines_)
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
      *to = pixels == nullptr ? zeros_.get() : pixels + start * axis.left * bytes_;
      continue;
    }
    make_line(pixels, place, 0, line_, made);
    *to = made;
    made += line_ * bytes_;
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
  row += split(line, std::span(c_.axes).first(before), term_count, terms.data()) * c_.outer_terms.left * bytes_;
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
      std::memset(to, 0, static_cast<size_t>(part * row_bytes_));
    first_k += part, count -= part, to += part * row_bytes_;
  }
}

// `count` terms from `first` on, of a line whose first pixel is `line`.
void WindowRows::make_line(const char* line, int64_t row_place, int64_t first, int64_t count, char* to) const {
  const Axis& axis = c_.axes.back();
  const int64_t inner = c_.inner_terms.extent;
  if (is_contiguous_) {
    const int64_t start = row_place * axis.per_row + axis.first;
    const int64_t begin = std::clamp(-start * inner - first, int64_t{0}, count);
    const int64_t end = std::clamp((axis.pixels - start) * inner - first, begin, count);
    std::memset(to, 0, static_cast<size_t>(begin * row_bytes_));
    if (end > begin) copy(line + (start * inner + first + begin) * bytes_, end - begin, to + begin * row_bytes_);
    std::memset(to + end * row_bytes_, 0, static_cast<size_t>((count - end) * row_bytes_));
    return;
  }
  while (count > 0) {
    const int64_t part = std::min(count, inner - first % inner), pixel = axis.pixel(row_place, first / inner);
    const char* const from = line + (pixel * axis.left + first % inner * c_.inner_terms.left) * bytes_;
    if (pixel < 0)
      std::memset(to, 0, static_cast<size_t>(part * row_bytes_));
    else
      copy_(from, {0, c_.inner_terms.left * bytes_}, to, {0, row_bytes_}, 1, part);
    first += part, count -= part, to += part * row_bytes_;
  }
}

void WindowRows::copy(const char* from, int64_t count, char* to) const {
  copy_(from, {0, bytes_}, to, {0, row_bytes_}, 1, count);
}

}  // namespace lamina::cpu
