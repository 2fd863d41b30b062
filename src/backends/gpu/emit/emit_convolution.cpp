#include "backends/gpu/emit/emit_convolution.h"

#include <algorithm>
#include <cstdlib>

#include "backends/gpu/emit/c_types.h"
#include "backends/gpu/emit/divided_sums.h"
#include "backends/gpu/emit/program_text.h"
#include "backends/gpu/emit/window_factors.h"
#include "backends/gpu/schedule/product_segments.h"
#include "backends/gpu/schedule/tuning.h"
#include "interface/op_schema.h"
#include "interface/status.h"
#include "kernels/parts.h"

namespace lamina::gpu {

namespace {

using kernel::parts;
using kernel::WindowedContraction;
using Axis = WindowedContraction::Axis;
using Dim = WindowedContraction::Dim;

int64_t step_in_dst(const WindowedContraction& c) {
  if (c.inner_rows.extent > 1) return c.inner_rows.dst;
  for (size_t a = c.axes.size(); a-- > 0;)
    if (c.axes[a].rows > 1) return c.axes[a].dst;
  return c.outer_rows.dst;
}

std::vector<ChannelsLastCopy> copies_of(const WindowedContraction& c, const ConvolutionForm& form) {
  std::vector<ChannelsLastCopy> copies;
  if (form.copies.left) copies.emplace_back(c, true);
  if (form.copies.right) copies.emplace_back(c, false);
  return copies;
}

// Names in the text: from_left, from_right, bias and dst point to the group's first element of each; places as in
// window_text.h.
class ConvolutionEmitter {
 public:
  ConvolutionEmitter(const WindowedContraction& contraction, const ConvolutionForm& form, const Language& language,
                     std::string symbol)
      : copies_(copies_of(contraction, form)),
        c_(with_copies(contraction, form.copies)),
        form_(form),
        language_(language),
        symbol_(std::move(symbol)),
        window_(c_, out_) {}

  std::string emit() {
    emit_copies();
    emit_signature(symbol_, form_.group_size(), form_.resident_groups());
    if (form_.by_element)
      emit_by_element();
    else if (is_divided())
      emit_segments();
    else if (form_.matrix_tile)
      emit_by_matrix_instructions();
    else
      emit_by_threads();
    out_.close();
    if (is_divided()) emit_joining();
    return out_.str();
  }
  const WindowedContraction& sums_of_copies() const { return c_; }

 private:
  void emit_copies() {
    for (const ChannelsLastCopy& copy : copies_) {
      emit_signature(copy.symbol(symbol_), copy.launch().group_size, ChannelsLastCopy::resident_groups());
      copy.emit(out_, copy.of_left() ? "b0 + o0" : "b1 + o1", join("scratch + scratch_offset", bytes_before(&copy)));
      out_.close();
    }
  }
  // Of scratch memory before the copy, as " + BYTES"; without one, before the partial sums.
  std::string bytes_before(const ChannelsLastCopy* copy) const {
    std::string bytes;
    for (const ChannelsLastCopy& other : copies_) {
      if (&other == copy) break;
      bytes += " + " + other.bytes_in_text();
    }
    return bytes;
  }

  void emit_by_threads() {
    ProductTileText tile(form_.tile, out_);
    emit_group(tile.place("row_count", column_count()));
    emit_sum(tile);
    tile.store([&](const std::string& sum) { emit_store_in_tile(sum); });
  }

  void emit_by_matrix_instructions() {
    MatrixTileText tile(*form_.matrix_tile, c_.left.dtype, language_, out_);
    emit_group(tile.place("row_count", column_count()));
    emit_sum(tile, {"", "term_count"});
    const auto column_of_dst = [](const std::string& column) { return join("((lm_ix)first_column + ", column, ")"); };
    tile.store({c_.dst.dtype, join(c_.columns.dst), [&] { window_.split("entry", "(lm_ix)first_row + row", true); },
                [&](const std::string& column) { return join("dst + (", place_of(column_of_dst(column)), ")"); },
                [&](const std::string& sum, const std::string& column) { return value_of(sum, column_of_dst(column)); }});
  }

  void emit_sum(MatrixTileText& tile, const TermRange& terms) { tile.sum(terms, WindowedLeft(c_), WindowedRight(c_)); }

