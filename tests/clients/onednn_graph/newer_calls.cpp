// A client of functions that oneDNN Graph added after the installed headers; it declares them itself as the newer headers do: a
// caller's scratchpad, host scalars, modes of a graph, capacities, dumps. It is linked with the drop-in first.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "client.h"

extern "C" {
dnnl_status_t dnnl_graph_graph_set_fpmath_mode(dnnl_graph_graph_t graph, dnnl_fpmath_mode_t mode, int apply_to_int);
dnnl_status_t dnnl_graph_graph_get_fpmath_mode(dnnl_graph_graph_t graph, dnnl_fpmath_mode_t* mode, int* apply_to_int);
dnnl_status_t dnnl_graph_graph_set_deterministic(dnnl_graph_graph_t graph, int deterministic);
dnnl_status_t dnnl_graph_graph_get_deterministic(const_dnnl_graph_graph_t graph, int* deterministic);
dnnl_status_t dnnl_graph_set_constant_tensor_cache_capacity(dnnl_engine_kind_t kind, size_t size);
dnnl_status_t dnnl_graph_get_constant_tensor_cache_capacity(dnnl_engine_kind_t kind, size_t* size);
dnnl_status_t dnnl_graph_tensor_get_logical_tensor(const_dnnl_graph_tensor_t tensor, dnnl_graph_logical_tensor_t* logical);
dnnl_status_t dnnl_graph_tensor_create_scalar(dnnl_graph_tensor_t* tensor, const dnnl_graph_logical_tensor_t* logical,
                                              void* scalar);
dnnl_status_t dnnl_graph_set_dump_mode(unsigned modes);
dnnl_status_t dnnl_graph_compiled_partition_get_scratchpad_logical_tensor(const_dnnl_graph_compiled_partition_t compiled,
                                                                          dnnl_graph_logical_tensor_t* logical);
dnnl_status_t dnnl_graph_compiled_partition_execute_v2(const_dnnl_graph_compiled_partition_t compiled, dnnl_stream_t stream,
                                                       size_t num_inputs, const_dnnl_graph_tensor_t* inputs, size_t num_outputs,
                                                       const_dnnl_graph_tensor_t* outputs,
                                                       const_dnnl_graph_tensor_t scratchpad);
}

