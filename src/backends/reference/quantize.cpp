// Conversions: TypeCast, and Quantize and Dequantize with constants or, in the dynamic ops, with tensors.
//   Quantize:    dst = saturate(round(src / scale + zp)), ties to even; to f8 a plain conversion
//   Dequantize:  dst = (src - zp) * scale
#include <cmath>
#include <limits>
#include <type_traits>

#include "backends/reference/op_run.h"
#include "interface/element.h"
#include "interface/op_schema.h"
#include "interface/status.h"

namespace lamina::reference {
namespace {

// A table of scales or zero points and the strides that read it along src.
struct Table {
  std::vector<double> values;
  Dims strides;

  double operator[](int64_t offset) const { return values.empty() ? 0 : values[static_cast<size_t>(offset)]; }
};

bool is_per_tensor(const OpRun& run) { return run.attribute<std::string>("qtype") == "per_tensor"; }

Dims along_axis(const OpRun& run, const Tensor& src) {
  Dims strides(src.shape.size(), 0);
  if (!is_per_tensor(run)) strides[static_cast<size_t>(wrap_axis(run.attribute<int64_t>("axis"), src.rank()))] = 1;
  return strides;
}

template <typename T>
Table constant_table(const OpRun& run, const Tensor& src, std::string_view attribute) {
  Table table{{}, along_axis(run, src)};
  if (run.op().has_attribute(attribute))
    for (const T value : run.attribute<std::vector<T>>(attribute)) table.values.push_back(static_cast<double>(value));
  if (table.values.size() == 1) table.strides.assign(src.shape.size(), 0);
  return table;
}

// formula(x, scale, zp). An empty table reads as 0.
template <typename Formula>
void map(const OpRun& run, const Table& scales, const Table& zps, Formula formula) {
  const Tensor& src = run.in("src");
  Tensor& dst = run.out("dst");
  for_each_offset_parallel<3>(src.shape, {dense_strides(src.shape), scales.strides, zps.strides},
                              [&](const auto& at) { dst[at[0]] = formula(src[at[0]], scales[at[1]], zps[at[2]]); });
}

double quantized(double x, double scale, double zp) { return x / scale + zp; }
double dequantized(double q, double scale, double zp) { return (q - zp) * scale; }

template <double (*Formula)(double, double, double)>
void by_constants(const OpRun& run) {
  const Tensor& src = run.in("src");
  map(run, constant_table<float>(run, src, "scales"), constant_table<int64_t>(run, src, "zps"), Formula);
}

Table tensor_table(const OpRun& run, const Tensor& src, std::string_view port) {
  const Tensor* given = run.in_or_null(port);
  if (given == nullptr) return {{}, Dims(src.shape.size(), 0)};
  if (given->size() == 1) return {given->values, Dims(src.shape.size(), 0)};
  return {given->values, along_axis(run, src)};
}

template <double (*Formula)(double, double, double)>
void by_tensors(const OpRun& run) {
  const Tensor& src = run.in("src");
  map(run, tensor_table(run, src, "scales"), tensor_table(run, src, "zps"), Formula);
}

// Each entry of `table` applies to a block of src with src extent / table extent elements along each dim.
double entry_of_group(const Tensor& table, const Tensor& src, int64_t position) {
  int64_t offset = 0, stride = 1;
  for (size_t dim = src.shape.size(); dim-- > 0;) {
    const int64_t index = position % src.shape[dim];
    position /= src.shape[dim];
    offset += index / (src.shape[dim] / table.shape[dim]) * stride;
    stride *= table.shape[dim];
  }
  return table[offset];
}

void dynamic_dequantize(const OpRun& run) {
  if (run.attribute<std::string>("qtype") != "per_group") return by_tensors<dequantized>(run);
  const Tensor& src = run.in("src");
  const Tensor& scales = run.in("scales");
  const Tensor* zps = run.in_or_null("zps");
  LAMINA_CHECK(scales.rank() == src.rank(), join(describe(run.op()), ": scales ", describe(scales.shape)));
  Tensor& dst = run.out("dst");
  parallel_elements(src.size(), [&](int64_t i) {
    dst[i] = dequantized(src[i], entry_of_group(scales, src, i), zps == nullptr ? 0 : entry_of_group(*zps, src, i));
  });
}

// Truncates towards 0 and saturates.
template <typename Integer>
Integer cut_off(double value) {
  using Limits = std::numeric_limits<Integer>;
  if (std::isnan(value)) return 0;
  if (value >= std::ldexp(1.0, Limits::digits)) return Limits::max();
  return value < static_cast<double>(Limits::min()) ? Limits::min() : static_cast<Integer>(value);
}

// A double that rounds to a narrower type as the integer would. If bits are lost, the last bit is set (round to odd).
template <typename Integer>
double real_of(Integer integer) {
  constexpr Integer kExact = Integer{1} << 53, kLost = 2047;
  if (integer <= kExact && (!std::is_signed_v<Integer> || integer >= -kExact)) return static_cast<double>(integer);
  return static_cast<double>((integer >> 11) | ((integer & kLost) != 0 ? 1 : 0)) * (kLost + 1);
}

void type_cast(const OpRun& run) {
  const Tensor& src = run.in("src");
  Tensor& dst = run.out("dst");
  prepare_integers(dst);
  if (is_integer(dst.dtype) && is_floating(src.dtype))
    return visit_integer_type(dst.dtype, [&](auto of_type) {
      parallel_elements(src.size(),
                        [&](int64_t i) { set_integer(dst, i, static_cast<uint64_t>(cut_off<decltype(of_type)>(src[i]))); });
    });
  const bool wide = is_long_integer(src.dtype), is_signed = is_signed_integer(src.dtype);
  parallel_elements(src.size(), [&](int64_t i) {
    if (dst.dtype == DataType::boolean)
      dst[i] = src[i] != 0 ? 1 : 0;
    else if (is_integer(dst.dtype))
      set_integer(dst, i, integer_at(src, i));
    else if (wide && dst.dtype != DataType::f64)
      dst[i] = is_signed ? real_of(static_cast<int64_t>(integer_at(src, i))) : real_of(integer_at(src, i));
    else
      dst[i] = src[i];
  });
}

}  // namespace

Evaluators quantize_evaluators() {
  return {{OpKind::Quantize, by_constants<quantized>},
          {OpKind::Dequantize, by_constants<dequantized>},
          {OpKind::DynamicQuantize, by_tensors<quantized>},
          {OpKind::DynamicDequantize, dynamic_dequantize},
          {OpKind::TypeCast, type_cast}};
}

}  // namespace lamina::reference
