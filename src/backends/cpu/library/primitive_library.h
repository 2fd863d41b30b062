// Steps of primitive libraries on the CPU (backends/library.h).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "backends/library.h"

namespace lamina::cpu {

class Executor;

// `bytes` rounded up, so that the next block in scratch starts at a cache line.
constexpr size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Immutable. Many threads may call run at the same time.
class Primitive {
 public:
  virtual ~Primitive() = default;
  virtual const std::string& name() const = 0;        // for reports
  virtual size_t scratch_bytes() const { return 0; }  // in addition to its args, 64-byte aligned
  // `args`: the step's, null for absent ports. Runs on threads of `executor`, at most as many as it was compiled for.
  virtual void run(std::span<void* const> args, void* scratch, const Executor& executor) const = 0;

  // The size of weights (input 1) after `pack`. It is greater than 0 if the primitive was compiled for packed weights, which
  // run then gets instead. `args`: the step's, of which only the weights and the operands that dequantise them are read.
  virtual size_t packed_bytes() const { return 0; }
  virtual void pack(std::span<void* const> /*args*/, void* /*packed*/, void* /*scratch*/, const Executor& /*executor*/) const {}

  // For a product: whether each element is a chain in the order of k (kernels/contraction.h), and one that was compiled like it
  // (Use::like) with fewer columns or entries of k reads the first ones of its packed weights.
  virtual bool sums_in_order() const { return false; }
};

using PrimitiveLibrary = lamina::PrimitiveLibrary<const Primitive>;
using PrimitiveUse = PrimitiveLibrary::Use;

}  // namespace lamina::cpu
