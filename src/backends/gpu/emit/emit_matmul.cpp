#include "backends/gpu/emit/emit_matmul.h"

#include <algorithm>
#include <array>

#include "backends/gpu/emit/c_types.h"
#include "backends/gpu/emit/divided_sums.h"
#include "backends/gpu/emit/library_program.h"
#include "backends/gpu/emit/matrix_tile_text.h"
#include "backends/gpu/emit/program_text.h"
#include "backends/gpu/emit/text.h"
#include "backends/gpu/schedule/product_segments.h"
#include "backends/gpu/schedule/tuning.h"
#include "interface/data_type.h"
#include "interface/status.h"

namespace lamina::gpu {

namespace {

// The text of one program. Names in it: src, weights, bias and dst point to the tile's first element of each; x0, x1, ... are
// the positions in the batch.
class MatmulEmitter {
 public:
  MatmulEmitter(const MatmulForm& form, const Language& language, std::string symbol)
      : form_(form), language_(language), symbol_(std::move(symbol)), tile_(form.tile, out_) {
    tensors_ = {{"src", form.src}, {"weights", form.weights}};
    if (form.bias != DataType::undef) tensors_.push_back({"bias", form.bias});
    tensors_.push_back({"dst", form.dst});
  }

  std::string emit() {
    emit_signature(symbol_, form_.group_size(), form_.resident_groups());
    if (is_divided())
      emit_segments();
    else if (form_.matrix_tile)
      emit_by_matrix_instructions();
    else
      emit_by_threads();
    out_.close();
    if (is_divided()) emit_joining();
    return out_.str();
  }

 private:
  static constexpr size_t kFactors = 2;  // the first tensors
  struct Tensor {
    const char* name;
    DataType dtype;
  };

  bool is_divided() const { return form_.segment_terms != 0; }

  void emit_signature(const std::string& symbol, int threads, int resident) {
    std::string parameters;
    for (size_t t = 0; t < tensors_.size(); ++t) parameters += join("LM_BUFFER b", t, ", const lm_s64 o", t, ", ");
    if (is_divided()) parameters += kScratchParameters;
    parameters += "const lm_s64 m, const lm_s64 n, const lm_s64 k";
    for (size_t d = 0; d < form_.batch_rank; ++d) parameters += join(", const lm_s64 e", d);
    for (const Tensor& tensor : tensors_) {
      for (size_t d = 0; d < form_.batch_rank; ++d) parameters += join(", const lm_s64 ", tensor.name, "_", d);
      parameters += join(", const lm_s64 ", tensor.name, "_row, const lm_s64 ", tensor.name, "_column");
    }
    if (is_divided()) parameters += DividedSums::words();
    out_.open("LM_KERNEL(", threads, ", ", resident, ") ", symbol, "(", parameters, ")");
  }

  void emit_by_threads() {
    emit_pointers(tile_.place("m", "n"), 0, tensors_.size());
    emit_walk();
    tile_.store([&](const std::string& sum) { emit_store(sum); });
  }

  void emit_by_matrix_instructions() {
    MatrixTileText tile(*form_.matrix_tile, form_.src, language_, out_);
    emit_pointers(tile.place("m", "n"), 0, tensors_.size());
    emit_sum(tile, {"", "k"});
    tile.store(
        {form_.dst, "dst_column", [] {},
         [](const std::string& column) { return join("dst + (row * (lm_ix)dst_row + ", column, " * (lm_ix)dst_column)"); },
         [&](const std::string& sum, const std::string& column) { return value_of(sum, column); }});
  }

  void emit_sum(MatrixTileText& tile, const TermRange& terms) {
    tile.sum(terms, StridedFactor("src", "src_row", "src_column", form_.src_along_k),
             StridedFactor("weights", "weights_column", "weights_row", !form_.weights_along_columns));
  }

  DividedSums divided_sums() const {
    std::string products = "1";
    for (size_t d = 0; d < form_.batch_rank; ++d) products += join(" * e", d);
    return {"m", "n", products, "k"};
  }
  void emit_segments() {
    MatrixTileText tile(*form_.matrix_tile, form_.src, language_, out_);
    const DividedSums divided = divided_sums();
    emit_pointers(divided.emit_segment(out_, tile.place("m", "n")), 0, kFactors);
    emit_sum(tile, DividedSums::range());
    tile.store(divided.part());
  }
  void emit_joining() {
    emit_signature(joining_symbol(symbol_), kJoiningThreads, kJoiningResident);
    divided_sums().emit_joining(out_, [&] {
      out_.line("const lm_ix row = 0, column = 0;");
      emit_pointers("product", kFactors, tensors_.size());
      emit_store("sum");
    });
    out_.close();
  }

