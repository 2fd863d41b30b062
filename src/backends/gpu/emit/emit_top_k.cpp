// TopK to GPU source: a thread per element of src counts the elements of its row that come before it, which is its place in
// dst. The time of a row is the square of its length: this is for the short rows of a choice among experts. No place depends on
// another thread. Elements are compared as integers of the same order: of floats, -0 equals 0, and NaN is the largest.
#include "backends/gpu/emit/c_types.h"
#include "backends/gpu/emit/library_program.h"
#include "backends/gpu/emit/row_program.h"
#include "interface/small_float.h"

namespace lamina::gpu {

namespace {

// The bits of the float with the largest magnitude that is not NaN.
uint64_t infinity_of(DataType dtype) {
  if (kind_of(dtype) == TypeKind::small_float) return small_float(dtype).infinity;
  return dtype == DataType::f64 ? 0x7ff0000000000000 : 0x7f800000;
}

// The type as which elements are read and copied: floats as their bits.
std::string copied_type(DataType dtype) { return is_floating(dtype) ? join("lm_u", bits_of(dtype)) : storage_type(dtype); }

// LM_FN lm_s64 key(TYPE bits)
std::string key_function(DataType dtype) {
  Text out;
  out.open("LM_FN lm_s64 lm_key(", copied_type(dtype), " bits)");
  if (is_floating(dtype)) {
    out.line("const lm_u64 magnitude = (lm_u64)bits & (~(lm_u64)0 >> ", 65 - bits_of(dtype), ");");
    out.line("if (magnitude > (lm_u64)", infinity_of(dtype), "u) return (lm_s64)(~(lm_u64)0 >> 1);");
    out.line("return magnitude == (lm_u64)bits ? (lm_s64)magnitude : -(lm_s64)magnitude;");
  } else {
    const bool is_shifted = !is_signed_integer(dtype) && bits_of(dtype) == 64;
    out.line("return (lm_s64)", is_shifted ? "(bits ^ ((lm_u64)1 << 63))" : "bits", ";");
  }
  out.close();
  return out.str();
}

struct Outputs {
  bool values, indices;
};

std::string emit(const RowProgram& rows, DataType dtype, bool largest, const Outputs& wanted) {
  const auto key = [&](const char* place) { return join(largest ? "~" : "", "lm_key(p0[", place, " * step_0])"); };
  Text out;
  rows.open(out);
  out.line("const lm_s64 key = ", key("item"), ";");
  out.line("lm_s64 before = 0;");
  out.open("for (lm_s64 i = 0; i < count; ++i)");
  out.line("const lm_s64 other = ", key("i"), ";");
  out.line("before += other < key || (other == key && i < item);");
  out.close();
  out.open("if (before < taken)");
  if (wanted.values) out.line("p1[before * step_1] = p0[item * step_0];");
  const int last = wanted.values ? 2 : 1;
  if (wanted.indices) out.line("p", last, "[before * step_", last, "] = item;");
  out.close();
  rows.close(out);
  return key_function(dtype) + out.str();
}

LibraryProgram program(const kernel::LibraryStep& step, const DeviceLimits& limits, const Language& language) {
  const DataType dtype = step.inputs[0].dtype;
  const Outputs wanted{!step.outputs[0].is_empty_port(), step.outputs.size() > 1 && !step.outputs[1].is_empty_port()};
  RowProgram rows(join("lamina_top_k_", lamina::name_of(dtype)), step.op, limits, RowProgram::Items::elements);
  rows.add({.type = copied_type(dtype), .tensor = &step.inputs[0]});
  if (wanted.values) rows.add({.type = copied_type(dtype), .tensor = &step.outputs[0], .output = true});
  if (wanted.indices) rows.add({.type = "lm_s64", .tensor = &step.outputs[1], .output = true});
  rows.add_word("taken", step.op.attribute<int64_t>("k"));
  LibraryProgram made = rows.program(emit(rows, dtype, step.op.attribute<bool>("largest"), wanted), language, false);
  made.args = {0};
  if (wanted.values) made.args.push_back(1);
  if (wanted.indices) made.args.push_back(2);
  return made;
}

}  // namespace

LibraryOp top_k_op() { return {nullptr, program}; }

}  // namespace lamina::gpu
