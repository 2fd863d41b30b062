// Library ops over whole tensors, run by a library of primitives. The planner asks `why_unsupported`, the backend compiles the
// library steps of its plans here; nobody else knows which library it is.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "kernels/plan.h"

namespace lamina::cpu {

class Executor;

// Bytes that `bytes` take where the next thing in scratch begins a line of its own.
constexpr size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Immutable; run may be called from many threads at once.
class Primitive {
 public:
  virtual ~Primitive() = default;
  virtual const std::string& name() const = 0;        // for reports
  virtual size_t scratch_bytes() const { return 0; }  // beside its args, 64-byte aligned
  // `args`: the step's, null where a port is left out. Runs on threads of `executor`, on no more than it was compiled for.
  virtual void run(std::span<void* const> args, void* scratch, const Executor& executor) const = 0;

  // Bytes of the weights (input 1) as `pack` lays them out. More than 0 where the primitive was compiled for packed weights:
  // then run is given those in their place.
  virtual size_t packed_bytes() const { return 0; }
  virtual void pack(const void* /*weights*/, void* /*packed*/, void* /*scratch*/, const Executor& /*executor*/) const {}
};

// How a primitive will be used.
struct PrimitiveUse {
  int threads = 1;                  // at most: scratch is for so many
  bool in_a_tile = false;           // of a tiled step: on the thread that runs the tile, whatever there are besides
  bool packs_weights = false;       // weights are packed ahead, where the primitive gains by that
  bool packs_once = false;          // and then serve many runs
  const Primitive* like = nullptr;  // packed as this one, of the same weights, packs them
};

class PrimitiveLibrary {
 public:
  virtual ~PrimitiveLibrary() = default;
  // "" when the library runs the op, else why not, one sentence without the op's name.
  virtual std::string why_unsupported(const Graph& graph, const Op& op) const = 0;
  // Whether it compiles steps of quantized products, exactly and fast.
  virtual bool multiplies_integers() const { return false; }
  virtual bool convolves_integers() const { return false; }
  virtual std::unique_ptr<const Primitive> compile(const kernel::LibraryStep& step, const PrimitiveUse& use) const = 0;
};

}  // namespace lamina::cpu
