// The seam between the backends and primitive libraries: oneDNN and lamina's own loops on the CPU, cuBLASLt and generated
// products on a GPU. What a library offers is in LibraryCapabilities; a backend compiles the library steps of its plans here.
#pragma once

#include <memory>

#include "kernels/plan.h"
#include "passes/core/capabilities.h"

namespace lamina {

// `Compiled`: a compiled step, with the backend's way to run it, and its scratch memory. `Machine`: what it is compiled for.
template <typename Compiled, typename Machine = void>
class PrimitiveLibrary : public LibraryCapabilities {
 public:
  // How a step is used.
  struct Use {
    int threads = 1;                 // at most; determines the size of scratch
    bool in_a_tile = false;          // of a tiled step: uses only the thread that runs the tile
    bool packs_weights = false;      // packs weights ahead, if the step gains by that
    bool reads_packed_once = false;  // packed weights would be read by one execution only
    const Compiled* like = nullptr;  // uses the same packed weights as this step
    // Replaces each element of the result by a function of it. The step may do that before it stores the element, and then says
    // that it does.
    const kernel::Kernel* following = nullptr;
    const Machine* machine = nullptr;  // it may not be this one, if code is exported; null: this machine
  };
  // Returns null if another library must run this step, because of its shapes or layouts. Throws Error.
  virtual std::unique_ptr<Compiled> compile(const kernel::LibraryStep& step, const Use& use) const = 0;
};

}  // namespace lamina
