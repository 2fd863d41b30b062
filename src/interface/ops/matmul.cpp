#include <algorithm>
#include <cmath>

#include "interface/ops/parts.h"

namespace lamina {

using namespace parts;

namespace {

// One side as a matrix: leading batch dims, then rows and columns. A side of rank 1 is a row (src) or a column (weights).
struct Matrix {
  Dims batch;
  int64_t rows = 1;
  int64_t columns = 1;
  bool vector = false;
};

Matrix matrix_of(const OpView& view, std::string_view input, bool is_src, bool transpose) {
  const Dims& shape = view.shape(input);
  if (shape.empty()) view.fail_shape(join("input ", input, " has shape [], allowed is rank 1 or more"));
  if (shape.size() == 1) return is_src ? Matrix{{}, 1, shape[0], true} : Matrix{{}, shape[0], 1, true};
  Matrix matrix{{shape.begin(), shape.end() - 2}, shape[shape.size() - 2], shape.back(), false};
  if (transpose) std::swap(matrix.rows, matrix.columns);
  return matrix;
}

ShapeMap matmul_shapes(const OpView& view) {
  const Matrix src = matrix_of(view, "src", true, view.attribute<bool>("transpose_a"));
  const Matrix weights = matrix_of(view, "weights", false, view.attribute<bool>("transpose_b"));
  if (!dims_agree(src.columns, weights.rows))
    view.fail_shape(join("src ", describe(view.shape("src")), " has ", src.columns, " columns and weights ",
                         describe(view.shape("weights")), " ", weights.rows,
                         " rows after the transposes, allowed is equal numbers"));
  Dims dst = broadcast_shapes(view, src.batch, weights.batch);
  if (!src.vector) dst.push_back(src.rows);
  if (!weights.vector) dst.push_back(weights.columns);
  const Dims* bias = known_shape(view, "bias");
  if (bias != nullptr && !broadcasts_to(*bias, dst))
    view.fail_shape(join("input bias has shape ", describe(*bias), ", allowed is one that broadcasts to ", describe(dst)));
  return {{"dst", dst}};
}

// f16 overflows at 65504: the weights of a layer shrink with the root of the sum's length, so that later layers stay in
// range.
std::optional<Domain> weights_in_range(const OpView& view, const LogicalTensor& weights) {
  if (weights.dtype != DataType::f16 || weights.rank() != 2) return std::nullopt;
  const int64_t length = (*weights.shape)[view.attribute<bool>("transpose_b") ? 1 : 0];
  const double bound = std::sqrt(3 / static_cast<double>(std::max<int64_t>(length, 3)));
  return suits(-bound, bound);
}

}  // namespace
}  // namespace lamina

LAMINA_SCHEMA(MatMul) {
  return {.kind = OpKind::MatMul,
          .op_class = OpClass::library,
          .formula = "dst = src x weights + bias, batched, NumPy rank rules",
          .inputs = {port("src", "T", "[..., M, K]"),
                     within({"-1 to 1, in f16 less for long sums", weights_in_range}, port("weights", "T", "[..., K, N]")),
                     optional_port("bias", "T", "broadcasts to dst")},
          .outputs = {port("dst", "T1", "[..., M, N]")},
          .attributes = {flag("transpose_a", false, "true: the last two axes of src are swapped"),
                         flag("transpose_b", false, "true: the last two axes of weights are swapped"),
                         choice("accumulation_mode", "strict", {"strict", "relaxed", "any", "f32", "s32", "f16"},
                                "type of partial sums")},
          .types = {{"T", floats_and_f64()}, {"T1", floats_and_f64()}},
          .check_types = all_of({f64_stays_alone({"T", "T1"}), equal_or_f32("T1", "T")}),
          .type_rule_text = "dst has the type of src, or f32; f64 with f64 only",
          .infer_shapes = matmul_shapes,
          .traits = {.contracts = true},
          .example = {.inputs = {{2, 3}, {3, 4}}}};
}

