#include <array>
#include <cstdint>

#include "api/boundary.h"
#include "api/convert.h"
#include "api/objects.h"
#include "interface/per_thread.h"

namespace lamina::api {
namespace {

const compiler::CompiledPartition& compiled_of(const char* function_name, const_lamina_graph_compiled_partition_t handle) {
  if (handle->compiled == nullptr) {
    throw Error(Status::invalid_arguments, join(function_name, ": partition ", handle->partition_id,
                                                " was not compiled; call lamina_graph_partition_compile"));
  }
  return *handle->compiled;
}

using Device = std::shared_ptr<const Backend>;  // null: the CPU

std::string_view device_name(const Device& device) { return device == nullptr ? "cpu" : device->name(); }

// The CPU cannot access device memory, nor a device host memory. Several engines may use one device.
template <typename... Words>
void require_device(const char* function_name, const Device& needed, const Device& given, const Words&... owner) {
  if (given == needed || device_name(given) == device_name(needed)) return;
  throw Error(Status::invalid_arguments,
              join(function_name, ": the partition was compiled for an engine on ", device_name(needed), ", ", owner...,
                   " belongs to an engine on ", device_name(given)));
}

// The tensors that the handles refer to. Up to 32 tensors use inline memory; larger calls use a thread-local array, which is
// kept.
class BoundTensors {
 public:
  using Large = std::vector<compiler::BoundTensor>& (*)();
  BoundTensors(const char* function_name, const Device& device, Large large, size_t num,
               const const_lamina_graph_tensor_t* tensors) {
    if (num > 0) LAMINA_REQUIRE(tensors);
    compiler::BoundTensor* data = inline_.data();
    if (num > inline_.size()) {
      if (large().size() < num) large().resize(num);
      data = large().data();
    }
    for (size_t i = 0; i < num; ++i) {
      LAMINA_REQUIRE(tensors[i]);
      const LogicalTensor& tensor = tensors[i]->tensor;
      if (tensor.property != PropertyType::host_scalar)
        require_device(function_name, device, tensors[i]->device, "tensor ", tensor.id);
      data[i] = {&tensor, tensors[i]->memory};
    }
    span_ = {data, num};
  }
  BoundTensors(const BoundTensors&) = delete;
  BoundTensors& operator=(const BoundTensors&) = delete;
  std::span<const compiler::BoundTensor> span() const { return span_; }

 private:
  std::array<compiler::BoundTensor, 32> inline_;
  std::span<const compiler::BoundTensor> span_;
};

// Tags of the thread-local arrays.
struct LargeInputs;
struct LargeOutputs;
template <typename Side>
using LargeTensors = PerThread<Side, std::vector<compiler::BoundTensor>>;

constexpr size_t kScratchpadAlignment = 64;

// The memory of the caller's scratchpad; null if there is none, or none is needed.
void* scratchpad_memory(const char* function_name, const Device& device, size_t needed,
                        const_lamina_graph_tensor_t scratchpad) {
  if (scratchpad == nullptr || needed == 0) return nullptr;
  require_device(function_name, device, scratchpad->device, "the scratchpad");
  const auto fail = [&](const auto&... what) {
    throw Error(Status::invalid_arguments, join(function_name, ": the scratchpad ", what...));
  };
  const LogicalTensor& tensor = scratchpad->tensor;
  const size_t given = tensor.has_full_shape() ? static_cast<size_t>(tensor.byte_size()) : needed;
  if (given < needed) fail("has ", given, " bytes, ", needed, " are needed");
  if (scratchpad->memory == nullptr) fail("has a null handle, ", needed, " bytes are needed");
  if (device == nullptr && reinterpret_cast<uintptr_t>(scratchpad->memory) % kScratchpadAlignment != 0)
    fail("is not aligned to ", kScratchpadAlignment, " bytes");
  return scratchpad->memory;
}

void execute(const char* function_name, const lamina_graph_compiled_partition& partition, const lamina_stream& stream,
             std::span<const const_lamina_graph_tensor_t> inputs, std::span<const const_lamina_graph_tensor_t> outputs,
             const_lamina_graph_tensor_t scratchpad) {
  const compiler::CompiledPartition& compiled = compiled_of(function_name, &partition);
  const Device& device = partition.device;
  require_device(function_name, device, stream.device, "the stream");
  const BoundTensors sources(function_name, device, &LargeTensors<LargeInputs>::get, inputs.size(), inputs.data());
  const BoundTensors destinations(function_name, device, &LargeTensors<LargeOutputs>::get, outputs.size(), outputs.data());
  ExecutionContext context;
  context.allocator = &stream.allocator;
  context.stream = stream.native;
  context.workspace = scratchpad_memory(function_name, device, compiled.info().workspace_bytes, scratchpad);
  if (stream.pool) context.pool = &*stream.pool;
  if (stream.profile != nullptr)
    stream.profile->execute(compiled, context, sources.span(), destinations.span());
  else
    compiled.execute(context, sources.span(), destinations.span());
}

}  // namespace
}  // namespace lamina::api