  bool is_divided() const { return form_.segment_terms != 0; }
  DividedSums divided_sums() const {
    return {"row_count", column_count(), join(c_.groups.extent), "term_count", bytes_before(nullptr)};
  }
  void emit_segments() {
    MatrixTileText tile(*form_.matrix_tile, c_.left.dtype, language_, out_);
    const DividedSums divided = divided_sums();
    out_.line("const lm_s64 group = ", divided.emit_segment(out_, tile.place("row_count", column_count())), ";");
    emit_factors();
    emit_sum(tile, DividedSums::range());
    tile.store(divided.part());
  }
  void emit_joining() {
    emit_signature(joining_symbol(symbol_), kJoiningThreads, kJoiningResident);
    divided_sums().emit_joining(out_, [&] {
      out_.line("const lm_s64 group = product;");
      emit_results();
      window_.split("entry", "(lm_ix)first_row", true);
      emit_store("(lm_ix)first_column", "sum");
    });
    out_.close();
  }

  // A thread per element of dst. Neighbouring threads have neighbouring channels if these are closer to each other than rows.
  void emit_by_element() {
    const int64_t columns = c_.columns.extent, channels = columns * c_.groups.extent;
    out_.line("const lm_s64 item = LM_GROUP * ", form_.group_size(), " + LM_THREAD;");
    out_.open("if (item < row_count * ", channels, ")");
    const bool channels_first = are_neighbours(columns > 1 ? c_.columns.dst : c_.groups.dst, step_in_dst(c_));
    const std::string channel = channels_first ? join("item % ", channels) : "item / row_count";
    out_.line("const lm_s64 channel = ", channel, ", group = channel / ", columns, ";");
    out_.line("const lm_ix column = (lm_ix)(channel % ", columns, ");");
    emit_pointers();
    window_.split("row", channels_first ? join("(lm_ix)(item / ", channels, ")") : "(lm_ix)(item % row_count)", true);
    out_.line(c_type(sums()), " sum = 0;");
    emit_chain();
    emit_store("column", "sum");
    out_.close();
  }

  kernel::Type sums() const { return form_.tile.sums; }
  std::string column_count() const { return join("(lm_s64)", c_.columns.extent); }

  // Of the rows or the terms, without samples.
  int64_t inner_count(bool of_rows) const {
    int64_t count = (of_rows ? c_.inner_rows : c_.inner_terms).extent;
    for (const Axis& axis : c_.axes) count *= of_rows ? axis.rows : axis.terms;
    return count;
  }

  void emit_signature(const std::string& symbol, int threads, int resident) {
    std::string parameters;
    for (int t = 0; t < (c_.has_bias() ? 4 : 3); ++t) parameters += join("LM_BUFFER b", t, ", const lm_s64 o", t, ", ");
    if (is_divided() || !copies_.empty()) parameters += kScratchParameters;
    out_.open("LM_KERNEL(", threads, ", ", resident, ") ", symbol, "(", parameters,
              "const lm_s64 outer_rows, const lm_s64 outer_terms", is_divided() ? DividedSums::words() : "", ")");
    out_.line("const lm_s64 row_count = outer_rows * ", inner_count(true), ", term_count = outer_terms * ", inner_count(false),
              ";");
  }

  void emit_group(const std::string& group) {
    out_.line("const lm_s64 group = ", group, ";");
    emit_pointers();
  }

  void emit_pointers() {
    emit_factors();
    emit_results();
  }
  void emit_factors() {
    emit_pointer("from_left", c_.left.dtype, c_.groups.left, place_of_factor(true));
    emit_pointer("from_right", c_.right.dtype, c_.groups.right, place_of_factor(false));
  }
  // Of the factor or its copy.
  std::string place_of_factor(bool is_left) const {
    for (const ChannelsLastCopy& copy : copies_)
      if (copy.of_left() == is_left) return join("scratch + scratch_offset", bytes_before(&copy));
    return place_of_buffer(is_left ? 0 : 1);
  }
  void emit_results() {
    size_t number = 2;
    if (c_.has_bias()) emit_pointer("bias", c_.bias.dtype, c_.groups.bias, place_of_buffer(number++));
    emit_pointer("dst", c_.dst.dtype, c_.groups.dst, place_of_buffer(number++));
  }
  static std::string place_of_buffer(size_t number) { return join("b", number, " + o", number); }
  void emit_pointer(const char* name, DataType dtype, int64_t stride, const std::string& place) {
    const std::string type = join("LM_GLOBAL ", std::string(name) == "dst" ? "" : "const ", storage_type(dtype), "*");
    out_.line(type, " const ", name, " = (", type, ")(", place, ")", plus("group", stride), ";");
  }