  // Of tensors [first, last). `rest`: the text of the position in the batch, as one number.
  void emit_pointers(std::string rest, size_t first, size_t last) {
    for (size_t d = form_.batch_rank; d-- > 1;) {
      out_.line("const lm_s64 x", d, " = ", rest, " % e", d, ", y", d, " = ", rest, " / e", d, ";");
      rest = join("y", d);
    }
    if (form_.batch_rank > 0) out_.line("const lm_s64 x0 = ", rest, ";");
    for (size_t t = first; t < last; ++t) emit_pointer(t);
  }

  void emit_pointer(size_t t) {
    const std::string name = tensors_[t].name;
    std::string place;
    for (size_t d = 0; d < form_.batch_rank; ++d) place += join(" + x", d, " * ", name, "_", d);
    if (name != "weights") place += join(" + first_row * ", name, "_row");
    if (name != "src") place += join(" + first_column * ", name, "_column");
    if (is_divided() && t < kFactors) place += join(" + first_term * ", name, name == "src" ? "_column" : "_row");
    const std::string type = join("LM_GLOBAL ", name == "dst" ? "" : "const ", storage_type(tensors_[t].dtype), "*");
    out_.line(type, name == "src" || name == "weights" ? " " : " const ", name, " = (", type, ")(b", t, " + o", t, ")", place,
              ";");
  }

  void emit_walk() {
    const auto element = [&](const char* inside, const char* tensor, DataType dtype, const char* stride,
                             const char* stride_of_k) {
      const std::string raw = join(tensor, "[at * (lm_ix)", tensor, stride, " + c * (lm_ix)", tensor, stride_of_k, "]");
      return join("at < ", inside, " && c < depth ? ", loaded(dtype, form_.tile.sums, raw), " : 0");
    };
    const ProductTileText::Factor src{form_.src_along_k, [&] { return element("rows", "src", form_.src, "_row", "_column"); }};
    const ProductTileText::Factor weights{!form_.weights_along_columns,
                                          [&] { return element("columns", "weights", form_.weights, "_column", "_row"); }};
    tile_.sum("k", src, weights, [&] {
      out_.line("src += ", form_.tile.depth, " * src_column;");
      out_.line("weights += ", form_.tile.depth, " * weights_row;");
    });
  }

  std::string value_of(std::string value, const std::string& column) const {
    if (form_.bias != DataType::undef)
      value +=
          " + " + loaded(form_.bias, form_.tile.sums, join("bias[row * (lm_ix)bias_row + ", column, " * (lm_ix)bias_column]"));
    return stored(form_.dst, form_.tile.sums, value);
  }
  void emit_store(const std::string& sum) {
    out_.line("dst[row * (lm_ix)dst_row + column * (lm_ix)dst_column] = ", value_of(sum, "column"), ";");
  }

