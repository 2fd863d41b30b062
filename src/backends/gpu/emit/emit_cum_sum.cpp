// CumSum to GPU source: a thread per row. It adds in the order of the row, in f64 for floats, so the bits are the CPU's.
#include "backends/gpu/emit/c_types.h"
#include "backends/gpu/emit/library_program.h"
#include "backends/gpu/emit/row_program.h"

namespace lamina::gpu {

namespace {

std::string emit(const RowProgram& rows, DataType dtype, bool exclusive) {
  const bool is_sum_of_floats = is_floating(dtype);
  const std::string sum = is_sum_of_floats ? "lm_f64" : "lm_u64", type = storage_type(dtype);
  const std::string stored = is_sum_of_floats ? to_storage(dtype, kernel::Type::f64, "sum") : join("(", type, ")sum");
  const std::string add = join("sum += (", sum, ")", from_storage(dtype, "p0[i * step_0]"), ";");
  Text out;
  rows.open(out);
  out.line(sum, " sum = 0;");
  out.open("for (lm_s64 i = 0; i < count; ++i)");
  if (!exclusive) out.line(add);
  out.line("p1[i * step_1] = ", stored, ";");
  if (exclusive) out.line(add);
  out.close();
  rows.close(out);
  return out.str();
}

LibraryProgram program(const kernel::LibraryStep& step, const DeviceLimits& limits, const Language& language) {
  const DataType dtype = step.inputs[0].dtype;
  const bool reverse = step.op.attribute<bool>("reverse");
  RowProgram rows(join("lamina_cum_sum_", lamina::name_of(dtype)), step.op, limits);
  rows.add({.type = storage_type(dtype), .tensor = &step.inputs[0], .reverse = reverse});
  rows.add({.type = storage_type(dtype), .tensor = &step.outputs[0], .output = true, .reverse = reverse});
  LibraryProgram made = rows.program(emit(rows, dtype, step.op.attribute<bool>("exclusive")), language, is_floating(dtype));
  made.args = {0, 1};
  return made;
}

}  // namespace

LibraryOp cum_sum_op() { return {nullptr, program}; }

}  // namespace lamina::gpu
