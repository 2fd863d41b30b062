// Compiled partitions: what they say of themselves, and their execution.
#include <graph/lamina.h>

#include <array>
#include <memory>
#include <vector>

#include "boundary.h"
#include "engines.h"
#include "partition.h"
#include "vocabulary.h"

namespace onednn_graph {
namespace {

// lamina's tensors behind the handles; calls of ordinary size allocate nothing.
class Bound {
 public:
  // False where a handle is null, or no tensor that can be executed on.
  bool bind(size_t num, const const_dnnl_graph_tensor_t* tensors) {
    const_lamina_graph_tensor_t* slots = few_.data();
    if (num > few_.size()) {
      many_.resize(num);
      slots = many_.data();
    }
    for (size_t i = 0; i < num; ++i) {
      if (any_null(tensors[i]) || tensors[i]->tensor == nullptr) return false;
      slots[i] = tensors[i]->tensor.get();
    }
    tensors_ = slots;
    return true;
  }
  const const_lamina_graph_tensor_t* tensors() const { return tensors_; }

 private:
  std::array<const_lamina_graph_tensor_t, 16> few_{};
  std::vector<const_lamina_graph_tensor_t> many_;
  const const_lamina_graph_tensor_t* tensors_ = nullptr;
};

dnnl_status_t execute(const dnnl_graph_compiled_partition& compiled, dnnl_stream_t stream, size_t num_inputs,
                      const const_dnnl_graph_tensor_t* inputs, size_t num_outputs, const const_dnnl_graph_tensor_t* outputs,
                      const_dnnl_graph_tensor_t scratchpad) {
  dnnl_engine_t engine = nullptr;
  if (const dnnl_status_t status = engine_of(stream, engine); status != dnnl_success) return status;
  if (compiled.compiled == nullptr || engine != compiled.engine) return dnnl_invalid_arguments;
  lamina_engine_t ours = nullptr;
  if (const dnnl_status_t status = lamina_engine_of(engine, ours); status != dnnl_success) return status;
  Bound in, out;
  if (!in.bind(num_inputs, inputs) || !out.bind(num_outputs, outputs)) return dnnl_invalid_arguments;
  // What the stream was given before, by primitives, may make what is read here.
  if (const dnnl_status_t status = wait_for(stream); status != dnnl_success) return status;
  lamina_stream_t made = nullptr;
  lamina_status_t status = lamina_stream_create(&made, ours, lamina_stream_default_flags);
  if (status != lamina_success) return status_of(status);
  const LaminaStream own_stream(made);
  const const_lamina_graph_tensor_t scratch = scratchpad == nullptr ? nullptr : scratchpad->tensor.get();
  status = lamina_graph_compiled_partition_execute_v2(compiled.compiled.get(), made, num_inputs, in.tensors(), num_outputs,
                                                      out.tensors(), scratch);
  return status_of(status);
}

}  // namespace
}  // namespace onednn_graph

using namespace onednn_graph;

extern "C" {

dnnl_status_t dnnl_graph_compiled_partition_create(dnnl_graph_compiled_partition_t* compiled_partition,
                                                   dnnl_graph_partition_t partition) {
  return guarded([&] {
    if (any_null(compiled_partition, partition)) return dnnl_invalid_arguments;
    *compiled_partition = new dnnl_graph_compiled_partition;
    return dnnl_success;
  });
}

dnnl_status_t dnnl_graph_compiled_partition_destroy(dnnl_graph_compiled_partition_t compiled_partition) {
  delete compiled_partition;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_compiled_partition_query_logical_tensor(const_dnnl_graph_compiled_partition_t compiled_partition,
                                                                 size_t tid, dnnl_graph_logical_tensor_t* lt) {
  return guarded([&] {
    if (any_null(compiled_partition, lt) || compiled_partition->compiled == nullptr) return dnnl_invalid_arguments;
    lamina_graph_logical_tensor_t tensor{};
    const lamina_status_t status =
        lamina_graph_compiled_partition_query_logical_tensor(compiled_partition->compiled.get(), tid, &tensor);
    if (status == lamina_success) *lt = onednn_tensor(tensor);
    return status_of(status);
  });
}

dnnl_status_t dnnl_graph_compiled_partition_get_inplace_ports(const_dnnl_graph_compiled_partition_t compiled_partition,
                                                              size_t* num_inplace_pairs,
                                                              const dnnl_graph_inplace_pair_t** inplace_pairs) {
  if (any_null(compiled_partition, num_inplace_pairs, inplace_pairs) || compiled_partition->compiled == nullptr)
    return dnnl_invalid_arguments;
  *num_inplace_pairs = compiled_partition->inplace_pairs.size();
  *inplace_pairs = compiled_partition->inplace_pairs.data();
  return dnnl_success;
}

dnnl_status_t dnnl_graph_compiled_partition_get_scratchpad_logical_tensor(
    const_dnnl_graph_compiled_partition_t compiled_partition, dnnl_graph_logical_tensor_t* lt) {
  return guarded([&] {
    if (any_null(compiled_partition, lt) || compiled_partition->compiled == nullptr) return dnnl_invalid_arguments;
    lamina_graph_logical_tensor_t tensor{};
    const lamina_status_t status =
        lamina_graph_compiled_partition_get_scratchpad_logical_tensor(compiled_partition->compiled.get(), &tensor);
    if (status == lamina_success) *lt = onednn_tensor(tensor);
    return status_of(status);
  });
}

dnnl_status_t dnnl_graph_compiled_partition_execute_v2(const_dnnl_graph_compiled_partition_t compiled_partition,
                                                       dnnl_stream_t stream, size_t num_inputs,
                                                       const_dnnl_graph_tensor_t* inputs, size_t num_outputs,
                                                       const_dnnl_graph_tensor_t* outputs,
                                                       const_dnnl_graph_tensor_t scratchpad) {
  return guarded([&] {
    if (any_null(compiled_partition, stream, inputs, outputs)) return dnnl_invalid_arguments;
    if (scratchpad != nullptr && scratchpad->tensor == nullptr) return dnnl_invalid_arguments;
    return execute(*compiled_partition, stream, num_inputs, inputs, num_outputs, outputs, scratchpad);
  });
}

dnnl_status_t dnnl_graph_compiled_partition_execute(const_dnnl_graph_compiled_partition_t compiled_partition,
                                                    dnnl_stream_t stream, size_t num_inputs, const_dnnl_graph_tensor_t* inputs,
                                                    size_t num_outputs, const_dnnl_graph_tensor_t* outputs) {
  return dnnl_graph_compiled_partition_execute_v2(compiled_partition, stream, num_inputs, inputs, num_outputs, outputs,
                                                  nullptr);
}

}  // extern "C"