  const MatmulForm& form_;
  const Language& language_;
  std::string symbol_;
  std::vector<Tensor> tensors_;
  Text out_;
  ProductTileText tile_;
};

// Chooses neighbouring threads along the dense axis, so that they share memory transactions. The stride of an axis with one
// entry is ignored.
bool is_along_first(int64_t first_extent, int64_t first_stride, int64_t second_extent, int64_t second_stride) {
  if (first_extent > 1 && first_stride == 1) return true;
  return !(second_extent > 1 && second_stride == 1);
}

}  // namespace

MatmulForm choose_form(const kernel::MatmulStack& stack, const DeviceLimits& limits, const Language& language) {
  MatmulForm form;
  form.src = stack.src.dtype, form.weights = stack.weights.dtype, form.dst = stack.dst.dtype;
  if (stack.has_bias) form.bias = stack.bias.dtype;
  form.batch_rank = stack.batch.size();
  form.src_along_k = is_along_first(stack.k, stack.src.column_stride, stack.m, stack.src.row_stride);
  form.weights_along_columns = is_along_first(stack.n, stack.weights.column_stride, stack.k, stack.weights.row_stride);
  const bool is_wide = stack.src.dtype == DataType::f64 || stack.weights.dtype == DataType::f64;
  form.tile = choose_tile(stack.m, stack.n, stack.products(), is_wide ? kernel::Type::f64 : kernel::Type::f32,
                          tuning::kElementsOfMatmul, limits);
  if (*language.matrix_instructions != '\0' && has_matrix_instructions(stack.src.dtype, stack.weights.dtype)) {
    form.segment_terms = segment_of_matrix(stack.n, stack.k);
    form.matrix_tile =
        choose_matrix_tile(stack.m, stack.n, stack.products() * segments_of(stack.k, form.segment_terms), limits);
  }
  const int64_t reach = std::max({form.rows(), form.columns(), form.matrix_tile ? form.matrix_tile->depth : form.tile.depth});
  int64_t longest = 1;
  for (const kernel::MatrixStack* tensor : {&stack.src, &stack.weights, &stack.bias, &stack.dst})
    longest = std::max({longest, tensor->row_stride, tensor->column_stride});
  form.wide_offsets = longest > tuning::kMaxNarrowOffset / (2 * reach);
  return form;
}

KernelSource emit_matmul(const MatmulForm& form, const Language& language) {
  KernelSource source;
  source.symbol = join("lamina_matmul_", lamina::name_of(form.src));
  source.symbols = {source.symbol};
  if (form.segment_terms != 0) source.symbols.push_back(joining_symbol(source.symbol));
  source.body = join("typedef ", form.wide_offsets ? "lm_s64" : "int", " lm_ix;\n\n",
                     MatmulEmitter(form, language, source.symbol).emit());
  source.text = conversions_prelude(language, form.tile.sums == kernel::Type::f64);
  if (form.matrix_tile) {
    source.text +=
        matrix_instructions_text(language, *form.matrix_tile, form.src, form.src_along_k, !form.weights_along_columns);
    source.local_bytes = {form.matrix_tile->local_bytes()};
  }
  source.text += source.body;
  return source;
}

std::vector<int64_t> words_of(const kernel::MatmulStack& stack, const MatmulForm& form) {
  std::vector<int64_t> words = {stack.m, stack.n, stack.k};
  words.insert(words.end(), stack.batch.begin(), stack.batch.end());
  for (const kernel::MatrixStack* tensor : {&stack.src, &stack.weights, &stack.bias, &stack.dst}) {
    if (tensor == &stack.bias && !stack.has_bias) continue;
    words.insert(words.end(), tensor->batch_strides.begin(), tensor->batch_strides.end());
    words.push_back(tensor->row_stride);
    words.push_back(tensor->column_stride);
  }
  for (const int64_t word : divided_words(form.segment_terms, stack.k)) words.push_back(word);
  return words;
}

std::vector<Launch> launches_of(const kernel::MatmulStack& stack, const MatmulForm& form) {
  const auto tiles = [](int64_t extent, int64_t tile) { return (extent + tile - 1) / tile; };
  std::vector<Launch> launches = {{.groups = {tiles(stack.n, form.columns()), tiles(stack.m, form.rows()), stack.products(),
                                              segments_of(stack.k, form.segment_terms)},
                                   .group_size = form.group_size()}};
  if (form.segment_terms != 0) launches.push_back(joining_launch(stack.m * stack.n * stack.products()));
  return launches;
}

size_t scratch_bytes_of(const kernel::MatmulStack& stack, const MatmulForm& form) {
  return divided_bytes(stack.m * stack.n * stack.products(), form.segment_terms, stack.k);
}

namespace {

LibraryProgram program(const kernel::LibraryStep& step, const DeviceLimits& limits, const Language& language) {
  const kernel::MatmulStack stack = kernel::collapsed(kernel::matmul_stack(step));
  const MatmulForm form = choose_form(stack, limits, language);
  LibraryProgram made;
  made.source = emit_matmul(form, language);
  made.args = {0, 1};
  if (stack.has_bias) made.args.push_back(2);
  made.args.push_back(step.args.size() - 1);
  made.words = words_of(stack, form);
  made.launches = launches_of(stack, form);
  made.scratch_bytes = scratch_bytes_of(stack, form);
  made.needs_f64 = form.tile.sums == kernel::Type::f64;
  made.schedule = describe(form);
  made.text = join(stack.products(), " products of [", stack.m, ", ", stack.k, "] and [", stack.k, ", ", stack.n,
                   "], work-groups make ", made.schedule);
  return made;
}

}  // namespace

LibraryOp matmul_op() { return {nullptr, program}; }

}  // namespace lamina::gpu
