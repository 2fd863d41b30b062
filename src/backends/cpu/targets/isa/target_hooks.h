// Instructions that LLVM only offers through target-specific intrinsics: how each target implements the abilities in
// target.h. All functions emit code at the builder's insertion point.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "backends/cpu/llvm/headers.h"
#include "backends/cpu/targets/target.h"

namespace lamina::cpu {

// The host processor.
struct HostProcessor {
  std::string name = "";                      // LLVM's name
  std::map<std::string, bool> features = {};  // LLVM's names of features, and whether the system reports them as present
  int scalable_bits = 0;                      // of a vector of scalable length; 0: it has none
  bool has_slow_bf16_pairs = false;           // multiplying them takes longer than multiplying them as f32
};

struct ArchitectureHooks {
  bool (*initialize)();  // initialises LLVM's code generator and printers; false if this build does not have them
  // Sets a function's attributes, which do not depend on its content. `vector_bits` of its schedule.
  void (*mark)(llvm::Function& function, const Instructions& instructions, int vector_bits);
};

// What is known of values that are packed.
struct KnownValues {
  bool are_numbers = false;  // none is NaN
  bool are_nonnegative = false;
};

// A member that is null, or that returns null, is not available on this target or for vectors of this type.
struct TargetHooks {
  // x 2^k, rounded once. k contains integers as floating point, also far outside the range of exponents.
  llvm::Value* (*scale_by_power)(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* k) = nullptr;
  // f32 to the bits of f16, to nearest even, including subnormals. A NaN becomes quiet and may keep its payload.
  llvm::Value* (*round_to_f16)(llvm::IRBuilder<>& b, llvm::Value* x) = nullptr;
  // f32 to the bits of bf16. `is_wrong` marks lanes that must be rounded otherwise (null: there are none).
  struct Rounded {
    llvm::Value *bits = nullptr, *is_wrong = nullptr;
  };
  Rounded (*round_to_bf16)(llvm::IRBuilder<>& b, llvm::Value* x) = nullptr;
  // Four vectors of f32, each a register, to s8 or u8, one after the other: to nearest even, saturating. NaN becomes 0.
  llvm::Value* (*pack_bytes)(llvm::IRBuilder<>& b, const std::vector<llvm::Value*>& vectors, bool is_signed,
                             KnownValues known) = nullptr;
  // Lanes of 32 bits, each with two signed integers of 16 bits: sum + the two products of `first` and `second`.
  llvm::Value* (*add_products_of_pairs)(llvm::IRBuilder<>& b, llvm::Value* sum, llvm::Value* first,
                                        llvm::Value* second) = nullptr;
  // Lanes of 32 bits, each with four integers of 8 bits, unsigned in `codes` and signed in `bytes`: sum + their products.
  // `are_small`: all codes are less than 128.
  llvm::Value* (*add_products_of_bytes)(llvm::IRBuilder<>& b, const Instructions& instructions, llvm::Value* sum,
                                        llvm::Value* codes, llvm::Value* bytes, bool are_small) = nullptr;
  // Lanes of 32 bits, as two sums of 16 bits in `sums`, to each of which two products of bytes are added. No sum overflows.
  // Null also where add_products_of_bytes is as fast.
  llvm::Value* (*add_pairs_of_bytes)(llvm::IRBuilder<>& b, const Instructions& instructions, llvm::Value* sums,
                                     llvm::Value* codes, llvm::Value* bytes) = nullptr;
  // Lanes of f32; those of the factors have two bf16. sum + the product of the high halves, then + that of the low ones;
  // numbers below 2^-126 are 0 (kernels/contraction.h).
  llvm::Value* (*add_products_of_bf16_pairs)(llvm::IRBuilder<>& b, llvm::Value* sum, llvm::Value* first,
                                             llvm::Value* second) = nullptr;
  // Element i is element from[i] of the concatenation of two lines. `from` contains integers of the elements' size.
  llvm::Value* (*join_lines)(llvm::IRBuilder<>& b, llvm::Value* first, llvm::Value* from, llvm::Value* second) = nullptr;
};

// LLVM's triple for code of this architecture: that of this process if it is the host's.
std::string triple_of(const Architecture& architecture);

// The architecture of this process, and the host processor's description. Queried once.
const Architecture& host_architecture();
const HostProcessor& host_processor();

// The halves of a vector's lanes.
struct Halves {
  llvm::Value *low, *high;
};
Halves halves_of(llvm::IRBuilder<>& b, llvm::Value* vector);

}  // namespace lamina::cpu
