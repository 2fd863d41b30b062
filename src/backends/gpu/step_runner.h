// A step of a plan on a device, independent of the origin of its program.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "backends/gpu/device.h"
#include "backends/library.h"

namespace lamina::gpu {

// Immutable. Many threads may call run at the same time.
class StepRunner {
 public:
  virtual ~StepRunner() = default;
  // Compiles the programs that every call of run needs. Programs that only some calls need are compiled by the first of
  // these.
  virtual void prepare() {}
  // Submits the step to the stream and does not wait. `buffers`: one per arg, without memory for absent ports. `scratch`:
  // scratch_bytes() bytes.
  virtual void run(void* stream, std::span<const BufferView> buffers, BufferView scratch) const = 0;
  virtual size_t scratch_bytes() const = 0;
  // For reports.
  virtual const KernelSource& source() const = 0;
  virtual std::string schedule_name() const = 0;
  virtual std::string text() const = 0;  // readable text of what the step computes
  virtual bool from_cache() const = 0;   // nothing had to be compiled
};

// The number of work-groups with `items_per_group` items each. Throws Error(invalid_shape) if a launch cannot have that many.
int64_t groups_for(int64_t items, int64_t items_per_group);

}  // namespace lamina::gpu
