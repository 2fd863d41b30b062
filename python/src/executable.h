// Compiled partitions that run in sequence in one call from Python, with the memory of the tensors between them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "views.h"

namespace lamina::python {

// A scalar that partitions read and that is not an argument of the call.
struct Constant {
  graph::logical_tensor tensor;
  std::string bytes;
};

// One compiled partition. Slots number the executable's inputs, then its outputs, its inner tensors and its constants.
struct Step {
  graph::compiled_partition compiled;
  std::vector<size_t> inputs, outputs;  // slots, in the order of the partition's ports
};

// An input: `tensor` is what the partitions read; `given` describes the object that the caller passes. The tensor is a view
// of it that starts `offset` bytes after its first element.
struct Input {
  graph::logical_tensor tensor;
  graph::logical_tensor given;
  size_t offset = 0;
};

class Executable {
 public:
  Executable(std::vector<Step> steps, std::vector<Input> inputs, std::vector<graph::logical_tensor> outputs,
             std::vector<graph::logical_tensor> inner, std::vector<Constant> constants);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  // From now on, this object is the input, and calls do not pass it. Throws lamina::error as run, and for an input that does
  // not exist or is kept already.
  void keep(size_t input, nb::object object);

  // Objects are in the order of inputs, without those that are kept, and outputs; throws lamina::error if one does not match.
  // Releases the GIL while it computes. Many threads may call it at once.
  void run(nb::handle inputs, nb::handle outputs);

  const std::vector<Input>& inputs() const { return inputs_; }
  const std::vector<graph::logical_tensor>& outputs() const { return outputs_; }
  size_t inner_bytes() const { return inner_bytes_; }
  size_t step_count() const { return steps_.size(); }

 private:
  struct Frame;
  std::unique_ptr<Frame> take_frame();
  void bind(Frame& frame, nb::handle inputs, nb::handle outputs) const;
  void* memory_of(size_t input, nb::handle object) const;
  void place_inner();

  std::vector<Step> steps_;
  std::vector<Input> inputs_;
  std::vector<graph::logical_tensor> outputs_, inner_;
  std::vector<Constant> constants_;
  struct Kept {
    nb::object object;
    void* memory = nullptr;
  };
  std::vector<std::optional<Kept>> kept_;  // per input
  size_t kept_count_ = 0;
  std::vector<size_t> inner_offsets_;
  size_t inner_bytes_ = 0;
  std::vector<std::unique_ptr<Frame>> frames_;  // idle frames; accessed only with the GIL held
};

const engine& cpu_engine();

}  // namespace lamina::python
