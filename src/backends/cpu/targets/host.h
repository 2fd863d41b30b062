// What the C++ compiler is told of the machine that this program itself is compiled for. (What generated code may hold is
// another matter: a target's description.) The only place, with host_transpose.cpp beside it, that asks for an instruction set
// by name.
#pragma once

#include <cstddef>

namespace lamina::cpu::host {

// Between two looks at a word that another thread writes.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Orders non-temporal stores before whatever the caller does next. Where there is nothing to do they are ordered as all others:
// on AArch64 a release is enough, with which everybody who hands on what was stored does so.
inline void drain_stores() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

// Before a function: it is compiled once for each instruction set that is worth it, and the system's loader takes one. (Which
// one it is is found out before the thread sanitizer is ready.)
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define LAMINA_FOR_EACH_MACHINE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define LAMINA_FOR_EACH_MACHINE
#endif

// Instruction sets whose vectors are written out (LAMINA_VECTOR_SETS of them): what a function of each has before it, the bytes
// of a vector, its name. The first is what all of the program is compiled for. These are macros since one source is included
// once for each.
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
// How many of them this machine has.
inline size_t vector_sets() { return __builtin_cpu_supports("avx512f") ? 3 : __builtin_cpu_supports("avx2") ? 2 : 1; }
#else
#define LAMINA_VECTOR_SETS 1
inline size_t vector_sets() { return 1; }
#endif

}  // namespace lamina::cpu::host
