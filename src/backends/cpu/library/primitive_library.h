// Heavy ops over whole tensors, run by a library of primitives. The planner asks `why_unsupported`, the backend compiles the
// library steps of its plans here; nobody else knows which library it is.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "kernels/plan.h"

namespace lamina::cpu {

// Immutable; run may be called from many threads at once.
class Primitive {
 public:
  virtual ~Primitive() = default;
  virtual const std::string& name() const = 0;        // for reports
  virtual size_t scratch_bytes() const { return 0; }  // beside its args, 64-byte aligned
  // `args`: the step's, null where a port is left out. Runs on up to `threads` threads (0: OpenMP's default).
  virtual void run(std::span<void* const> args, void* scratch, int threads) const = 0;
};

class PrimitiveLibrary {
 public:
  virtual ~PrimitiveLibrary() = default;
  // "" when the library runs the op, else why not, one sentence without the op's name.
  virtual std::string why_unsupported(const Graph& graph, const Op& op) const = 0;
  virtual std::unique_ptr<const Primitive> compile(const kernel::LibraryStep& step) const = 0;
};

}  // namespace lamina::cpu
