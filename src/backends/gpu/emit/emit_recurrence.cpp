// Linear recurrences and their gradients to GPU source: a thread per row. States are in f32, of f64 in f64, so the bits are the
// CPU's.
#include "backends/gpu/emit/c_types.h"
#include "backends/gpu/emit/library_program.h"
#include "backends/gpu/emit/product_tile.h"
#include "backends/gpu/emit/row_program.h"

namespace lamina::gpu {

namespace {

struct Types {
  DataType dtype;
  kernel::Type value = dtype == DataType::f64 ? kernel::Type::f64 : kernel::Type::f32;

  std::string load(int tensor, const char* place) const {
    return loaded(dtype, value, join("p", tensor, "[", place, " * step_", tensor, "]"));
  }
  std::string store(int tensor, const char* name) const {
    return join("p", tensor, "[i * step_", tensor, "] = ", stored(dtype, value, name), ";");
  }
};

// Tensors: factors, src, dst.
void emit_forward(Text& out, const Types& types) {
  const char* const type = c_type(types.value);
  out.line(type, " state = 0;");
  out.open("for (lm_s64 i = 0; i < count; ++i)");
  out.line("state = ", types.load(0, "i"), " * state + ", types.load(1, "i"), ";");
  out.line(types.store(2, "state"));
  out.close();
}

// Tensors: diff_dst, factors, dst, diff_factors, diff_src.
void emit_backward(Text& out, const Types& types) {
  const char* const type = c_type(types.value);
  out.line(type, " carried = 0;");
  out.open("for (lm_s64 i = count - 1; i >= 0; --i)");
  out.line("const ", type, " diff_src = ", types.load(0, "i"), " + carried;");
  out.line("const ", type, " diff_factors = diff_src * (i > 0 ? ", types.load(2, "(i - 1)"), " : 0);");
  out.line("carried = ", types.load(1, "i"), " * diff_src;");
  out.line(types.store(3, "diff_factors"));
  out.line(types.store(4, "diff_src"));
  out.close();
}

LibraryProgram program(const kernel::LibraryStep& step, const DeviceLimits& limits, const Language& language) {
  const Types types{step.inputs[0].dtype};
  const bool is_backward = step.op.kind == OpKind::LinearRecurrenceBackward, reverse = step.op.attribute<bool>("reverse");
  RowProgram rows(join("lamina_recurrence_", is_backward ? "backward_" : "", lamina::name_of(types.dtype)), step.op, limits);
  for (const LogicalTensor& input : step.inputs)
    rows.add({.type = storage_type(types.dtype), .tensor = &input, .reverse = reverse});
  for (const LogicalTensor& output : step.outputs)
    rows.add({.type = storage_type(types.dtype), .tensor = &output, .output = true, .reverse = reverse});
  Text out;
  rows.open(out);
  is_backward ? emit_backward(out, types) : emit_forward(out, types);
  rows.close(out);
  LibraryProgram made = rows.program(out.str(), language, types.dtype == DataType::f64);
  for (size_t arg = 0; arg < step.inputs.size() + step.outputs.size(); ++arg) made.args.push_back(arg);
  return made;
}

}  // namespace

LibraryOp recurrence_op() { return {nullptr, program}; }

}  // namespace lamina::gpu
