// Matrix instructions emulated in OpenCL C, for devices that have none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/gpu/device.h"
#include "backends/gpu/emit/library_program.h"
#include "backends/gpu/generated_library.h"
#include "backends/gpu/languages/language.h"
#include "interface/status.h"

namespace lamina::testing {

// A warp exchanges its registers in local memory. A sum is one chain of fused multiply-adds.
inline constexpr const char* kEmulation = R"(
#undef LM_UNROLL
#define LM_UNROLL
#define LM_MATRIX_MEMORY(bytes, threads) local lm_u16 lm_memory[(bytes) / 2] __attribute__((aligned(1024))); \
  local const lm_u16* local lm_lines[threads]; local lm_u32 lm_left[(threads) * 4], lm_right[(threads) * 2]
#define LM_WARP (LM_THREAD / 32)
#define lm_load_matrices(to, line) lm_load_lines(to, line, lm_lines, 0)
#define lm_load_matrices_transposed(to, line) lm_load_lines(to, line, lm_lines, 1)
#define lm_multiply_bf16(sum, left, right) lm_multiply(sum, left, right, lm_left, lm_right, 1)
#define lm_multiply_f16(sum, left, right) lm_multiply(sum, left, right, lm_left, lm_right, 0)
#define LM_WAIT_FOR_COPIES(pending)
LM_FN void lm_end_copies(void) {}
LM_FN void lm_copy_chunk(local lm_u16* to, global const lm_u16* from, int count) {
  for (int e = 0; e < 8; ++e) to[e] = e < count ? from[e] : (lm_u16)0;
}
LM_FN void lm_load_lines(lm_u32* to, local const lm_u16* line, local const lm_u16* local* lines, int transposed) {
  const int lane = LM_THREAD % 32, warp = LM_THREAD - lane;
  LM_BARRIER;
  lines[LM_THREAD] = line;
  LM_BARRIER;
  for (int i = 0; i < 4; ++i) {
    local const lm_u16* local* const matrix = lines + warp + i * 8;
    const int pair = lane % 4 * 2, other = lane / 4;
    const lm_u16 low = transposed ? matrix[pair][other] : matrix[other][pair];
    const lm_u16 high = transposed ? matrix[pair + 1][other] : matrix[other][pair + 1];
    to[i] = low | (lm_u32)high << 16;
  }
}
LM_FN lm_f32 lm_half(lm_u32 pair, int high, int is_bf16) {
  const lm_u16 code = (lm_u16)(high ? pair >> 16 : pair);
  return is_bf16 ? lm_f32_from_bf16(code) : lm_f32_from_f16(code);
}
LM_FN void lm_multiply(lm_f32* sum, const lm_u32* left, const lm_u32* right, local lm_u32* lefts, local lm_u32* rights, int is_bf16) {
  const int lane = LM_THREAD % 32, warp = LM_THREAD - lane;
  LM_BARRIER;
  for (int i = 0; i < 4; ++i) lefts[LM_THREAD * 4 + i] = left[i];
  for (int i = 0; i < 2; ++i) rights[LM_THREAD * 2 + i] = right[i];
  LM_BARRIER;
  for (int e = 0; e < 4; ++e) {
    const int row = lane / 4 + e / 2 * 8, column = lane % 4 * 2 + e % 2;
    for (int k = 0; k < 16; ++k) {
      const lm_u32 l = lefts[(warp + row % 8 * 4 + k % 8 / 2) * 4 + row / 8 + k / 8 * 2];
      const lm_u32 r = rights[(warp + column * 4 + k % 8 / 2) * 2 + k / 8];
      sum[e] = lm_fma_f32(lm_half(l, k % 2, is_bf16), lm_half(r, k % 2, is_bf16), sum[e]);
    }
  }
}
)";

// Local memory is addressed as by the hardware: bits 4 to 6 of an address are changed by bits 7 to 9.
inline std::string emulation_of_four_warps(int columns, const std::string& type, bool left_along_terms,
                                           bool right_along_terms) {
  return join(R"(
#define lm_show_copies()
#define lm_start_products()
#define lm_end_products()
#define LM_WAIT_FOR_PRODUCTS(pending)
#define lm_multiply_by_four_warps(sum, left, right) lm_multiply_64(sum, lm_memory, (left) - lm_memory, (right) - lm_memory)
LM_FN lm_f32 lm_factor(local const lm_u16* memory, long first, int at, int term, int along_terms) {
  long byte = first * 2 + (along_terms ? at * 128 + term * 2 : at / 64 * 8192 + at % 64 * 2 + term * 128);
  byte ^= (byte >> 7 & 7) << 4;
  return lm_f32_from_)",
              type, R"((memory[byte / 2]);
}
LM_FN void lm_multiply_64(lm_f32* sum, local const lm_u16* memory, long left, long right) {
  const int lane = LM_THREAD % 32, warp = LM_THREAD / 32 % 4;
  for (int e = 0; e < )",
              columns / 2, R"(; ++e) {
    const int row = warp * 16 + e / 2 % 2 * 8 + lane / 4, column = e / 4 * 8 + lane % 4 * 2 + e % 2;
    for (int k = 0; k < 16; ++k)
      sum[e] = lm_fma_f32(lm_factor(memory, left, row, k, )",
              left_along_terms ? 1 : 0, "), lm_factor(memory, right, column, k, ", right_along_terms ? 1 : 0,
              "), sum[e]);\n  }\n}\n");
}

inline const gpu::Language& language_with_matrices(const gpu::Device& device) {
  static const gpu::Language emulated = [] {
    gpu::Language language = gpu::languages::opencl;
    language.matrix_instructions = kEmulation;
    language.instructions_of_four_warps = emulation_of_four_warps;
    return language;
  }();
  return *device.language().matrix_instructions != '\0' ? device.language() : emulated;
}

// Emulated, all instructions exist.
inline bool has_instructions_of_four_warps(const gpu::Device& device) {
  return *device.language().matrix_instructions == '\0' || device.limits().multiplies_by_four_warps;
}

// A copy of host memory on a device.
struct DeviceCopy {
  gpu::Device& device;
  void* handle;
  DeviceCopy(gpu::Device& owner, const std::vector<char>& host) : device(owner), handle(owner.allocate(host.size())) {
    owner.copy_in(nullptr, handle, 0, host.data(), host.size());
  }
  DeviceCopy(const DeviceCopy&) = delete;
  DeviceCopy& operator=(const DeviceCopy&) = delete;
  ~DeviceCopy() { device.release(handle); }
};

// The functions of a program.
inline void launch_program(gpu::Device& device, const gpu::KernelSource& source, const std::vector<gpu::Launch>& launches,
                           size_t scratch_bytes, std::vector<gpu::BufferView> views, const std::vector<int64_t>& words) {
  const auto module = device.load(source).module;
  const DeviceCopy scratch(device, std::vector<char>(std::max<size_t>(scratch_bytes, 1), static_cast<char>(-1)));  // NaN
  if (scratch_bytes != 0) views.push_back({scratch.handle, 0});
  for (size_t f = 0; f < launches.size(); ++f)
    module->launch(nullptr, f, gpu::group_count(launches[f]), launches[f].group_size, views, words);
  device.wait(nullptr);
}

}  // namespace lamina::testing
