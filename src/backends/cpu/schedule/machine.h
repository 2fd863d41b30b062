// A machine that kernels are compiled for: all that schedules and code depend on besides the kernel. A value, so that a choice
// can be looked at, and code be made, for a machine other than the one at hand (code/host_machine.h describes that one).
#pragma once

#include <cstdint>
#include <string>

namespace lamina::cpu {

// Instruction sets that code is made for, the plainest first.
enum class Isa { generic, avx2, avx512 };

int vector_bits(Isa isa);

// Instructions between which the emitters choose, of two ways to the same bits. All false is right everywhere, only slower.
struct TargetFeatures {
  bool sse41 = false;        // rounding to integer in one instruction
  bool f16c = false;         // conversion between f16 and f32
  bool avx512 = false;       // AVX-512 F, VL, DQ and BW
  bool avx512_bf16 = false;  // rounds f32 to bf16 in one instruction, subnormals apart
  bool avx512_fp16 = false;  // computes in f16
  bool operator==(const TargetFeatures&) const = default;
};

// Bytes, of data.
struct Caches {
  int64_t first = int64_t{32} << 10, second = int64_t{1} << 20;  // that a core has to itself
  int64_t last = 0;                                              // that its neighbours share; 0: not known
  bool operator==(const Caches&) const = default;
};

struct Machine {
  Isa isa = Isa::generic;
  std::string cpu = "x86-64", features;  // as LLVM calls them
  TargetFeatures flags;
  Caches caches;
  int cores = 1;
  bool operator==(const Machine&) const = default;
};

// The same machine with no better instruction set than `most`. Below AVX-512 code is made for a level of x86-64, not for a
// processor, so that it is the same everywhere.
Machine capped(Machine machine, Isa most);

}  // namespace lamina::cpu
