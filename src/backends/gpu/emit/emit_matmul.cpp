#include "backends/gpu/emit/emit_matmul.h"

#include <algorithm>
#include <array>

#include "backends/gpu/emit/c_types.h"
#include "backends/gpu/emit/library_program.h"
#include "backends/gpu/emit/program_text.h"
#include "backends/gpu/emit/text.h"
#include "backends/gpu/schedule/tuning.h"
#include "interface/data_type.h"
#include "interface/status.h"

namespace lamina::gpu {

namespace {

using tuning::kMatmulDepth;

std::string loaded(DataType dtype, const std::string& raw) {
  return dtype == DataType::f32 ? raw : join("lm_f32_from_", lamina::name_of(dtype), "(", raw, ")");
}
std::string stored(DataType dtype, const std::string& value) {
  return dtype == DataType::f32 ? value : join("lm_", lamina::name_of(dtype), "_from_f32(", value, ")");
}

// The text of one program. Names in it: src, weights, bias and dst point to the tile's first element of each; x0, x1, ... are
// the positions in the batch; `left` and `right` are the tiles in local memory, [k][row] and [k][column].
class MatmulEmitter {
 public:
  MatmulEmitter(const MatmulForm& form, std::string symbol) : form_(form), symbol_(std::move(symbol)) {
    tensors_ = {{"src", form.src}, {"weights", form.weights}};
    if (form.bias != DataType::undef) tensors_.push_back({"bias", form.bias});
    tensors_.push_back({"dst", form.dst});
  }

  std::string emit() {
    emit_signature();
    emit_place();
    emit_walk();
    emit_store();
    out_.close();
    return out_.str();
  }

 private:
  struct Tensor {
    const char* name;
    DataType dtype;
  };

  void emit_signature() {
    std::string parameters;
    for (size_t t = 0; t < tensors_.size(); ++t) parameters += join("LM_BUFFER b", t, ", const lm_s64 o", t, ", ");
    parameters += "const lm_s64 m, const lm_s64 n, const lm_s64 k";
    for (size_t d = 0; d < form_.batch_rank; ++d) parameters += join(", const lm_s64 e", d);
    for (const Tensor& tensor : tensors_) {
      for (size_t d = 0; d < form_.batch_rank; ++d) parameters += join(", const lm_s64 ", tensor.name, "_", d);
      parameters += join(", const lm_s64 ", tensor.name, "_row, const lm_s64 ", tensor.name, "_column");
    }
    out_.open("LM_KERNEL(", form_.group_size(), ", ", std::max(1, tuning::kThreadsOfManyRegisters / form_.group_size()), ") ",
              symbol_, "(", parameters, ")");
  }

  // The index of a work-group counts tiles along a row of dst first, then along columns, then through the batch.
  void emit_place() {
    const int rows = form_.tile_rows(), columns = form_.tile_columns();
    out_.line("LM_SHARED lm_f32 left[", kMatmulDepth * (rows + 1), "], right[", kMatmulDepth * (columns + 1), "];");
    out_.line("const int thread = LM_THREAD, tx = thread % ", form_.side, ", ty = thread / ", form_.side, ";");
    out_.line("const lm_s64 across = (n + ", columns - 1, ") / ", columns, ", down = (m + ", rows - 1, ") / ", rows, ";");
    out_.line("const lm_s64 first_column = LM_GROUP % across * ", columns, ", first_row = LM_GROUP / across % down * ", rows,
              ";");
    std::string rest = "(LM_GROUP / across / down)";
    for (size_t d = form_.batch_rank; d-- > 1;) {
      out_.line("const lm_s64 x", d, " = ", rest, " % e", d, ", y", d, " = ", rest, " / e", d, ";");
      rest = join("y", d);
    }
    if (form_.batch_rank > 0) out_.line("const lm_s64 x0 = ", rest, ";");
    for (size_t t = 0; t < tensors_.size(); ++t) emit_pointer(t);
    out_.line("const lm_ix rows = (lm_ix)(m - first_row < ", rows, " ? m - first_row : ", rows, ");");
    out_.line("const lm_ix columns = (lm_ix)(n - first_column < ", columns, " ? n - first_column : ", columns, ");");
  }

