// Library ops over whole tensors, run by a library of primitives. The planner calls `why_unsupported`, and the backend
// compiles the library steps of its plans here. No other code depends on the library.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "kernels/plan.h"

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
  // run then gets instead.
  virtual size_t packed_bytes() const { return 0; }
  virtual void pack(const void* /*weights*/, void* /*packed*/, void* /*scratch*/, const Executor& /*executor*/) const {}
};

// How a primitive is used.
struct PrimitiveUse {
  int threads = 1;                  // at most; determines the size of scratch
  bool in_a_tile = false;           // of a tiled step: uses only the thread that runs the tile
  bool packs_weights = false;       // packs weights ahead, if the primitive gains by that
  bool packs_once = false;          // packed weights are used by many runs
  const Primitive* like = nullptr;  // uses the same packed weights as this primitive
};

class PrimitiveLibrary {
 public:
  virtual ~PrimitiveLibrary() = default;
  // Returns "" if the library runs the op, else one sentence without the op's name that says why not.
  virtual std::string why_unsupported(const Graph& graph, const Op& op) const = 0;
  // Whether it compiles steps of quantized products that are exact and fast.
  virtual bool multiplies_integers() const { return false; }
  virtual bool convolves_integers() const { return false; }
  virtual std::unique_ptr<const Primitive> compile(const kernel::LibraryStep& step, const PrimitiveUse& use) const = 0;
};

}  // namespace lamina::cpu
