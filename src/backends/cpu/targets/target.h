// The instruction sets for which code is generated. Each has one description in one file, which is the only one that names
// it. Code that chooses schedules or emits code queries a description, and gets the same bits with every one.
//
//   x86-64    generic < avx2 < avx512
//   AArch64   generic < neon < sve
//
// Does not depend on LLVM: target_hooks.h has the instructions for some of these properties.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lamina::cpu {

struct ArchitectureHooks;
struct TargetHooks;

// The common part of all targets of one architecture.
struct Architecture {
  const char* name;              // for messages
  const char* triple_elsewhere;  // LLVM's triple for code that is generated on another architecture
  const char* plain_cpu;         // LLVM's name of a processor with only the common features
  bool tests_masks_as_bits;      // tests whether any lane of a mask is set by one comparison of its bits as an integer
  // vectors of s64 are converted to f32 with one rounding; else LLVM converts them to f64 first
  bool rounds_s64_once;
  const ArchitectureHooks* hooks;
};

struct Target {
  const char* name;                            // in LAMINA_MAX_ISA, messages and keys
  const Architecture* architecture = nullptr;  // null: any
  const Target* contains = nullptr;            // the next simpler target: every machine with this target has that one
  // LLVM's names of the features that a host with this target must have: "avx2,fma"
  const char* needs = "";
  const char* plain_cpu = nullptr;  // for code for all machines with this target; null: the architecture's
  bool names_processor = false;     // code is for the processor and its features, not for all machines with the target
  // features for instructions of bf16, for such of whole tiles, or for computing in f16; "": no machine of this target has them
  const char* needs_for_bf16 = "";
  const char* needs_for_bf16_tiles = "";
  const char* needs_for_f16 = "";
  const char* needs_for_bytes = "";  // for Instructions::multiplies_bytes, likewise
  int vector_bits = 128;             // 0: the machine's length (Instructions::scalable_bits)

  // Properties of its instructions that select between code with the same bits. With all of them false, code is correct
  // everywhere, but slower.
  bool rounds_to_integer = false;    // ties to even
  bool converts_f16 = false;         // f16 and f32, including subnormals
  bool keeps_masks_in_bits = false;  // has mask registers with one bit per lane
  bool rounds_pairs = false;         // two vectors to one of 16-bit elements
  bool packs_bytes = false;          // four vectors of integers to one of saturated bytes
  bool joins_lines = false;          // any lanes of two whole lines, selected at run time, into one
  bool has_many_registers = false;   // they can contain two chunks of 64 lanes of f32
  int registers = 16;                // vector registers
  int shuffled_bits = 512;           // of the widest vectors, two of which one instruction shuffles in any order

  const TargetHooks* hooks = nullptr;  // null: none
};

namespace targets {

extern const Architecture x86_64, aarch64;
extern const Target generic, avx2, avx512, neon, sve;

std::span<const Architecture* const> architectures();

// The targets of an architecture, the simplest first.
std::span<const Target* const> of(const Architecture& architecture);

// Whether a machine with `target` also has `other`.
bool contains(const Target& target, const Target& other);

// The best target that both have.
const Target& common(const Target& target, const Target& other);

// By name; null if the architecture has none with that name.
const Target* find(const Architecture& architecture, std::string_view name);

}  // namespace targets

// The instructions that code may use: a target, and optional features of a machine.
struct Instructions {
  const Architecture* architecture = &targets::x86_64;
  const Target* target = &targets::generic;
  int scalable_bits = 0;               // of a vector, if the target leaves the length to the machine
  bool rounds_to_bf16 = false;         // from f32, in one instruction
  bool multiplies_bf16_pairs = false;  // and adds them, faster than it multiplies and adds f32
  bool has_bf16_tiles = false;  // multiplies matrices of bf16 in instructions of their own, for which no code is generated
  bool computes_in_f16 = false;
  bool multiplies_bytes = false;  // and adds four products of integers of 8 bits, in one instruction
  bool operator==(const Instructions&) const = default;

  const Target* operator->() const { return target; }
};

int vector_bits(const Instructions& instructions);

// For keys and messages: "sve of 256 bits, computes in bf16".
std::string describe(const Instructions& instructions);

}  // namespace lamina::cpu