  void emit_sum(ProductTileText& tile) {
    const ProductTileText::Factor of_left{left_is_along_terms(c_), [&] {
                                            window_.split("row", "(lm_ix)first_row + at", true);
                                            window_.split("term", "(lm_ix)done + c", false);
                                            return left_or_0("at < rows && c < depth");
                                          }};
    const ProductTileText::Factor of_right{right_is_along_terms(c_), [&] {
                                             window_.split("term", "(lm_ix)done + c", false);
                                             return join("at < columns && c < depth ? ", right("((lm_ix)first_column + at)"),
                                                         " : 0");
                                           }};
    tile.sum("term_count", of_left, of_right, [] {});
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
    out_.line("sum = lm_fma_", suffix_of(sums()), "(", left, ", ", right("column"), ", sum);");
    for (size_t loops = c_.axes.size() + 2; loops > 0; --loops) out_.close();
  }

  // The element of left at a row and a term, if these are inside; may write lines before.
  std::string left_or_0(std::string inside) {
    const std::string place = window_.left(inside);
    const std::string value = loaded(c_.left.dtype, sums(), join("from_left[", place, "]"));
    if (inside.starts_with(" && ")) inside = inside.substr(4);
    return inside.empty() ? value : join("(", inside, " ? ", value, " : 0)");
  }
  std::string right(const std::string& column) const {
    return loaded(c_.right.dtype, sums(), join("from_right[", window_.right(column), "]"));
  }

  void emit_store_in_tile(const std::string& sum) {
    window_.split("entry", "(lm_ix)first_row + row", true);
    emit_store("((lm_ix)first_column + column)", sum);
  }

  std::string place_of(const std::string& column) const {
    std::string place = window_.at_outer_and_inner(&Dim::dst, true) + plus(column, c_.columns.dst);
    for (size_t a = 0; a < c_.axes.size(); ++a) place += plus(join("r", a), c_.axes[a].dst);
    return at_start(place);
  }
  std::string value_of(std::string value, const std::string& column) const {
    if (c_.has_bias())
      value += " + " + loaded(c_.bias.dtype, sums(), join("bias[", at_start(plus(column, c_.columns.bias)), "]"));
    return stored(c_.dst.dtype, sums(), value);
  }
  void emit_store(const std::string& column, const std::string& sum) {
    out_.line("dst[", place_of(column), "] = ", value_of(sum, column), ";");
  }

