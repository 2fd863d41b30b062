#include "backends/cpu/dispatch/windows/narrow_floats.h"

#include <bit>

#include "backends/cpu/host/host.h"
#include "interface/status.h"

namespace lamina::cpu {

// The loops are branch-free, so that the compiler vectorises them for this machine.
namespace {

LAMINA_FOR_EACH_MACHINE void widen_bf16(const uint16_t* source, float* target, int64_t count) {
  for (int64_t i = 0; i < count; ++i) target[i] = std::bit_cast<float>(static_cast<uint32_t>(source[i]) << 16);
}

LAMINA_FOR_EACH_MACHINE void narrow_bf16(const float* source, uint16_t* target, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<uint32_t>(source[i]);
    const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    const uint32_t quiet = (bits >> 16) | 0x40;
    target[i] = static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
  }
}

// A multiplication adjusts the exponent and also converts subnormals.
LAMINA_FOR_EACH_MACHINE void widen_f16(const uint16_t* source, float* target, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = source[i];
    const uint32_t magnitude = (bits & 0x7fff) << 13;
    const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
    const uint32_t special = magnitude | 0x7f800000;
    target[i] = std::bit_cast<float>(((bits & 0x7fff) >= 0x7c00 ? special : finite) | (bits & 0x8000) << 16);
  }
}

// Below the smallest normal number, adding a number whose last place is that of the subnormals rounds to it.
LAMINA_FOR_EACH_MACHINE void narrow_f16(const float* source, uint16_t* target, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<uint32_t>(source[i]);
    const uint32_t magnitude = bits & 0x7fffffff;
    const uint32_t normal = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000;
    const uint32_t special = magnitude > 0x7f800000 ? 0x7e00 | ((magnitude >> 13) & 0x1ff) : 0x7c00;
    const uint32_t finite = magnitude < 0x38800000 ? subnormal : normal;
    target[i] = static_cast<uint16_t>((magnitude >= 0x477ff000 ? special : finite) | (bits >> 16 & 0x8000));
  }
}

}  // namespace

bool is_narrow_float(DataType dtype) { return dtype == DataType::bf16 || dtype == DataType::f16; }

void widen(DataType from, const void* source, float* target, int64_t count) {
  LAMINA_CHECK(is_narrow_float(from), join(name_of(from), " is not a narrow float"));
  (from == DataType::bf16 ? widen_bf16 : widen_f16)(static_cast<const uint16_t*>(source), target, count);
}

void narrow(DataType to, const float* source, void* target, int64_t count) {
  LAMINA_CHECK(is_narrow_float(to), join(name_of(to), " is not a narrow float"));
  (to == DataType::bf16 ? narrow_bf16 : narrow_f16)(source, static_cast<uint16_t*>(target), count);
}

}  // namespace lamina::cpu
