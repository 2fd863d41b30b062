// The instructions that a target has and LLVM knows by a name of the target's own: how each target writes what target.h says it
// can. Everything here is written into the function at the builder's place.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "backends/cpu/code/llvm_headers.h"
#include "backends/cpu/targets/target.h"

namespace lamina::cpu {

// Of the processor at hand.
struct HostProcessor {
  std::string name = "";                      // as LLVM calls it
  std::map<std::string, bool> features = {};  // as LLVM calls them: those of which the system tells whether it has them
  int scalable_bits = 0;                      // of a vector of scalable length; 0: has none
};

struct ArchitectureHooks {
  bool (*initialize)();  // LLVM's code generator and printers for it; false where this build has none
  // What a function says of itself, whatever is written into it. `vector_bits` of its schedule.
  void (*mark)(llvm::Function& function, const Instructions& instructions, int vector_bits);
};

// A member that is null, or that returns null, is none: not for this target, or not for vectors of this type.
struct TargetHooks {
  // x 2^k, rounded once; k holds integers as floating point, far beyond the exponents too.
  llvm::Value* (*scale_by_power)(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* k) = nullptr;
  // f32 to the bits of f16, to nearest even, subnormals kept; a NaN is quiet and may keep its payload.
  llvm::Value* (*round_to_f16)(llvm::IRBuilder<>& b, llvm::Value* x) = nullptr;
  // f32 to the bits of bf16. `is_wrong` holds lanes (null: none ever) that have to be rounded otherwise.
  struct Rounded {
    llvm::Value *bits = nullptr, *is_wrong = nullptr;
  };
  Rounded (*round_to_bf16)(llvm::IRBuilder<>& b, llvm::Value* x) = nullptr;
  // Four vectors of 16 f32 to s8 or u8, one after the other: to nearest even, saturating; NaN becomes 0.
  llvm::Value* (*pack_bytes)(llvm::IRBuilder<>& b, const std::vector<llvm::Value*>& vectors, bool is_signed) = nullptr;
  // Element i is element from[i] of two lines, one after the other, as integers of their size.
  llvm::Value* (*join_lines)(llvm::IRBuilder<>& b, llvm::Value* first, llvm::Value* from, llvm::Value* second) = nullptr;
};

// LLVM's triple of code for this kind of processor: that of this process where it runs on one.
std::string triple_of(const Architecture& architecture);

// The kind of processor that this process runs on, and what the one at hand says of itself. Asked once.
const Architecture& host_architecture();
const HostProcessor& host_processor();

// The halves of a vector's lanes.
struct Halves {
  llvm::Value *low, *high;
};
Halves halves_of(llvm::IRBuilder<>& b, llvm::Value* vector);

}  // namespace lamina::cpu
