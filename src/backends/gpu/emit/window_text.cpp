#include "backends/gpu/emit/window_text.h"

#include <cstdlib>

namespace lamina::gpu {

using kernel::WindowAxis;
using kernel::WindowDim;

std::string plus(const std::string& name, int64_t stride) {
  if (stride == 0 || name.empty()) return "";
  return stride == 1 ? join(" + ", name) : stride < 0 ? join(" - ", name, " * ", -stride) : join(" + ", name, " * ", stride);
}

std::string at_start(const std::string& place) {
  return place.starts_with(" + ") ? place.substr(3) : place.empty() ? "0" : place;
}

bool are_neighbours(int64_t first, int64_t second) { return first != 0 && (second == 0 || std::abs(first) < std::abs(second)); }

void WindowText::split(const char* name, const std::string& index, bool of_rows) const {
  const char letter = of_rows ? 'r' : 't';
  const WindowDim& inner = of_rows ? c_.inner_rows : c_.inner_terms;
  std::string text = join("const lm_ix ", name, " = ", index), rest = name;
  const auto take = [&](const std::string& place, int64_t extent) {
    text += extent == 1 ? join(", ", place, " = 0") : join(", ", place, " = ", rest, " % ", extent);
    rest = extent == 1 ? rest : join("(", rest, " / ", extent, ")");
  };
  take(join(letter, "_inner"), inner.extent);
  for (size_t a = c_.axes.size(); a-- > 0;) take(join(letter, a), of_rows ? c_.axes[a].rows : c_.axes[a].terms);
  out_.line(text, ", ", letter, "_outer = ", rest, ";");
}

std::string WindowText::at_outer_and_inner(int64_t WindowDim::* stride, bool of_rows) const {
  const char letter = of_rows ? 'r' : 't';
  return plus(join(letter, "_outer"), (of_rows ? c_.outer_rows : c_.outer_terms).*stride) +
         plus(join(letter, "_inner"), (of_rows ? c_.inner_rows : c_.inner_terms).*stride);
}

std::string WindowText::at_row(size_t a) const { return join(c_.axes[a].first, plus(join("r", a), c_.axes[a].per_row)); }

void WindowText::emit_pixel(size_t a, const std::string& at_row, std::string& inside, std::string& place) const {
  const WindowAxis& axis = c_.axes[a];
  const std::string at = join("at", a), pixel = join("pixel", a);
  out_.line("const lm_ix ", at, " = ", at_row, plus(join("t", a), axis.per_term), ", ", pixel, " = ", at,
            axis.divisor == 1 ? "" : join(" / ", axis.divisor), ";");
  if (axis.lowest() < 0) inside += join(" && ", at, " >= 0");
  if (axis.divisor != 1) inside += join(" && ", at, " % ", axis.divisor, " == 0");
  if (axis.highest() >= axis.pixels) inside += join(" && ", pixel, " < ", axis.pixels);
  place += plus(pixel, axis.left);
}

std::string WindowText::left(std::string& inside) const {
  std::string place = at_outer_and_inner(&WindowDim::left, true) + at_outer_and_inner(&WindowDim::left, false);
  for (size_t a = 0; a < c_.axes.size(); ++a) emit_pixel(a, at_row(a), inside, place);
  return at_start(place);
}

std::string WindowText::right(const std::string& column) const {
  std::string place = at_outer_and_inner(&WindowDim::right, false) + plus(column, c_.columns.right);
  for (size_t a = 0; a < c_.axes.size(); ++a) place += plus(join("t", a), c_.axes[a].right);
  return at_start(place);
}

}  // namespace lamina::gpu
