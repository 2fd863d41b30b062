#include "lamina/device_tensors.h"

namespace lamina::driver {

DeviceTensors::DeviceTensors(const Backend& backend, const std::vector<std::shared_ptr<Buffer>>& inputs,
                             const std::vector<std::shared_ptr<Buffer>>& outputs)
    : memory_(backend.device_memory()), results_(outputs) {
  try {
    for (const auto& input : inputs) {
      const bool stays = memory_ == nullptr || input->tensor().property == PropertyType::host_scalar;
      inputs_.push_back(stays ? input->data() : to_device(*input));
    }
    for (const auto& output : outputs) outputs_.push_back(memory_ == nullptr ? output->data() : to_device(*output));
  } catch (...) {
    for (void* handle : held_) memory_->release(handle);
    throw;
  }
}

DeviceTensors::~DeviceTensors() {
  for (void* handle : held_) memory_->release(handle);
}

void* DeviceTensors::to_device(const Buffer& buffer) {
  const auto bytes = static_cast<size_t>(buffer.tensor().byte_size());
  held_.push_back(memory_->allocate(bytes));
  memory_->copy_in(held_.back(), buffer.data(), bytes);
  return held_.back();
}

void DeviceTensors::wait() const {
  if (memory_ != nullptr) memory_->wait(nullptr);
}

void DeviceTensors::copy_outputs() const {
  if (memory_ == nullptr) return;
  for (size_t i = 0; i < results_.size(); ++i) {
    memory_->copy_out(results_[i]->data(), outputs_[i], static_cast<size_t>(results_[i]->tensor().byte_size()));
  }
}

Execution::Execution(const compiler::CompiledPartition& compiled, const DeviceTensors& tensors, int threads)
    : compiled_(compiled), context_{.threads = threads} {
  for (size_t i = 0; i < compiled.inputs().size(); ++i)
    inputs_.push_back({&compiled.inputs()[i], const_cast<void*>(tensors.inputs()[i])});
  for (size_t i = 0; i < compiled.outputs().size(); ++i) outputs_.push_back({&compiled.outputs()[i], tensors.outputs()[i]});
}

}  // namespace lamina::driver
