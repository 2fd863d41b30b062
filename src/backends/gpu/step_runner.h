// A step of a plan on a device, whatever made its program.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "backends/gpu/device.h"

namespace lamina::gpu {

// Immutable; run may be called from many threads at once.
class StepRunner {
 public:
  virtual ~StepRunner() = default;
  // Compiles what every call of run needs; a step that needs it in some calls only compiles it in the first of these.
  virtual void prepare() {}
  // Puts the step into the stream and does not wait. `buffers`: one per arg, no memory where a port is left out. `partials`:
  // scratch_bytes() bytes.
  virtual void run(void* stream, std::span<const BufferView> buffers, BufferView partials) const = 0;
  virtual size_t scratch_bytes() const = 0;
  // For reports.
  virtual const KernelSource& source() const = 0;
  virtual std::string schedule_name() const = 0;
  virtual std::string text() const = 0;  // what is computed, readable
  virtual bool from_cache() const = 0;   // nothing had to be compiled
};

// Work-groups of `items_per_group` items each. Throws Error(invalid_shape) where a launch cannot have so many.
int64_t groups_for(int64_t items, int64_t items_per_group);

}  // namespace lamina::gpu
