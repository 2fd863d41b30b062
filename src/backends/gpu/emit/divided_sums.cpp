#include "backends/gpu/emit/divided_sums.h"

#include "backends/gpu/schedule/product_segments.h"

namespace lamina::gpu {

std::string DividedSums::emit_segment(Text& out, const std::string& rest) const {
  out.line("const lm_s64 first_term = ", rest, " % segments * segment_terms;");
  out.line("const lm_s64 end_term = first_term + segment_terms < ", terms, " ? first_term + segment_terms : ", terms, ";");
  out.line("LM_GLOBAL lm_f32* const part = (LM_GLOBAL lm_f32*)(scratch + scratch_offset", bytes_before, ") + (", rest, " * ",
           rows, " + first_row) * ", columns, " + first_column;");
  return join("(", rest, " / segments)");
}

TileDst DividedSums::part() const {
  return {DataType::f32, "1", [] {},
          [*this](const std::string& column) { return join("part + ((lm_s64)row * ", columns, " + ", column, ")"); },
          [](const std::string& sum, const std::string&) { return sum; }};
}

// Neighbouring threads add neighbouring columns.
void DividedSums::emit_joining(Text& out, const std::function<void()>& store) const {
  out.line("const lm_s64 item = LM_GROUP * ", kJoiningThreads, " + LM_THREAD, elements = ", rows, " * ", columns, ";");
  out.line("const lm_s64 product = item / elements, first_row = item % elements / ", columns, ", first_column = item % ",
           columns, ";");
  out.open("if (product < ", products, ")");
  out.line("LM_GLOBAL const lm_f32* const parts = (LM_GLOBAL const lm_f32*)(scratch + scratch_offset", bytes_before,
           ") + (product * segments * elements + item % elements);");
  out.line("lm_f32 sum = 0;");
  out.line("LM_UNROLL_BY_8 for (lm_s64 s = 0; s < segments; ++s) sum += parts[s * elements];");
  store();
  out.close();
}

std::string joining_symbol(const std::string& symbol) { return symbol + "_joining"; }

std::vector<int64_t> divided_words(int64_t segment_terms, int64_t terms) {
  if (segment_terms == 0) return {};
  return {segment_terms, segments_of(terms, segment_terms)};
}

Launch joining_launch(int64_t elements) {
  return {.groups = {(elements + kJoiningThreads - 1) / kJoiningThreads}, .group_size = kJoiningThreads};
}

size_t divided_bytes(int64_t elements, int64_t segment_terms, int64_t terms) {
  return segment_terms == 0 ? 0 : static_cast<size_t>(elements * segments_of(terms, segment_terms)) * sizeof(float);
}

}  // namespace lamina::gpu
