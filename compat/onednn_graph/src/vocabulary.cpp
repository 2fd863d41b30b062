#include "vocabulary.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <type_traits>

namespace onednn_graph {
namespace {

// ---- values that oneDNN and lamina share ----

template <typename Left, typename Right>
constexpr bool agree(Left left, Right right) {
  return static_cast<long long>(left) == static_cast<long long>(right);
}

static_assert(agree(dnnl_success, lamina_success) && agree(dnnl_out_of_memory, lamina_out_of_memory) &&
              agree(dnnl_invalid_arguments, lamina_invalid_arguments) && agree(dnnl_unimplemented, lamina_unimplemented) &&
              agree(dnnl_runtime_error, lamina_runtime_error) && agree(dnnl_not_required, lamina_not_required) &&
              agree(dnnl_invalid_graph, lamina_invalid_graph) && agree(dnnl_invalid_graph_op, lamina_invalid_graph_op) &&
              agree(dnnl_invalid_shape, lamina_invalid_shape) && agree(dnnl_invalid_data_type, lamina_invalid_data_type));
static_assert(agree(dnnl_any_engine, lamina_any_engine) && agree(dnnl_cpu, lamina_cpu) && agree(dnnl_gpu, lamina_gpu));
static_assert(agree(dnnl_fpmath_mode_strict, lamina_fpmath_mode_strict) &&
              agree(dnnl_fpmath_mode_bf16, lamina_fpmath_mode_bf16) && agree(dnnl_fpmath_mode_f16, lamina_fpmath_mode_f16) &&
              agree(dnnl_fpmath_mode_any, lamina_fpmath_mode_any));
static_assert(agree(dnnl_graph_layout_type_undef, lamina_graph_layout_type_undef) &&
              agree(dnnl_graph_layout_type_any, lamina_graph_layout_type_any) &&
              agree(dnnl_graph_layout_type_strided, lamina_graph_layout_type_strided) &&
              agree(dnnl_graph_layout_type_opaque, lamina_graph_layout_type_opaque));
static_assert(agree(dnnl_graph_tensor_property_undef, lamina_graph_tensor_property_undef) &&
              agree(dnnl_graph_tensor_property_variable, lamina_graph_tensor_property_variable) &&
              agree(dnnl_graph_tensor_property_constant, lamina_graph_tensor_property_constant) &&
              agree(kHostScalar, lamina_graph_tensor_property_host_scalar));
static_assert(agree(dnnl_graph_partition_policy_fusion, lamina_graph_partition_policy_fusion) &&
              agree(dnnl_graph_partition_policy_debug, lamina_graph_partition_policy_debug));
static_assert(agree(dnnl_data_type_undef, lamina_data_type_undef) && agree(dnnl_f16, lamina_f16) &&
              agree(dnnl_bf16, lamina_bf16) && agree(dnnl_f32, lamina_f32) && agree(dnnl_s32, lamina_s32) &&
              agree(dnnl_s8, lamina_s8) && agree(dnnl_u8, lamina_u8) && agree(dnnl_f64, lamina_f64) &&
              agree(dnnl_boolean, lamina_boolean));
static_assert(DNNL_MAX_NDIMS == LAMINA_MAX_NDIMS && DNNL_GRAPH_UNKNOWN_NDIMS == LAMINA_GRAPH_UNKNOWN_NDIMS &&
              DNNL_GRAPH_UNKNOWN_DIM == LAMINA_GRAPH_UNKNOWN_DIM);
static_assert(agree(kDumpModes, lamina_graph_dump_mode_subgraph | lamina_graph_dump_mode_graph));

// Types added after oneDNN 3.2, by value: the sizes of those that lamina lacks, and checks of those that both sides have.
struct ForeignType {
  int value, bits;
};
constexpr ForeignType kForeignTypes[] = {{13, 8}, {14, 4}, {15, 4}};  // e8m0, f4_e2m1, f4_e3m0
static_assert(agree(9, lamina_f8_e5m2) && agree(10, lamina_f8_e4m3) && agree(11, lamina_s4) && agree(12, lamina_u4) &&
              agree(16, lamina_s64));

// ---- identical struct layouts ----

using Theirs = dnnl_graph_logical_tensor_t;
using Ours = lamina_graph_logical_tensor_t;
static_assert(sizeof(Theirs) == sizeof(Ours) && alignof(Theirs) == alignof(Ours) && std::is_trivially_copyable_v<Theirs>);
static_assert(offsetof(Theirs, id) == offsetof(Ours, id) && offsetof(Theirs, ndims) == offsetof(Ours, ndims) &&
              offsetof(Theirs, dims) == offsetof(Ours, dims) && offsetof(Theirs, data_type) == offsetof(Ours, data_type) &&
              offsetof(Theirs, property) == offsetof(Ours, property) &&
              offsetof(Theirs, layout_type) == offsetof(Ours, layout_type) &&
              offsetof(Theirs, layout) == offsetof(Ours, layout) &&
              offsetof(Theirs, layout.strides) == offsetof(Ours, layout.strides) &&
              offsetof(Theirs, layout.layout_id) == offsetof(Ours, layout.layout_id));
static_assert(sizeof(dnnl_graph_inplace_pair_t) == sizeof(lamina_graph_inplace_pair_t) &&
              offsetof(dnnl_graph_inplace_pair_t, output_id) == offsetof(lamina_graph_inplace_pair_t, output_id));
static_assert(sizeof(dnnl_version_t) == 32);

// ---- names ----

template <typename Name>
struct Entry {
  int theirs;
  Name ours;
};

constexpr Entry<lamina_graph_op_kind_t> kOps[] = {
#define ONEDNN_OP(name, ours) {dnnl_graph_op_##name, lamina_graph_op_##ours},
#define ONEDNN_NEWER_OP(name, value, ours) {value, lamina_graph_op_##ours},
#include "op_kinds.def"
};

constexpr Entry<lamina_graph_op_attr_t> kAttributes[] = {
#define ONEDNN_ATTRIBUTE(name) {dnnl_graph_op_attr_##name, lamina_graph_op_attr_##name},
#define ONEDNN_NEWER_ATTRIBUTE(name, value) {value, lamina_graph_op_attr_##name},
#include "attributes.def"
};

template <typename Entries>
constexpr bool all_agree(const Entries& entries) {
  return std::all_of(std::begin(entries), std::end(entries), [](const auto& entry) { return agree(entry.theirs, entry.ours); });
}
static_assert(all_agree(kOps) && all_agree(kAttributes));
static_assert(agree(kOps[std::size(kOps) - 1].theirs, std::size(kOps) - 1), "the list of operations has a gap");

template <typename Name, size_t size>
std::optional<Name> looked_up(const Entry<Name> (&entries)[size], int number) {
  for (const Entry<Name>& entry : entries)
    if (entry.theirs == number) return entry.ours;
  return std::nullopt;
}

bool have_equal_layouts(const Theirs& left, const Theirs& right) {
  const int type = number_of(left.layout_type);
  if (type != number_of(right.layout_type)) return false;
  if (left.ndims <= 0) return true;
  if (type == dnnl_graph_layout_type_opaque) return left.layout.layout_id == right.layout.layout_id;
  return type != dnnl_graph_layout_type_strided ||
         std::equal(left.layout.strides, left.layout.strides + dims_in(left), right.layout.strides);
}

}  // namespace

dnnl_status_t status_of(lamina_status_t status) {
  return status == lamina_index_out_of_range ? dnnl_invalid_arguments : static_cast<dnnl_status_t>(status);
}

std::optional<lamina_graph_op_kind_t> lamina_kind(int kind) { return looked_up(kOps, kind); }

std::optional<lamina_graph_op_attr_t> lamina_attribute(int name) { return looked_up(kAttributes, name); }

Ours lamina_tensor(const Theirs& tensor) { return std::bit_cast<Ours>(tensor); }
Theirs onednn_tensor(const Ours& tensor) { return std::bit_cast<Theirs>(tensor); }

std::vector<Ours> lamina_tensors(const std::vector<Theirs>& tensors) {
  std::vector<Ours> result;
  for (const Theirs& tensor : tensors) result.push_back(lamina_tensor(tensor));
  return result;
}

int bits_of(int type) {
  switch (type) {
#define LAMINA_DATA_TYPE(name, value, bits, kind, npy) \
  case value: return bits;
#include <graph/data_types.def>
    default: break;
  }
  for (const ForeignType& foreign : kForeignTypes)
    if (foreign.value == type) return foreign.bits;
  return 0;
}

int32_t dims_in(const Theirs& tensor) { return std::clamp<int32_t>(tensor.ndims, 0, DNNL_MAX_NDIMS); }

bool are_equal(const Theirs& left, const Theirs& right) {
  return left.id == right.id && number_of(left.data_type) == number_of(right.data_type) &&
         number_of(left.property) == number_of(right.property) && left.ndims == right.ndims &&
         std::equal(left.dims, left.dims + dims_in(left), right.dims) && have_equal_layouts(left, right);
}

}  // namespace onednn_graph