namespace {

constexpr auto kHostScalar = static_cast<dnnl_graph_tensor_property_t>(3);

void modes(Client& client) {
  dnnl_graph_graph_t graph = nullptr;
  client.expect(dnnl_graph_graph_create(&graph, dnnl_cpu) == dnnl_success, "graph");
  dnnl_fpmath_mode_t mode = dnnl_fpmath_mode_any;
  int flag = -1;
  client.expect(dnnl_graph_graph_set_fpmath_mode(graph, dnnl_fpmath_mode_bf16, 1) == dnnl_success, "set a mode");
  client.expect(
      dnnl_graph_graph_get_fpmath_mode(graph, &mode, &flag) == dnnl_success && mode == dnnl_fpmath_mode_bf16 && flag == 1,
      "get the mode, all four bytes of the flag");
  client.expect(dnnl_graph_graph_get_fpmath_mode(graph, nullptr, nullptr) == dnnl_success, "get nothing");
  client.expect(dnnl_graph_graph_get_deterministic(graph, &flag) == dnnl_success && flag == 0, "not asked to be deterministic");
  client.expect(dnnl_graph_graph_set_deterministic(graph, 1) == dnnl_success, "ask for it");
  client.expect(dnnl_graph_graph_get_deterministic(graph, &flag) == dnnl_success && flag == 1, "asked to be deterministic");
  client.expect(dnnl_graph_graph_set_deterministic(nullptr, 1) == dnnl_invalid_arguments, "no graph");
  client.expect(dnnl_graph_graph_get_deterministic(graph, nullptr) == dnnl_invalid_arguments, "no flag");
  client.expect(dnnl_graph_graph_finalize(graph) == dnnl_success, "finalize");
  client.expect(dnnl_graph_graph_set_fpmath_mode(graph, dnnl_fpmath_mode_any, 0) == dnnl_invalid_graph, "too late for a mode");
  client.expect(dnnl_graph_graph_set_deterministic(graph, 0) == dnnl_invalid_graph, "too late to ask");
  dnnl_graph_graph_destroy(graph);
}

void process_wide(Client& client) {
  size_t size = 0;
  client.expect(dnnl_graph_set_constant_tensor_cache_capacity(dnnl_cpu, 64) == dnnl_success, "set a capacity");
  client.expect(dnnl_graph_get_constant_tensor_cache_capacity(dnnl_cpu, &size) == dnnl_success && size == 64, "get it");
  client.expect(dnnl_graph_get_constant_tensor_cache_capacity(dnnl_cpu, nullptr) == dnnl_invalid_arguments, "no size");
  for (const auto kind : {dnnl_cpu, dnnl_gpu}) {
    client.expect(dnnl_graph_set_constant_tensor_cache_capacity(kind, SIZE_MAX) == dnnl_success, "set the largest capacity");
    client.expect(dnnl_graph_get_constant_tensor_cache_capacity(kind, &size) == dnnl_success && size == SIZE_MAX >> 20,
                  "as many MiB as there are addresses");
  }
  client.expect(dnnl_graph_set_constant_tensor_cache(1) == dnnl_success, "a cache without a limit");
  client.expect(dnnl_graph_get_constant_tensor_cache_capacity(dnnl_cpu, &size) == dnnl_success && size == SIZE_MAX >> 20,
                "as many MiB as there are addresses");
  for (const unsigned modes : {1u, 2u, 3u, 0u}) client.expect(dnnl_graph_set_dump_mode(modes) == dnnl_success, "a dump mode");
  client.expect(dnnl_graph_set_dump_mode(4) == dnnl_invalid_arguments, "no such dump mode");
}

// dst = src / scale with scale on the host; also with a tensor made with an engine, as in earlier versions.
void host_scalars(Client& client) {
  dnnl_graph_logical_tensor_t scale;
  client.expect(dnnl_graph_logical_tensor_init(&scale, 2, dnnl_f32, 2, dnnl_graph_layout_type_strided, kHostScalar) ==
                    dnnl_invalid_arguments,
                "a host scalar has no dims");
  for (const auto& [type, status] : {std::pair(dnnl_f16, dnnl_invalid_arguments), std::pair(dnnl_bf16, dnnl_invalid_arguments),
                                     std::pair(dnnl_s8, dnnl_invalid_arguments), std::pair(dnnl_s32, dnnl_success)})
    client.expect(dnnl_graph_logical_tensor_init(&scale, 2, type, 0, dnnl_graph_layout_type_strided, kHostScalar) == status,
                  "the type of a host scalar");
  client.expect(
      dnnl_graph_logical_tensor_init(&scale, 2, dnnl_f32, 0, dnnl_graph_layout_type_strided, kHostScalar) == dnnl_success,
      "host scalar");
  const logical_tensor src = f32(1, {4, 6}), dst = f32(3, {4, 6});
  const partition part(op(1, op::kind::Divide, {src, logical_tensor(scale)}, {dst}, "divide"), dnnl::engine::kind::cpu);
  const compiled_partition compiled = part.compile({src, logical_tensor(scale)}, {dst}, client.engine);
  float value = 4.0f;
  Floats from = numbers(24, 1), to(24);
  dnnl_graph_tensor_t scalar = nullptr;
  client.expect(dnnl_graph_tensor_create_scalar(&scalar, &scale, &value) == dnnl_success, "a scalar");
  value = 0;  // the tensor has a copy of it
  void* handle = &value;
  client.expect(dnnl_graph_tensor_get_data_handle(scalar, &handle) == dnnl_success && handle == nullptr, "without a handle");
  client.expect(dnnl_graph_tensor_set_data_handle(scalar, &value) == dnnl_invalid_arguments, "that cannot be set");
  dnnl_graph_logical_tensor_t answer{};
  client.expect(dnnl_graph_tensor_get_logical_tensor(scalar, &answer) == dnnl_success && answer.id == 2, "its logical tensor");
  const tensor source(src, client.engine, from.data()), result(dst, client.engine, to.data());
  const_dnnl_graph_tensor_t inputs[] = {source.get(), scalar}, outputs[] = {result.get()};
  client.expect(
      dnnl_graph_compiled_partition_execute(compiled.get(), client.stream.get(), 2, inputs, 1, outputs) == dnnl_success,
      "executes");
  Doubles expected(from.begin(), from.end());
  for (double& number : expected) number /= 4;
  client.expect_near("divided by a host scalar", to, expected, 1e-6);
  dnnl_graph_tensor_destroy(scalar);
  value = 2.0f;
  client.expect(dnnl_graph_tensor_create(&scalar, &scale, client.engine.get(), &value) == dnnl_success,
                "a scalar with an engine");
  inputs[1] = scalar;
  client.expect(
      dnnl_graph_compiled_partition_execute(compiled.get(), client.stream.get(), 2, inputs, 1, outputs) == dnnl_success,
      "executes");
  for (double& number : expected) number *= 2;
  client.expect_near("divided by one with an engine", to, expected, 1e-6);
  dnnl_graph_tensor_destroy(scalar);
}

void scratchpads(Client& client) {
  const logical_tensor a = f32(1, {48, 96}), b = f32(2, {96, 40}), c = f32(3, {48, 40}), d = f32(4, {48, 40});
  graph g(dnnl::engine::kind::cpu);
  g.add_op(op(1, op::kind::MatMul, {a, b}, {c}, "matmul"));
  op softmax(2, op::kind::SoftMax, {c}, {d}, "softmax");
  softmax.set_attr<int64_t>(op::attr::axis, 1);
  g.add_op(softmax);
  g.finalize();
  const std::vector<partition> parts = g.get_partitions();
  client.expect(parts.size() == 1, "matmul and softmax are one partition");
  const compiled_partition compiled = parts.at(0).compile({a, b}, {d}, client.engine);
  dnnl_graph_logical_tensor_t described{};
  client.expect(dnnl_graph_compiled_partition_get_scratchpad_logical_tensor(compiled.get(), &described) == dnnl_success,
                "scratchpad");
  size_t size = 0;
  dnnl_graph_logical_tensor_get_mem_size(&described, &size);
  std::printf("scratchpad: %zu bytes\n", size);
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(64, (size + 127) / 64 * 64), &std::free);
  const tensor pad(logical_tensor(described), client.engine, memory.get());
  Floats left = numbers(48 * 96, 1), right = numbers(96 * 40, 2), with(48 * 40), without(48 * 40);
  const tensor source(a, client.engine, left.data()), factor(b, client.engine, right.data()),
      result(d, client.engine, with.data());
  const_dnnl_graph_tensor_t inputs[] = {source.get(), factor.get()}, outputs[] = {result.get()};
  client.expect(dnnl_graph_compiled_partition_execute_v2(compiled.get(), client.stream.get(), 2, inputs, 1, outputs,
                                                         pad.get()) == dnnl_success,
                "executes in the caller's memory");
  compiled.execute(client.stream, {source, factor}, {tensor(d, client.engine, without.data())});
  client.expect(with == without, "the same bits in either memory");
  client.expect(dnnl_graph_compiled_partition_execute_v2(compiled.get(), client.stream.get(), 2, inputs, 1, outputs, nullptr) ==
                    dnnl_success,
                "a null scratchpad is none");
}

