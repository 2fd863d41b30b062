// Convolutions and their gradients to GPU source: products whose left factor is read through a window
// (kernels/windowed_contraction.h). Extents and strides are numbers in the text, so that the divisions which find the place of
// a row are multiplications; the number of samples is a word.
#include <algorithm>
#include <cstdlib>

#include "backends/gpu/emit/c_types.h"
#include "backends/gpu/emit/library_program.h"
#include "backends/gpu/emit/product_tile.h"
#include "backends/gpu/emit/program_text.h"
#include "interface/status.h"
#include "kernels/windowed_contraction.h"

namespace lamina::gpu {

namespace {

using kernel::WindowedContraction;
using Axis = WindowedContraction::Axis;
using Dim = WindowedContraction::Dim;

// " + NAME * STRIDE".
std::string plus(const std::string& name, int64_t stride) {
  if (stride == 0) return "";
  return stride == 1 ? join(" + ", name) : stride < 0 ? join(" - ", name, " * ", -stride) : join(" + ", name, " * ", stride);
}

// The distance in left from one row to the next, or from one term to the next.
int64_t step_in_left(const WindowedContraction& c, bool of_rows) {
  const Dim& inner = of_rows ? c.inner_rows : c.inner_terms;
  if (inner.extent > 1) return inner.left;
  for (size_t a = c.axes.size(); a-- > 0;) {
    const Axis& axis = c.axes[a];
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

int64_t step_in_dst(const WindowedContraction& c) {
  if (c.inner_rows.extent > 1) return c.inner_rows.dst;
  for (size_t a = c.axes.size(); a-- > 0;)
    if (c.axes[a].rows > 1) return c.axes[a].dst;
  return c.outer_rows.dst;
}

// Whether neighbouring threads copy elements that are `first` apart, so that they share memory transactions, not `second`.
bool are_neighbours(int64_t first, int64_t second) { return first != 0 && (second == 0 || std::abs(first) < std::abs(second)); }

// Names in the text: from_left, from_right, bias and dst point to the group's first element of each; r_outer, r0, r1, ...,
// r_inner are the places of a row, t_outer, t0, t1, ..., t_inner those of a term.
class ConvolutionEmitter {
 public:
  ConvolutionEmitter(const WindowedContraction& contraction, const ProductTile& tile, std::string symbol)
      : c_(contraction), tile_(tile), symbol_(std::move(symbol)), text_(tile_, out_) {}

  // In tiles.
  std::string emit() {
    emit_signature();
    const std::string group = text_.place("row_count", join("(lm_s64)", c_.columns.extent));
    out_.line("const lm_s64 group = ", group, ";");
    emit_pointers();
    text_.sum("term_count", [&] { emit_load(); }, [] {});
    text_.store([&](const std::string& sum) {
      split("entry", "(lm_ix)first_row + row", true);
      emit_store("((lm_ix)first_column + column)", sum);
    });
    out_.close();
    return out_.str();
  }

  // A thread per element of dst. Neighbouring threads have neighbouring channels if these are closer to each other than rows.
  std::string emit_by_element() {
    const int64_t columns = c_.columns.extent, channels = columns * c_.groups.extent;
    emit_signature();
    out_.line("const lm_s64 item = LM_GROUP * ", tile_.group_size(), " + LM_THREAD;");
    out_.open("if (item < row_count * ", channels, ")");
    const bool channels_first = are_neighbours(columns > 1 ? c_.columns.dst : c_.groups.dst, step_in_dst(c_));
    const std::string channel = channels_first ? join("item % ", channels) : "item / row_count";
    out_.line("const lm_s64 channel = ", channel, ", group = channel / ", columns, ";");
    out_.line("const lm_ix column = (lm_ix)(channel % ", columns, ");");
    emit_pointers();
    split("row", channels_first ? join("(lm_ix)(item / ", channels, ")") : "(lm_ix)(item % row_count)", true);
    out_.line(c_type(tile_.sums), " sum = 0;");
    emit_chain();
    emit_store("column", "sum");
    out_.close();
    out_.close();
    return out_.str();
  }

 private:
  // Of the rows or the terms, without samples.
  int64_t inner_count(bool of_rows) const {
    int64_t count = (of_rows ? c_.inner_rows : c_.inner_terms).extent;
    for (const Axis& axis : c_.axes) count *= of_rows ? axis.rows : axis.terms;
    return count;
  }

  void emit_signature() {
    std::string parameters;
    for (int t = 0; t < (c_.has_bias() ? 4 : 3); ++t) parameters += join("LM_BUFFER b", t, ", const lm_s64 o", t, ", ");
    out_.open("LM_KERNEL(", tile_.group_size(), ", ", std::max(1, tuning::kThreadsOfManyRegisters / tile_.group_size()), ") ",
              symbol_, "(", parameters, "const lm_s64 outer_rows, const lm_s64 outer_terms)");
    out_.line("const lm_s64 row_count = outer_rows * ", inner_count(true), ", term_count = outer_terms * ", inner_count(false),
              ";");
  }

  void emit_pointers() {
    size_t number = 0;
    emit_pointer("from_left", c_.left.dtype, c_.groups.left, number++);
    emit_pointer("from_right", c_.right.dtype, c_.groups.right, number++);
    if (c_.has_bias()) emit_pointer("bias", c_.bias.dtype, c_.groups.bias, number++);
    emit_pointer("dst", c_.dst.dtype, c_.groups.dst, number++);
  }
  void emit_pointer(const char* name, DataType dtype, int64_t stride, size_t number) {
    const std::string type = join("LM_GLOBAL ", std::string(name) == "dst" ? "" : "const ", storage_type(dtype), "*");
    out_.line(type, " const ", name, " = (", type, ")(b", number, " + o", number, ")", plus("group", stride), ";");
  }

  void emit_load() {
    text_.load_rows(are_neighbours(step_in_left(c_, false), step_in_left(c_, true)), [&] {
      split("row", "(lm_ix)first_row + at", true);
      split("term", "(lm_ix)done + c", false);
      return left_or_0("at < rows && c < depth");
    });
    text_.load_columns(are_neighbours(step_in_right(c_), c_.columns.right), [&] {
      split("term", "(lm_ix)done + c", false);
      return join("at < columns && c < depth ? ", right("((lm_ix)first_column + at)"), " : 0");
    });
  }

  // Term after term, in their order.
  void emit_chain() {
    const auto loop = [&](const std::string& place, const std::string& count) {
      out_.open("for (lm_ix ", place, " = 0; ", place, " < ", count, "; ++", place, ")");
    };
    loop("t_outer", "(lm_ix)outer_terms");
    for (size_t a = 0; a < c_.axes.size(); ++a) loop(join("t", a), join(c_.axes[a].terms));
    loop("t_inner", join(c_.inner_terms.extent));
    const std::string left = left_or_0("");
    out_.line("sum = lm_fma_", suffix_of(tile_.sums), "(", left, ", ", right("column"), ", sum);");
    for (size_t loops = c_.axes.size() + 2; loops > 0; --loops) out_.close();
  }

  // The element of left at a row and a term, if these are inside; may write lines before.
  std::string left_or_0(std::string inside) {
    std::string place = at_outer_and_inner(&Dim::left, true) + at_outer_and_inner(&Dim::left, false);
    for (size_t a = 0; a < c_.axes.size(); ++a) emit_pixel(a, inside, place);
    const std::string value = loaded(c_.left.dtype, tile_.sums, join("from_left[", at_start(place), "]"));
    if (inside.starts_with(" && ")) inside = inside.substr(4);
    return inside.empty() ? value : join("(", inside, " ? ", value, " : 0)");
  }
  std::string right(const std::string& column) const {
    std::string place = at_outer_and_inner(&Dim::right, false) + plus(column, c_.columns.right);
    for (size_t a = 0; a < c_.axes.size(); ++a) place += plus(join("t", a), c_.axes[a].right);
    return loaded(c_.right.dtype, tile_.sums, join("from_right[", at_start(place), "]"));
  }

  // Defines the places of a row or a term: outer, along the axes, inner.
  void split(const char* name, const std::string& index, bool of_rows) {
    const char letter = of_rows ? 'r' : 't';
    const Dim& inner = of_rows ? c_.inner_rows : c_.inner_terms;
    std::string text = join("const lm_ix ", name, " = ", index), rest = name;
    const auto take = [&](const std::string& place, int64_t extent) {
      text += extent == 1 ? join(", ", place, " = 0") : join(", ", place, " = ", rest, " % ", extent);
      rest = extent == 1 ? rest : join("(", rest, " / ", extent, ")");
    };
    take(join(letter, "_inner"), inner.extent);
    for (size_t a = c_.axes.size(); a-- > 0;) take(join(letter, a), of_rows ? c_.axes[a].rows : c_.axes[a].terms);
    out_.line(text, ", ", letter, "_outer = ", rest, ";");
  }

  std::string at_outer_and_inner(int64_t Dim::* stride, bool of_rows) const {
    const char letter = of_rows ? 'r' : 't';
    return plus(join(letter, "_outer"), (of_rows ? c_.outer_rows : c_.outer_terms).*stride) +
           plus(join(letter, "_inner"), (of_rows ? c_.inner_rows : c_.inner_terms).*stride);
  }

  void emit_pixel(size_t a, std::string& inside, std::string& place) {
    const Axis& axis = c_.axes[a];
    const std::string at = join("at", a), pixel = join("pixel", a);
    std::string sum = plus(join("r", a), axis.per_row) + plus(join("t", a), axis.per_term);
    out_.line("const lm_ix ", at, " = ", axis.first, sum, ", ", pixel, " = ", at,
              axis.divisor == 1 ? "" : join(" / ", axis.divisor), ";");
    if (axis.lowest() < 0) inside += join(" && ", at, " >= 0");
    if (axis.divisor != 1) inside += join(" && ", at, " % ", axis.divisor, " == 0");
    if (axis.highest() >= axis.pixels) inside += join(" && ", pixel, " < ", axis.pixels);
    place += plus(pixel, axis.left);
  }

  // An offset that begins with its sign, as an index.
  static std::string at_start(const std::string& place) {
    return place.starts_with(" + ") ? place.substr(3) : place.empty() ? "0" : place;
  }

  void emit_store(const std::string& column, const std::string& sum) {
    std::string place = at_outer_and_inner(&Dim::dst, true) + plus(column, c_.columns.dst);
    for (size_t a = 0; a < c_.axes.size(); ++a) place += plus(join("r", a), c_.axes[a].dst);
    std::string value = sum;
    if (c_.has_bias())
      value += " + " + loaded(c_.bias.dtype, tile_.sums, join("bias[", at_start(plus(column, c_.columns.bias)), "]"));
    out_.line("dst[", at_start(place), "] = ", stored(c_.dst.dtype, tile_.sums, value), ";");
  }

  const WindowedContraction& c_;
  const ProductTile& tile_;
  std::string symbol_;
  Text out_;
  ProductTileText text_;
};

// The most elements from the first to the last of a tensor, and the most rows and terms.
int64_t reach(const WindowedContraction& c) {
  const auto span = [](const Dim& dim, int64_t Dim::* stride) {
    return std::max<int64_t>(dim.extent - 1, 0) * std::abs(dim.*stride);
  };
  int64_t longest = std::max(c.row_count(), c.term_count());
  for (const auto& [stride, of_axis] :
       {std::pair(&Dim::left, &Axis::left), {&Dim::right, &Axis::right}, {&Dim::dst, &Axis::dst}}) {
    int64_t sum = 0;
    for (const Dim* dim : {&c.outer_rows, &c.inner_rows, &c.columns, &c.outer_terms, &c.inner_terms}) sum += span(*dim, stride);
    for (const Axis& axis : c.axes) {
      const int64_t extent = of_axis == &Axis::left ? axis.pixels : of_axis == &Axis::right ? axis.terms : axis.rows;
      sum += extent * std::abs(axis.*of_axis);
      longest = std::max({longest, axis.highest(), -axis.lowest()});
    }
    longest = std::max(longest, sum);
  }
  return longest;
}

LibraryProgram program(const kernel::LibraryStep& step, const DeviceLimits& limits, const Language& language) {
  const WindowedContraction contraction = kernel::windowed_contraction_of(step);
  const int64_t rows = contraction.row_count(), columns = contraction.columns.extent, groups = contraction.groups.extent;
  const ProductTile tile = choose_tile(rows, columns, contraction.sum_type(), limits);
  const bool has_tiles = columns > tuning::kFewColumns;
  LibraryProgram made;
  made.needs_f64 = tile.sums == kernel::Type::f64;
  made.source.symbol = join("lamina_convolution_", lamina::name_of(contraction.left.dtype));
  made.source.symbols = {made.source.symbol};
  ConvolutionEmitter emitter(contraction, tile, made.source.symbol);
  made.source.body = join("typedef ", reach(contraction) > tuning::kMaxNarrowOffset ? "lm_s64" : "int", " lm_ix;\n\n",
                          has_tiles ? emitter.emit() : emitter.emit_by_element());
  made.source.text = conversions_prelude(language, made.needs_f64) + made.source.body;
  made.args = {contraction.left.port, contraction.right.port};
  if (contraction.has_bias()) made.args.push_back(contraction.bias.port);
  made.args.push_back(contraction.dst.port);
  made.words = {contraction.outer_rows.extent, contraction.outer_terms.extent};
  const auto parts = [](int64_t extent, int64_t part) { return (extent + part - 1) / part; };
  made.group_size = tile.group_size();
  if (has_tiles)
    made.groups = {parts(columns, tile.columns()), parts(rows, tile.rows()), groups};
  else
    made.groups = {parts(rows * columns * groups, tile.group_size())};
  made.schedule = has_tiles ? join("tiles of ", tile.rows(), " x ", tile.columns()) : "a thread per element";
  made.text = join(kernel::print(contraction), ", ", made.schedule);
  return made;
}

}  // namespace

LibraryOp convolution_op() { return {nullptr, program}; }

}  // namespace lamina::gpu
