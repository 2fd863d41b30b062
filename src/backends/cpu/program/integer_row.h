// Rows of integers of 8 bits as register tiles read them (kernels/integer_rows.h), beside the panels of
// program/quantized_panel.h:
//
//   f32 scale, s32 zero point         of the row
//   per run, the entries as s8        in the order in which a tile unpacks words of the weights, the last word filled with 0
//            s32 correction           sum of the entries - run * zero point; times the middle of the weights' codes if these
//                                     have no zero points
//
// Codes are the weights as unsigned integers, entries are the integers of src as signed ones. Their zero points are moved
// likewise, so each tile computes, with the codes' zero point (or middle) z,
//   sum of (code - z) * (entry - zero point) = sum of code * entry - z * correction - zero point * sum of codes
#pragma once

#include <cstdint>

#include "backends/cpu/program/quantized_panel.h"

namespace lamina::cpu {

inline constexpr int64_t kIntegerRowHeader = 8;  // bytes

inline int64_t integer_run_bytes(const QuantizedPanel& panel) {
  return panel.words_of_run() * panel.entries_of_word() + int64_t{sizeof(int32_t)};
}

// The code of the weight 0: in the middle of the range of signed types.
inline int32_t middle_of_codes(DataType dtype) { return is_signed_integer(dtype) ? 1 << (bits_of(dtype) - 1) : 0; }

}  // namespace lamina::cpu
