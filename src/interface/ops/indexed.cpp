// Gather and its gradient, ScatterAdd.
#include "interface/indices.h"
#include "interface/ops/parts.h"

namespace lamina {

using namespace parts;

namespace {

// Legal indices of an axis of this extent, counted from 0.
std::optional<Domain> inside(int64_t extent) {
  if (extent <= 0) return std::nullopt;
  return needs(0, static_cast<double>(extent - 1));
}

std::optional<Domain> inside_src(const OpView& view, const LogicalTensor&) {
  const Dims* src = known_shape(view, "src");
  return src == nullptr ? std::nullopt : inside((*src)[static_cast<size_t>(gathered_axis(view).axis)]);
}

std::optional<Domain> inside_dst(const OpView& view, const LogicalTensor&) { return inside(view.attribute<int64_t>("extent")); }

PortSpec indices(DomainRule rule, std::string meaning) {
  PortSpec spec = port("indices", "I", std::move(meaning));
  spec.domain = std::move(rule);
  return spec;
}

std::vector<DataType> types_of_whole_bytes() {
  std::vector<DataType> types = all_types();
  std::erase_if(types, [](DataType dtype) { return bits_of(dtype) < 8; });
  return types;
}

std::string not_below_zero(const Attribute& value) { return std::get<int64_t>(value) >= 0 ? "" : "0 or more"; }

// `outer` with its axes [first, first + count) replaced by `inner`.
Dims replaced(const Dims& outer, size_t first, size_t count, const Dims& inner) {
  Dims shape(outer.begin(), outer.begin() + static_cast<int64_t>(first));
  shape.insert(shape.end(), inner.begin(), inner.end());
  shape.insert(shape.end(), outer.begin() + static_cast<int64_t>(first + count), outer.end());
  return shape;
}

ShapeMap gather_shapes(const OpView& view) {
  const Dims dst = replaced(view.shape("src"), gathered_axis(view).axis, 1, view.shape("indices"));
  if (dst.size() > static_cast<size_t>(kMaxRank))
    view.fail_shape(join("dst has rank ", dst.size(), ", allowed is at most ", kMaxRank));
  return {{"dst", dst}};
}

ShapeMap scatter_add_shapes(const OpView& view) {
  const Dims &src = view.shape("src"), &indices = view.shape("indices");
  const size_t axis = scattered_axis(view).axis;
  const Dims expected = replaced(src, axis, indices.size(), indices);
  if (!dims_agree(expected, src))
    view.fail_shape(join("input src has shape ", describe(src), ", allowed is ", describe(expected),
                         ", which has the shape of indices from axis ", axis, " on"));
  return {{"dst", replaced(src, axis, indices.size(), {view.attribute<int64_t>("extent")})}};
}

}  // namespace
}  // namespace lamina

LAMINA_SCHEMA(Gather) {
  return {.kind = OpKind::Gather,
          .op_class = OpClass::layout,
          .nest = LoopNest::gathered,
          .formula = "dst[.., i.., ..] = src[.., indices[i..], ..]: the axis is replaced by the axes of indices",
          .source = "ONNX Gather-13",
          .inputs = {port("src", "T", "rank 1 or more"),
                     indices({"0 to the last entry of src along axis", inside_src},
                             "any shape; from -n to n - 1 for n entries of src along axis, negative counts from the end; "
                             "the execution reports an error for any other index")},
          .outputs = {port("dst", "T", "shape of src, axis replaced by the shape of indices")},
          .attributes = {parts::axis(0)},
          .types = {{"T", types_of_whole_bytes()}, {"I", {DataType::s32, DataType::s64}}},
          .check =
              [](const OpView& view) {
                if (const Dims* src = known_shape(view, "src")) normalized_axis(view, "axis", static_cast<int>(src->size()));
              },
          .infer_shapes = gather_shapes,
          .traits = {.copies = true},
          .example = {.inputs = {{4, 3}, {2}}}};
}

LAMINA_SCHEMA(ScatterAdd) {
  return {
      .kind = OpKind::ScatterAdd,
      .op_class = OpClass::inner_reduction,
      .nest = LoopNest::scattered,
      .formula =
          "dst[.., n, ..] = sum of src[.., i.., ..] where indices[i..] is n, in the order of i: the gradient of Gather's src",
      .source = "ONNX ScatterElements-18 with reduction add, applied to zeros",
      .inputs = {port("src", "T", "shape of dst, axis replaced by the shape of indices"),
                 indices({"0 to extent - 1", inside_dst},
                         "any shape; from -extent to extent - 1, negative counts from the end, or ignore_index; the "
                         "execution reports an error for any other index")},
      .outputs = {port("dst", "T",
                       "shape of src, the axes of indices replaced by one of extent; 0 where an entry has no index")},
      .attributes = {parts::axis(0),
                     {.name = "extent",
                      .type = AttributeType::s64,
                      .required = true,
                      .check = not_below_zero,
                      .meaning = "entries of dst along axis"},
                     {.name = "ignore_index",
                      .type = AttributeType::s64,
                      .meaning = "entries with this index are skipped; absent: no entry is skipped"}},
      .types = {{"T", floats_and_f64()}, {"I", {DataType::s32, DataType::s64}}},
      .check =
          [](const OpView& view) {
            if (known_shape(view, "src") != nullptr && known_shape(view, "indices") != nullptr) scattered_axis(view);
          },
      .infer_shapes = scatter_add_shapes,
      .error = 1e-6,
      .example = {.inputs = {{2, 3}, {2}}, .attributes = {{"extent", int64_t{4}}}}};
}
