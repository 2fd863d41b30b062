// The smallest JIT that can run an emitted function over an array, for a chosen instruction set. For tests of vector_math and
// vector_convert; kernels have a JIT of their own (backends/cpu/code/jit.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/code/llvm_headers.h"
#include "backends/cpu/vector/math.h"
#include "interface/data_type.h"

namespace llvm::orc {
class LLJIT;
class ThreadSafeModule;
}  // namespace llvm::orc

namespace lamina::cpu::testing {

using ElementType = std::function<llvm::Type*(llvm::LLVMContext&)>;
using Emit = std::function<llvm::Value*(llvm::IRBuilder<>&, llvm::Value*, const Instructions&)>;
// dst[0..count) = function(src[0..count)); count is a multiple of the width that it was compiled for.
using ArrayFunction = void (*)(const void* src, void* dst, int64_t count);

// A micro-architecture level: "x86-64" (SSE2, no FMA), "x86-64-v2", "x86-64-v3" (AVX2), "x86-64-v4" (AVX-512), or a processor:
// "cooperlake" (AVX-512 that rounds to bf16), "sapphirerapids" (that, and computes in f16). On AArch64 the name of a target.
class VectorJit {
 public:
  explicit VectorJit(const std::string& level);
  ~VectorJit();

  const std::string& level() const { return level_; }
  ArrayFunction compile(const Emit& emit, const ElementType& src, const ElementType& dst, int width);
  std::string assembly(const Emit& emit, const ElementType& src, const ElementType& dst, int width);
  // Instructions of the loop that `compile` would make, loads, stores and loop control included.
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

// Levels that this machine runs, the plainest first.
std::vector<std::string> runnable_levels();

}  // namespace lamina::cpu::testing