  void emit_pointer(size_t t) {
    const std::string name = tensors_[t].name;
    std::string place;
    for (size_t d = 0; d < form_.batch_rank; ++d) place += join(" + x", d, " * ", name, "_", d);
    if (name != "weights") place += join(" + first_row * ", name, "_row");
    if (name != "src") place += join(" + first_column * ", name, "_column");
    const std::string type = join("LM_GLOBAL ", name == "dst" ? "" : "const ", storage_type(tensors_[t].dtype), "*");
    out_.line(type, name == "src" || name == "weights" ? " " : " const ", name, " = (", type, ")(b", t, " + o", t, ")", place,
              ";");
  }

  void emit_walk() {
    const int rows = form_.per_thread_rows, columns = form_.per_thread_columns;
    out_.line("lm_f32 sum[", rows * columns, "];");
    out_.line("LM_UNROLL for (int i = 0; i < ", rows * columns, "; ++i) sum[i] = 0.0f;");
    out_.open("for (lm_s64 done = 0; done < k; done += ", kMatmulDepth, ")");
    out_.line("const lm_ix depth = (lm_ix)(k - done < ", kMatmulDepth, " ? k - done : ", kMatmulDepth, ");");
    emit_load("left", form_.tile_rows(), "rows", form_.src_along_k, "src", form_.src, "_row", "_column");
    emit_load("right", form_.tile_columns(), "columns", !form_.weights_along_columns, "weights", form_.weights, "_column",
              "_row");
    out_.line("LM_BARRIER;");
    emit_products();
    out_.line("LM_BARRIER;");
    out_.line("src += ", kMatmulDepth, " * src_column;");
    out_.line("weights += ", kMatmulDepth, " * weights_row;");
    out_.close();
  }

  // Copies a tile to local memory. Elements outside the matrix are 0.
  void emit_load(const char* tile, int extent, const char* inside, bool along_k, const char* tensor, DataType dtype,
                 const char* stride, const char* stride_of_k) {
    out_.open("LM_UNROLL for (int i = 0; i < ", extent * kMatmulDepth / form_.group_size(), "; ++i)");
    out_.line("const int item = i * ", form_.group_size(), " + thread;");
    const int fast = along_k ? kMatmulDepth : extent;
    const std::string first = join("item % ", fast), second = join("item / ", fast);
    out_.line("const lm_ix at = ", along_k ? second : first, ", c = ", along_k ? first : second, ";");
    const std::string raw = join(tensor, "[at * (lm_ix)", tensor, stride, " + c * (lm_ix)", tensor, stride_of_k, "]");
    out_.line(tile, "[c * ", extent + 1, " + at] = at < ", inside, " && c < depth ? ", loaded(dtype, raw), " : 0.0f;");
    out_.close();
  }

  void emit_products() {
    const int rows = form_.per_thread_rows, columns = form_.per_thread_columns;
    out_.open("LM_UNROLL for (int c = 0; c < ", kMatmulDepth, "; ++c)");
    out_.line("lm_f32 l[", rows, "], r[", columns, "];");
    out_.line("LM_UNROLL for (int i = 0; i < ", rows, "; ++i) l[i] = left[c * ", form_.tile_rows() + 1, " + i * ", form_.side,
              " + ty];");
    out_.line("LM_UNROLL for (int j = 0; j < ", columns, "; ++j) r[j] = right[c * ", form_.tile_columns() + 1, " + j * ",
              form_.side, " + tx];");
    out_.open("LM_UNROLL for (int i = 0; i < ", rows, "; ++i)");
    out_.line("LM_UNROLL for (int j = 0; j < ", columns, "; ++j) sum[i * ", columns, " + j] = lm_fma_f32(l[i], r[j], sum[i * ",
              columns, " + j]);");
    out_.close();
    out_.close();
  }

