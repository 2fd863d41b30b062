// A minimal JIT for tests of vector_math and vector_convert: it runs an emitted function over an array, for a chosen
// instruction set. Kernels have a separate JIT (backends/cpu/code/jit.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/llvm/headers.h"
#include "backends/cpu/vector/math.h"
#include "interface/data_type.h"

namespace llvm::orc {
class LLJIT;
class ThreadSafeModule;
}  // namespace llvm::orc

namespace lamina::cpu::testing {

using ElementType = std::function<llvm::Type*(llvm::LLVMContext&)>;
using Emit = std::function<llvm::Value*(llvm::IRBuilder<>&, llvm::Value*, const Instructions&)>;
// dst[0..count) = function(src[0..count)); count is a multiple of the compiled width.
using ArrayFunction = void (*)(const void* src, void* dst, int64_t count);

// A micro-architecture level, "x86-64" (SSE2, no FMA), "x86-64-v2", "x86-64-v3" (AVX2) or "x86-64-v4" (AVX-512), or a
// processor, "cooperlake" (AVX-512 with conversions to bf16) or "sapphirerapids" (also with f16 arithmetic). On AArch64, the
// name of a target.
class VectorJit {
 public:
  explicit VectorJit(const std::string& level);
  ~VectorJit();

  const std::string& level() const { return level_; }
  ArrayFunction compile(const Emit& emit, const ElementType& src, const ElementType& dst, int width);
  std::string assembly(const Emit& emit, const ElementType& src, const ElementType& dst, int width);
  // Returns the number of instructions of the loop that `compile` makes, including loads, stores and loop control.
  int instruction_count(const Emit& emit, const ElementType& src, const ElementType& dst, int width);

 private:
  llvm::orc::ThreadSafeModule build(const std::string& name, const Emit& emit, const ElementType& src, const ElementType& dst,
                                    int width);
  void optimize(llvm::Module& module);

  std::string level_;
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  int functions_ = 0;
};

bool is_x86();

// Levels that this machine runs, the most basic first.
std::vector<std::string> runnable_levels();

}  // namespace lamina::cpu::testing