  std::vector<ChannelsLastCopy> copies_;  // in the order of scratch memory
  WindowedContraction c_;                 // the sums
  const ConvolutionForm& form_;
  const Language& language_;
  std::string symbol_;
  Text out_;
  WindowText window_;
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

// ", src and weights are copied with their channels last".
std::string describe_copies(const kernel::LibraryStep& step, const WindowedContraction& c, const ConvolutionForm& form) {
  const FactorCopies& copies = form.copies;
  if (!copies.left && !copies.right) return "";
  const auto name = [&](const WindowedContraction::Tensor& tensor) {
    return schema_of(step.op.kind).inputs.at(tensor.port).name;
  };
  if (copies.left && copies.right)
    return join(", ", name(c.left), " and ", name(c.right), " are copied with their channels last");
  return join(", ", name(copies.left ? c.left : c.right), " is copied with its channels last");
}

LibraryProgram program(const kernel::LibraryStep& step, const DeviceLimits& limits, const Language& language) {
  const WindowedContraction contraction = kernel::windowed_contraction_of(step);
  const ConvolutionForm form = choose_form(contraction, limits, language);
  LibraryProgram made;
  made.needs_f64 = form.tile.sums == kernel::Type::f64;
  made.source = emit_convolution(contraction, form, language);
  made.args = {contraction.left.port, contraction.right.port};
  if (contraction.has_bias()) made.args.push_back(contraction.bias.port);
  made.args.push_back(contraction.dst.port);
  made.words = words_of(contraction, form);
  made.launches = launches_of(contraction, form);
  made.scratch_bytes = scratch_bytes_of(contraction, form);
  made.schedule = form.by_element ? "a thread per element" : describe(form) + describe_copies(step, contraction, form);
  made.text = join(kernel::print(contraction), ", ", made.schedule);
  return made;
}

}  // namespace

ConvolutionForm choose_form(const WindowedContraction& contraction, const DeviceLimits& limits, const Language& language) {
  const int64_t rows = contraction.row_count(), columns = contraction.columns.extent;
  ConvolutionForm form;
  form.tile =
      choose_tile(rows, columns, contraction.groups.extent, contraction.sum_type(), tuning::kElementsOfConvolution, limits);
  form.by_element = columns <= tuning::kFewColumns;
  if (!form.by_element && *language.matrix_instructions != '\0' &&
      has_matrix_instructions(contraction.left.dtype, contraction.right.dtype)) {
    const int64_t groups = contraction.groups.extent, terms = contraction.term_count();
    if (contraction.sums_samples) form.segment_terms = segment_of_gradient(rows, columns, groups, terms);
    form.matrix_tile = choose_matrix_tile(rows, columns, groups * segments_of(terms, form.segment_terms), limits);
    form.copies = copies_that_save_time(contraction, form.rows(), form.columns());
  }
  return form;
}

KernelSource emit_convolution(const WindowedContraction& contraction, const ConvolutionForm& form, const Language& language) {
  KernelSource source;
  source.symbol = join("lamina_convolution_", lamina::name_of(contraction.left.dtype));
  for (const ChannelsLastCopy& copy : copies_of(contraction, form)) source.symbols.push_back(copy.symbol(source.symbol));
  source.local_bytes.resize(source.symbols.size());
  source.symbols.push_back(source.symbol);
  if (form.segment_terms != 0) source.symbols.push_back(joining_symbol(source.symbol));
  ConvolutionEmitter emitter(contraction, form, language, source.symbol);
  const WindowedContraction& sums = emitter.sums_of_copies();
  const bool is_wide = std::max(reach(contraction), reach(sums)) > tuning::kMaxNarrowOffset;
  source.body =
      join("typedef ", is_wide ? "lm_s64" : "int", " lm_ix;\n",
           form.matrix_tile ? join("typedef ", is_wide ? "lm_u64" : "lm_u32", " lm_ux;\n") : "", "\n", emitter.emit());
  source.text = conversions_prelude(language, form.tile.sums == kernel::Type::f64);
  if (form.matrix_tile) {
    source.text += matrix_instructions_text(language, *form.matrix_tile, contraction.left.dtype, left_is_along_terms(sums),
                                            right_is_along_terms(sums));
    source.local_bytes.push_back(form.matrix_tile->local_bytes());
  }
  source.text += source.body;
  return source;
}

std::vector<Launch> launches_of(const WindowedContraction& contraction, const ConvolutionForm& form) {
  const int64_t rows = contraction.row_count(), columns = contraction.columns.extent, groups = contraction.groups.extent;
  if (form.by_element)
    return {{.groups = {parts(rows * columns * groups, form.group_size())}, .group_size = form.group_size()}};
  std::vector<Launch> launches;
  for (const ChannelsLastCopy& copy : copies_of(contraction, form)) launches.push_back(copy.launch());
  launches.push_back({.groups = {parts(columns, form.columns()), parts(rows, form.rows()), groups,
                                 segments_of(contraction.term_count(), form.segment_terms)},
                      .group_size = form.group_size()});
  if (form.segment_terms != 0) launches.push_back(joining_launch(rows * columns * groups));
  return launches;
}

std::vector<int64_t> words_of(const WindowedContraction& contraction, const ConvolutionForm& form) {
  std::vector<int64_t> words = {contraction.outer_rows.extent, contraction.outer_terms.extent};
  for (const int64_t word : divided_words(form.segment_terms, contraction.term_count())) words.push_back(word);
  return words;
}

size_t scratch_bytes_of(const WindowedContraction& contraction, const ConvolutionForm& form) {
  size_t bytes = divided_bytes(contraction.row_count() * contraction.columns.extent * contraction.groups.extent,
                               form.segment_terms, contraction.term_count());
  for (const ChannelsLastCopy& copy : copies_of(contraction, form)) bytes += static_cast<size_t>(copy.bytes());
  return bytes;
}

LibraryOp convolution_op() { return {nullptr, program}; }

}  // namespace lamina::gpu
