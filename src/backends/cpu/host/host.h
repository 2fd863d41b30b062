// Instructions of the machine for which lamina's own C++ code is compiled. (Generated code depends on a target's description
// instead.) Only the files of this folder and of cpu/targets name instruction sets.
#pragma once

#include <cstddef>

namespace lamina::cpu::host {

// To be called between two reads of a word that another thread writes.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Orders non-temporal stores before all later stores of the caller. It is empty on machines that order them like other
// stores: on AArch64 a release is enough, and all code that publishes stored data has one.
inline void drain_stores() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

// Placed before a function: compiles it once per useful instruction set, and the dynamic loader selects one. (The selection
// runs before the thread sanitizer is initialised.)
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define LAMINA_FOR_EACH_MACHINE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define LAMINA_FOR_EACH_MACHINE
#endif

// Instruction sets with explicit vectors (LAMINA_VECTOR_SETS of them): the attribute of their functions, the bytes of a
// vector, a name. The first is the one for which the whole program is compiled. They are macros because one source is
// included once for each.
#define LAMINA_FIRST_NAME "generic"
#define LAMINA_FIRST_BYTES 16
#define LAMINA_FIRST_TARGET
#if defined(__x86_64__)
#define LAMINA_VECTOR_SETS 3
#define LAMINA_SECOND_NAME "avx2"
#define LAMINA_SECOND_BYTES 32
#define LAMINA_SECOND_TARGET [[gnu::target("avx2")]]
#define LAMINA_THIRD_NAME "avx512"
#define LAMINA_THIRD_BYTES 64
#define LAMINA_THIRD_TARGET [[gnu::target("avx512f")]]
// The number of these sets that this machine has.
inline size_t vector_sets() { return __builtin_cpu_supports("avx512f") ? 3 : __builtin_cpu_supports("avx2") ? 2 : 1; }
#else
#define LAMINA_VECTOR_SETS 1
inline size_t vector_sets() { return 1; }
#endif

}  // namespace lamina::cpu::host
