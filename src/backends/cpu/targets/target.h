// The instruction sets that code is made for, each one description: a file each, which is all that knows it by its name. Who
// chooses schedules or writes code asks a description for what it needs, and gets the same bits from every one.
//
//   x86-64    generic < avx2 < avx512
//   AArch64   generic < neon < sve
//
// Knows no LLVM: the instructions behind some of what stands here are in target_hooks.h.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lamina::cpu {

struct ArchitectureHooks;
struct TargetHooks;

// What all targets of one kind of processor share.
struct Architecture {
  const char* name;              // in messages
  const char* triple_elsewhere;  // LLVM's, of code that is made on another kind of processor
  const char* plain_cpu;         // as LLVM calls a processor that has what all of them have, and no more
  bool tests_masks_as_bits;      // whether any lane of a mask is set is one look at an integer of its bits
  bool rounds_s64_once;          // vectors of s64 to f32 are rounded once; else LLVM makes them f64 first
  const ArchitectureHooks* hooks;
};

struct Target {
  const char* name;                            // of LAMINA_MAX_ISA, in messages and in keys
  const Architecture* architecture = nullptr;  // null: any
  const Target* contains = nullptr;            // the next plainer one: whoever has this target has that one
  const char* needs = "";                      // features, as LLVM calls them, of a host that has it: "avx2,fma"
  const char* plain_cpu = nullptr;             // of code for all machines that have it; null: the architecture's
  bool names_processor = false;     // code is made for the processor and its features, not for all that have the target
  const char* needs_for_bf16 = "";  // and of a machine that rounds to bf16, or computes in f16, besides; "": none does
  const char* needs_for_f16 = "";
  int vector_bits = 128;  // 0: as long as the machine has them (Instructions::scalable_bits)

  // What its instructions do besides arithmetic, of two ways to the same bits. All false is right everywhere, only slower.
  bool rounds_to_integer = false;    // halves to the even one
  bool converts_f16 = false;         // f16 and f32, subnormals included
  bool keeps_masks_in_bits = false;  // registers of masks: a lane is a bit
  bool rounds_pairs = false;         // two vectors to one of 16-bit elements, a whole line of them
  bool packs_bytes = false;          // four vectors of integers to one of bytes that saturate
  bool joins_lines = false;          // any lanes of two whole lines, chosen at run time, as one
  bool has_many_registers = false;   // a chunk of 64 lanes of f32, and as much again, stays in them
  int shuffled_bits = 512;           // of the widest vectors of which two are mixed in any order without going through memory

  const TargetHooks* hooks = nullptr;  // null: none
};

namespace targets {

extern const Architecture x86_64, aarch64;
extern const Target generic, avx2, avx512, neon, sve;

// Of an architecture, the plainest first.
std::span<const Target* const> of(const Architecture& architecture);

// Whether a machine that has `target` has `other`, too.
bool contains(const Target& target, const Target& other);

// The best one that both have.
const Target& common(const Target& target, const Target& other);

// By name; null where the architecture has none of that name.
const Target* find(const Architecture& architecture, std::string_view name);

}  // namespace targets

// What code may be made of: a target, and what a machine of it may have besides.
struct Instructions {
  const Architecture* architecture = &targets::x86_64;
  const Target* target = &targets::generic;
  int scalable_bits = 0;        // of a vector, where the target leaves that to the machine
  bool rounds_to_bf16 = false;  // f32 to bf16 in one instruction
  bool computes_in_f16 = false;
  bool operator==(const Instructions&) const = default;

  const Target* operator->() const { return target; }
};

int vector_bits(const Instructions& instructions);

// For keys and messages: "sve of 256 bits, rounds to bf16".
std::string describe(const Instructions& instructions);

}  // namespace lamina::cpu