namespace lamina {

namespace {

ShapeMap grouped_matmul_shapes(const OpView& view) {
  const Dims &src = view.shape("src"), &weights = view.shape("weights"), &offsets = view.shape("offsets");
  const auto require_rank = [&view](const char* name, const Dims& shape, size_t least, size_t most) {
    if (shape.size() >= least && shape.size() <= most) return;
    view.fail_shape(join("input ", name, " has shape ", describe(shape), ", allowed is rank ", least,
                         most > least ? join(" or ", most) : std::string()));
  };
  require_rank("src", src, 2, 2);
  require_rank("weights", weights, 2, 3);
  require_rank("offsets", offsets, 1, 1);
  const bool transposes_src = view.attribute<bool>("transpose_a"), transposes = view.attribute<bool>("transpose_b");
  const int64_t m = src[transposes_src ? 1 : 0], of_src = src[transposes_src ? 0 : 1];
  const int64_t k = weights[weights.size() - (transposes ? 1 : 2)], n = weights[weights.size() - (transposes ? 2 : 1)];
  if (!dims_agree(of_src, k))
    view.fail_shape(join("src ", describe(src), " has ", of_src, transposes_src ? " rows" : " columns",
                         " and the matrices of weights ", describe(weights), " have ", k, transposes ? " columns" : " rows",
                         ", allowed is equal numbers"));
  if (weights.size() == 2) return {{"dst", {offsets[0], m, n}}};
  if (!dims_agree(offsets[0], weights[0]))
    view.fail_shape(
        join("offsets has ", offsets[0], " entries and weights ", weights[0], " matrices, allowed is equal numbers"));
  return {{"dst", {m, n}}};
}

// Groups are of rows or, if there is one matrix of weights, of the columns of src.
std::optional<Domain> up_to_grouped(const OpView& view, const LogicalTensor&) {
  const Dims *src = known_shape(view, "src"), *weights = known_shape(view, "weights");
  if (src == nullptr || weights == nullptr || src->size() != 2) return std::nullopt;
  const int64_t extent = (*src)[(weights->size() == 2) != view.attribute<bool>("transpose_a") ? 1 : 0];
  if (extent == kUnknownDim) return std::nullopt;
  return needs(0, static_cast<double>(extent));
}

}  // namespace
}  // namespace lamina

LAMINA_SCHEMA(GroupedMatMul) {
  return {
      .kind = OpKind::GroupedMatMul,
      .op_class = OpClass::library,
      .formula =
          "dst[i, :] = src[i, :] x weights[g] for the first group g with i < offsets[g]; 0 for the rows after the last group. "
          "With one matrix of weights: dst[g] = src[:, i..j] x weights[i..j, :] where i..j are the columns of group g",
      .source = "torch.nn.functional.grouped_mm; the matrices of a mixture of experts and their gradients",
      .inputs = {port("src", "T", "[M, K]"), within(suits(-1, 1), port("weights", "T", "[G, K, N], or [K, N]")),
                 within({"0 to the extent that is grouped", up_to_grouped},
                        port("offsets", "I",
                             "[G], ascending: where each group of rows (of columns, with one matrix of weights) ends, 0 to M "
                             "(K); the execution reports an error for any other value. A group that ends before an earlier "
                             "one is empty"))},
      .outputs = {port("dst", "T1", "[M, N], or [G, M, N] with one matrix of weights")},
      .attributes = {flag("transpose_a", false, "true: src is [K, M]"),
                     flag("transpose_b", false, "true: the matrices of weights are [N, K]")},
      .types = {{"T", floats_and_f64()}, {"T1", floats_and_f64()}, {"I", {DataType::s32, DataType::s64}}},
      .check_types = all_of({f64_stays_alone({"T", "T1"}), equal_or_f32("T1", "T")}),
      .type_rule_text = "dst has the type of src, or f32; f64 with f64 only",
      .infer_shapes = grouped_matmul_shapes,
      .traits = {.contracts = true},
      .example = {.inputs = {{4, 3}, {2, 3, 5}, {2}}}};
}