  void emit_store() {
    const int rows = form_.per_thread_rows, columns = form_.per_thread_columns;
    out_.open("LM_UNROLL for (int i = 0; i < ", rows, "; ++i)");
    out_.open("LM_UNROLL for (int j = 0; j < ", columns, "; ++j)");
    out_.line("const lm_ix row = i * ", form_.side, " + ty, column = j * ", form_.side, " + tx;");
    out_.open("if (row < rows && column < columns)");
    std::string value = join("sum[i * ", columns, " + j]");
    if (form_.bias != DataType::undef)
      value += " + " + loaded(form_.bias, "bias[row * (lm_ix)bias_row + column * (lm_ix)bias_column]");
    out_.line("dst[row * (lm_ix)dst_row + column * (lm_ix)dst_column] = ", stored(form_.dst, value), ";");
    out_.close();
    out_.close();
    out_.close();
  }

  const MatmulForm& form_;
  std::string symbol_;
  std::vector<Tensor> tensors_;
  Text out_;
};

// Chooses neighbouring threads along the dense axis, so that they share memory transactions. The stride of an axis with one
// entry is ignored.
bool is_along_first(int64_t first_extent, int64_t first_stride, int64_t second_extent, int64_t second_stride) {
  if (first_extent > 1 && first_stride == 1) return true;
  return !(second_extent > 1 && second_stride == 1);
}

}  // namespace

MatmulForm choose_form(const kernel::MatmulStack& stack, const DeviceLimits& limits) {
  MatmulForm form{.src = stack.src.dtype, .weights = stack.weights.dtype, .dst = stack.dst.dtype};
  if (stack.has_bias) form.bias = stack.bias.dtype;
  form.batch_rank = stack.batch.size();
  form.src_along_k = is_along_first(stack.k, stack.src.column_stride, stack.m, stack.src.row_stride);
  form.weights_along_columns = is_along_first(stack.n, stack.weights.column_stride, stack.k, stack.weights.row_stride);
  while (form.side > 1 && form.group_size() > limits.max_group) form.side /= 2;
  if (stack.m <= form.side) form.per_thread_rows = 1;
  if (stack.n <= form.side) form.per_thread_columns = 1;
  const int64_t reach = std::max({form.tile_rows(), form.tile_columns(), kMatmulDepth});
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
  source.body =
      join("typedef ", form.wide_offsets ? "lm_s64" : "int", " lm_ix;\n\n", MatmulEmitter(form, source.symbol).emit());
  source.text = conversions_prelude(language) + source.body;
  return source;
}

std::vector<int64_t> words_of(const kernel::MatmulStack& stack) {
  std::vector<int64_t> words = {stack.m, stack.n, stack.k};
  words.insert(words.end(), stack.batch.begin(), stack.batch.end());
  for (const kernel::MatrixStack* tensor : {&stack.src, &stack.weights, &stack.bias, &stack.dst}) {
    if (tensor == &stack.bias && !stack.has_bias) continue;
    words.insert(words.end(), tensor->batch_strides.begin(), tensor->batch_strides.end());
    words.push_back(tensor->row_stride);
    words.push_back(tensor->column_stride);
  }
  return words;
}

namespace {

std::string why_unsupported(const Graph& graph, const Op& op) {
  return graph.tensor(op.inputs[0]).dtype == DataType::f64
             ? "the gpu backend multiplies no matrices of f64; the cpu backend does"
             : "";
}

LibraryProgram program(const kernel::LibraryStep& step, const DeviceLimits& limits, const Language& language) {
  const kernel::MatmulStack stack = kernel::collapsed(kernel::matmul_stack(step));
  const MatmulForm form = choose_form(stack, limits);
  LibraryProgram made;
  made.source = emit_matmul(form, language);
  made.args = {0, 1};
  if (stack.has_bias) made.args.push_back(2);
  made.args.push_back(step.args.size() - 1);
  made.words = words_of(stack);
  made.groups = {(stack.n + form.tile_columns() - 1) / form.tile_columns(), (stack.m + form.tile_rows() - 1) / form.tile_rows(),
                 stack.products()};
  made.group_size = form.group_size();
  made.schedule = join("tiles of ", form.tile_rows(), " x ", form.tile_columns());
  made.text = join(stack.products(), " products of [", stack.m, ", ", stack.k, "] and [", stack.k, ", ", stack.n,
                   "], work-groups make tiles of ", form.tile_rows(), " x ", form.tile_columns());
  return made;
}

}  // namespace

LibraryOp matmul_op() { return {why_unsupported, program}; }

}  // namespace lamina::gpu
