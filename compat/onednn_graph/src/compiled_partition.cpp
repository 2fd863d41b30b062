// Compiled partitions: queries and execution.
#include <graph/lamina.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "boundary.h"
#include "engines.h"
#include "partition.h"
#include "vocabulary.h"

namespace onednn_graph {
namespace {

using Port = lamina_graph_logical_tensor_t;

const Port* find_port(const std::vector<Port>& ports, size_t id, size_t likely) {
  if (likely < ports.size() && ports[likely].id == id) return &ports[likely];
  const auto found = std::find_if(ports.begin(), ports.end(), [id](const Port& port) { return port.id == id; });
  return found == ports.end() ? nullptr : &*found;
}

bool is_of_type_and_shape(const dnnl_graph_logical_tensor_t& tensor, const Port& port) {
  if (number_of(tensor.data_type) != static_cast<int>(port.data_type)) return false;
  if (tensor.ndims >= 0 && tensor.ndims != port.ndims) return false;
  return std::equal(tensor.dims, tensor.dims + std::max(tensor.ndims, 0), port.dims,
                    [](int64_t given, int64_t dim) { return given < 0 || given == dim; });
}

// Whether the tensor describes the same memory layout as the port; strides of dims of extent 1 are ignored.
bool lies_alike(const dnnl_graph_logical_tensor_t& tensor, const Port& port) {
  if (tensor.ndims != port.ndims || number_of(tensor.layout_type) != dnnl_graph_layout_type_strided) return false;
  for (int dim = 0; dim < port.ndims; ++dim)
    if (tensor.dims[dim] != port.dims[dim] || (port.dims[dim] != 1 && tensor.layout.strides[dim] != port.layout.strides[dim]))
      return false;
  return true;
}

// The lamina tensors of a call's handles; up to 16 tensors need no allocation. lamina matches a tensor to a port by id and
// checks its strides. oneDNN matches by position and uses only the memory. So clients may describe all tensors as dense, or
// with other ids; this class then rebinds their memory with the port's description.
class Bound {
 public:
  // `places`: the ids of the list that was passed to compile.
  Bound(const std::vector<Port>& ports, const std::vector<size_t>& places) : ports_(ports), places_(places) {}

  dnnl_status_t bind(size_t num, const const_dnnl_graph_tensor_t* tensors, lamina_engine_t engine) {
    const_lamina_graph_tensor_t* slots = few_.data();
    if (num > few_.size()) {
      many_.resize(num);
      slots = many_.data();
    }
    if (std::any_of(tensors, tensors + num, [](const auto* each) { return each == nullptr || each->tensor == nullptr; }))
      return dnnl_invalid_arguments;
    for (size_t i = 0; i < num; ++i) {
      const dnnl_graph_tensor& tensor = *tensors[i];
      slots[i] = tensor.tensor.get();
      const Port* const port = find_port(ports_, tensor.logical.id, i);
      const Port* const meant = port != nullptr ? port : port_by_place(i, num, tensors);
      if (meant == nullptr || !is_of_type_and_shape(tensor.logical, *meant) ||
          number_of(tensor.logical.property) == kHostScalar)
        continue;
      if (meant == port && (lies_alike(tensor.logical, *port) || is_own_and_dense(tensor))) continue;
      if (const dnnl_status_t status = bind_as(*meant, tensor, engine); status != dnnl_success) return status;
      slots[i] = as_ports_.back().get();
    }
    tensors_ = slots;
    return dnnl_success;
  }
  const const_lamina_graph_tensor_t* tensors() const { return tensors_; }

 private:
  // The port that was at this position when the partition was compiled, if no tensor has its id.
  const Port* port_by_place(size_t place, size_t num, const const_dnnl_graph_tensor_t* tensors) const {
    if (place >= places_.size()) return nullptr;
    const size_t id = places_[place];
    const bool is_given = std::any_of(tensors, tensors + num, [id](const auto* each) { return each->logical.id == id; });
    return is_given ? nullptr : find_port(ports_, id, place);
  }

  // Whether lamina allocated the memory and chose its layout.
  static bool is_own_and_dense(const dnnl_graph_tensor& tensor) {
    return tensor.handle == kAllocate && number_of(tensor.logical.layout_type) != dnnl_graph_layout_type_strided;
  }

  // Binds the memory of `tensor` with the port's layout. The size of a client's memory cannot be checked; that of memory that
  // lamina allocated can.
  dnnl_status_t bind_as(const Port& port, const dnnl_graph_tensor& tensor, lamina_engine_t engine) {
    if (is_own_and_dense(tensor)) return dnnl_invalid_arguments;
    if (tensor.handle == kAllocate && bytes_of(tensor.logical) < bytes_of(onednn_tensor(port))) return dnnl_invalid_arguments;
    void* memory = nullptr;
    lamina_graph_tensor_t made = nullptr;
    lamina_status_t status = lamina_graph_tensor_get_data_handle(tensor.tensor.get(), &memory);
    if (status == lamina_success) status = lamina_graph_tensor_create(&made, &port, engine, memory);
    as_ports_.emplace_back(made);
    return status_of(status);
  }

  const std::vector<Port>& ports_;
  const std::vector<size_t>& places_;
  std::array<const_lamina_graph_tensor_t, 16> few_{};
  std::vector<const_lamina_graph_tensor_t> many_;
  std::vector<LaminaTensor> as_ports_;
  const const_lamina_graph_tensor_t* tensors_ = nullptr;
};

dnnl_status_t execute(const dnnl_graph_compiled_partition& compiled, dnnl_stream_t stream, size_t num_inputs,
                      const const_dnnl_graph_tensor_t* inputs, size_t num_outputs, const const_dnnl_graph_tensor_t* outputs,
                      const_dnnl_graph_tensor_t scratchpad) {
  dnnl_engine_t engine = nullptr;
  if (const dnnl_status_t status = engine_of(stream, engine); status != dnnl_success) return status;
  if (compiled.compiled == nullptr || engine != compiled.engine) return dnnl_invalid_arguments;
  OurEngine ours;
  if (const dnnl_status_t status = lamina_engine_of(engine, ours); status != dnnl_success) return status;
  Bound in(compiled.inputs, compiled.input_places), out(compiled.outputs, compiled.output_places);
  if (const dnnl_status_t status = in.bind(num_inputs, inputs, ours.engine); status != dnnl_success) return status;
  if (const dnnl_status_t status = out.bind(num_outputs, outputs, ours.engine); status != dnnl_success) return status;
  // Primitives submitted to the stream earlier may produce the inputs.
  if (const dnnl_status_t status = wait_for(stream); status != dnnl_success) return status;
  const const_lamina_graph_tensor_t scratch = scratchpad == nullptr ? nullptr : scratchpad->tensor.get();
  return status_of(lamina_graph_compiled_partition_execute_v2(compiled.compiled.get(), ours.stream, num_inputs, in.tensors(),
                                                              num_outputs, out.tensors(), scratch));
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