// Memory that the library allocates: newer versions do this for tensors without a handle.
void allocated_tensors(Client& client) {
  void* const allocate = reinterpret_cast<void*>(~uintptr_t{0});
  const logical_tensor known = f32(1, {3, 5});
  const tensor made(known, client.engine, allocate);
  auto* const values = static_cast<float*>(made.get_data_handle());
  client.expect(values != nullptr && values != allocate, "memory of the library's");
  for (int i = 0; values != nullptr && i < 15; ++i) values[i] = 1.0f;
  dnnl_graph_tensor_t none = nullptr;
  dnnl_graph_logical_tensor_t unknown;
  dnnl_graph_logical_tensor_init(&unknown, 1, dnnl_f32, 2, dnnl_graph_layout_type_strided, dnnl_graph_tensor_property_undef);
  client.expect(
      dnnl_graph_tensor_create(&none, &unknown, client.engine.get(), allocate) == dnnl_out_of_memory && none == nullptr,
      "none for a shape that is not known");
}

// Types that lamina cannot compute with: tensors of these types exist, but operations on them are rejected.
void foreign_types(Client& client) {
  const auto f4 = static_cast<dnnl_data_type_t>(14);
  const dnnl_dims_t dims = {3, 3};
  dnnl_graph_logical_tensor_t small;
  client.expect(dnnl_graph_logical_tensor_init_with_dims(&small, 1, f4, 2, dims, dnnl_graph_layout_type_strided,
                                                         dnnl_graph_tensor_property_undef) == dnnl_success,
                "an f4 tensor");
  size_t size = 0;
  client.expect(dnnl_graph_logical_tensor_get_mem_size(&small, &size) == dnnl_success && size == 5, "of five bytes");
  char memory[8];
  dnnl_graph_tensor_t made = nullptr;
  void* handle = nullptr;
  client.expect(dnnl_graph_tensor_create(&made, &small, client.engine.get(), memory) == dnnl_success &&
                    dnnl_graph_tensor_get_data_handle(made, &handle) == dnnl_success && handle == memory,
                "with memory");
  dnnl_graph_tensor_destroy(made);
  graph g(dnnl::engine::kind::cpu);
  client.expect(g.add_op(op(1, op::kind::Abs, {logical_tensor(small)}, {f32(2, {3, 3})}, "abs"), false) ==
                    dnnl::graph::status::invalid_graph_op,
                "no operation takes it");
}

}  // namespace

int main() {
  Client client;
  modes(client);
  process_wide(client);
  host_scalars(client);
  scratchpads(client);
  allocated_tensors(client);
  foreign_types(client);
  return client.exit_code();
}