using namespace lamina::api;

extern "C" {

lamina_status_t lamina_graph_compiled_partition_create(lamina_graph_compiled_partition_t* compiled_partition,
                                                       const_lamina_graph_partition_t partition) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(compiled_partition);
    LAMINA_REQUIRE(partition);
    *compiled_partition = new lamina_graph_compiled_partition{partition->partition.id, nullptr, {}, nullptr};
  });
}

lamina_status_t lamina_graph_compiled_partition_destroy(lamina_graph_compiled_partition_t compiled_partition) {
  delete compiled_partition;
  return lamina_success;
}

lamina_status_t lamina_graph_compiled_partition_query_logical_tensor(const_lamina_graph_compiled_partition_t compiled_partition,
                                                                     size_t tensor_id,
                                                                     lamina_graph_logical_tensor_t* logical_tensor) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(compiled_partition);
    LAMINA_REQUIRE(logical_tensor);
    *logical_tensor = to_c(compiled_of(function_name, compiled_partition).port(tensor_id));
  });
}

lamina_status_t lamina_graph_compiled_partition_get_inplace_ports(const_lamina_graph_compiled_partition_t compiled_partition,
                                                                  size_t* num_inplace_pairs,
                                                                  const lamina_graph_inplace_pair_t** inplace_pairs) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(compiled_partition);
    LAMINA_REQUIRE(num_inplace_pairs);
    LAMINA_REQUIRE(inplace_pairs);
    compiled_of(function_name, compiled_partition);
    *num_inplace_pairs = compiled_partition->inplace_pairs.size();
    *inplace_pairs = compiled_partition->inplace_pairs.data();
  });
}

lamina_status_t lamina_graph_compiled_partition_may_share(const_lamina_graph_compiled_partition_t compiled_partition,
                                                          size_t input_id, size_t output_id, uint8_t* may_share) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(compiled_partition);
    LAMINA_REQUIRE(may_share);
    const auto& compiled = compiled_of(function_name, compiled_partition);
    for (const size_t id : {input_id, output_id}) compiled.port(id);  // throws for an id that is not a port
    *may_share = compiled.may_share(input_id, output_id) ? 1 : 0;
  });
}

lamina_status_t lamina_graph_compiled_partition_execute(const_lamina_graph_compiled_partition_t compiled_partition,
                                                        lamina_stream_t stream, size_t num_inputs,
                                                        const const_lamina_graph_tensor_t* inputs, size_t num_outputs,
                                                        const const_lamina_graph_tensor_t* outputs) {
  return lamina_graph_compiled_partition_execute_v2(compiled_partition, stream, num_inputs, inputs, num_outputs, outputs,
                                                    nullptr);
}

lamina_status_t lamina_graph_compiled_partition_execute_v2(const_lamina_graph_compiled_partition_t compiled_partition,
                                                           lamina_stream_t stream, size_t num_inputs,
                                                           const const_lamina_graph_tensor_t* inputs, size_t num_outputs,
                                                           const const_lamina_graph_tensor_t* outputs,
                                                           const_lamina_graph_tensor_t scratchpad) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(compiled_partition);
    LAMINA_REQUIRE(stream);
    execute(function_name, *compiled_partition, *stream, {inputs, num_inputs}, {outputs, num_outputs}, scratchpad);
  });
}

lamina_status_t lamina_graph_compiled_partition_get_scratchpad_logical_tensor(
    const_lamina_graph_compiled_partition_t compiled_partition, lamina_graph_logical_tensor_t* logical_tensor) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(compiled_partition);
    LAMINA_REQUIRE(logical_tensor);
    lamina::LogicalTensor bytes;
    bytes.dtype = lamina::DataType::u8;
    bytes.layout = lamina::LayoutType::strided;
    bytes.shape = {static_cast<int64_t>(compiled_of(function_name, compiled_partition).info().workspace_bytes)};
    bytes.strides = {1};
    bytes.id = SIZE_MAX - 1;  // SIZE_MAX is the empty logical tensor
    *logical_tensor = to_c(bytes);
  });
}

}  // extern "C"
