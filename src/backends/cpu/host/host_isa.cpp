#include "backends/cpu/host/host_isa.h"

namespace lamina::cpu::host {

std::vector<std::string_view> isas() {
  std::vector<std::string_view> names;
#if defined(__x86_64__)
  __builtin_cpu_init();
  // The levels for which code is generated (Target::plain_cpu).
  if (__builtin_cpu_supports("x86-64-v4")) names.push_back("avx512");
  if (__builtin_cpu_supports("x86-64-v3")) names.push_back("avx2");
#elif defined(__aarch64__)
  names.push_back("neon");
#endif
  return names;
}

}  // namespace lamina::cpu::host
