// CumSum and CumProd to GPU source: a thread per row. It combines elements in the order of the row, in f64 for floats, so the
// bits are the CPU's.
#include "backends/gpu/emit/c_types.h"
#include "backends/gpu/emit/library_program.h"
#include "backends/gpu/emit/row_program.h"

namespace lamina::gpu {

namespace {

std::string emit(const RowProgram& rows, DataType dtype, bool is_product, bool exclusive) {
  const bool is_float = is_floating(dtype);
  const std::string value = is_float ? "lm_f64" : "lm_u64", type = storage_type(dtype);
  const std::string stored = is_float ? to_storage(dtype, kernel::Type::f64, "value") : join("(", type, ")value");
  const std::string combine =
      join("value ", is_product ? "*" : "+", "= (", value, ")", from_storage(dtype, "p0[i * step_0]"), ";");
  Text out;
  rows.open(out);
  out.line(value, " value = ", is_product ? 1 : 0, ";");
  out.open("for (lm_s64 i = 0; i < count; ++i)");
  if (!exclusive) out.line(combine);
  out.line("p1[i * step_1] = ", stored, ";");
  if (exclusive) out.line(combine);
  out.close();
  rows.close(out);
  return out.str();
}

LibraryProgram program(const kernel::LibraryStep& step, const DeviceLimits& limits, const Language& language) {
  const DataType dtype = step.inputs[0].dtype;
  const bool reverse = step.op.attribute<bool>("reverse"), is_product = step.op.kind == OpKind::CumProd;
  RowProgram rows(join(is_product ? "lamina_cum_prod_" : "lamina_cum_sum_", lamina::name_of(dtype)), step.op, limits);
  rows.add({.type = storage_type(dtype), .tensor = &step.inputs[0], .reverse = reverse});
  rows.add({.type = storage_type(dtype), .tensor = &step.outputs[0], .output = true, .reverse = reverse});
  LibraryProgram made =
      rows.program(emit(rows, dtype, is_product, step.op.attribute<bool>("exclusive")), language, is_floating(dtype));
  made.args = {0, 1};
  return made;
}

}  // namespace

LibraryOp running_op() { return {nullptr, program}; }

}  // namespace lamina::gpu
