// The tensors of one partition in memory that its backend can access: host memory itself, or copies on a device.
#pragma once

#include <memory>
#include <vector>

#include "backends/backend.h"
#include "compiler/compiled_partition.h"
#include "compiler/profile.h"
#include "lamina/buffer.h"

namespace lamina::driver {

class DeviceTensors {
 public:
  // Copies the inputs and the current outputs (so that gaps between strided elements keep their bytes) to the backend's
  // device. Host scalars stay on the host. The buffers must outlive this object.
  DeviceTensors(const Backend& backend, const std::vector<std::shared_ptr<Buffer>>& inputs,
                const std::vector<std::shared_ptr<Buffer>>& outputs);
  ~DeviceTensors();
  DeviceTensors(const DeviceTensors&) = delete;
  DeviceTensors& operator=(const DeviceTensors&) = delete;

  const std::vector<const void*>& inputs() const { return inputs_; }
  const std::vector<void*>& outputs() const { return outputs_; }
  void wait() const;          // until the device has finished
  void copy_outputs() const;  // to the buffers

 private:
  void* to_device(const Buffer& buffer);

  const DeviceMemory* memory_;  // null: host memory
  std::vector<std::shared_ptr<Buffer>> results_;
  std::vector<void*> held_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
};

// A compiled partition with tensors bound to its ports, executed as in a user's program.
class Execution {
 public:
  Execution(const compiler::CompiledPartition& compiled, const DeviceTensors& tensors, int threads = 0);
  void run() const { compiled_.execute(context_, inputs_, outputs_); }
  void run(compiler::Profile& profile) const { profile.execute(compiled_, context_, inputs_, outputs_); }

 private:
  const compiler::CompiledPartition& compiled_;
  ExecutionContext context_;
  std::vector<compiler::BoundTensor> inputs_, outputs_;
};

}  // namespace lamina::driver
