/* The C ABI from C: a graph of one ReLU from creation to execution, and an error with its sentence. */
#include <stdio.h>
#include <string.h>

#include "graph/lamina.h"
#include "graph/layer_norm.h"

#define CHECK(condition)                                                                        \
  do {                                                                                          \
    if (!(condition)) {                                                                         \
      printf("line %d: %s fails; last error: %s\n", __LINE__, #condition, lamina_last_error()); \
      return 1;                                                                                 \
    }                                                                                           \
  } while (0)

#define OK(call) CHECK((call) == lamina_success)

static int execute_relu(const_lamina_graph_partition_t partition, const lamina_graph_logical_tensor_t* src,
                        const lamina_graph_logical_tensor_t* dst) {
  lamina_engine_t engine;
  lamina_stream_t stream;
  lamina_graph_compiled_partition_t compiled;
  lamina_graph_tensor_t in, out;
  float x[4] = {-1, 2, -3, 4}, y[4] = {9, 9, 9, 9};
  const float expected[4] = {0, 2, 0, 4};

  OK(lamina_engine_create(&engine, lamina_cpu, 0));
  OK(lamina_stream_create(&stream, engine, lamina_stream_default_flags));
  OK(lamina_graph_compiled_partition_create(&compiled, partition));
  OK(lamina_graph_partition_compile(partition, compiled, 1, &src, 1, &dst, engine));
  OK(lamina_graph_tensor_create(&in, src, engine, x));
  OK(lamina_graph_tensor_create(&out, dst, engine, y));
  {
    const_lamina_graph_tensor_t inputs[1], outputs[1];
    inputs[0] = in;
    outputs[0] = out;
    OK(lamina_graph_compiled_partition_execute(compiled, stream, 1, inputs, 1, outputs));
  }
  OK(lamina_stream_wait(stream));
  CHECK(memcmp(y, expected, sizeof y) == 0);
  OK(lamina_graph_tensor_destroy(in));
  OK(lamina_graph_tensor_destroy(out));
  OK(lamina_graph_compiled_partition_destroy(compiled));
  OK(lamina_stream_destroy(stream));
  OK(lamina_engine_destroy(engine));
  return 0;
}

static int execute_layer_norm(void) {
  lamina_engine_t engine;
  lamina_stream_t stream;
  lamina_layer_norm_desc_t desc;
  lamina_layer_norm_t norm;
  lamina_graph_logical_tensor_t src;
  const lamina_dims_t dims = {1, 2};
  float x[2] = {-3, 3}, y[2] = {9, 9};
  void* memory[lamina_layer_norm_arg_count] = {[lamina_layer_norm_src] = x, [lamina_layer_norm_dst] = y};

  OK(lamina_engine_create(&engine, lamina_cpu, 0));
  OK(lamina_stream_create(&stream, engine, lamina_stream_default_flags));
  OK(lamina_graph_logical_tensor_init_with_dims(&src, 0, lamina_f32, 2, dims, lamina_graph_layout_type_strided,
                                                lamina_graph_tensor_property_variable));
  OK(lamina_layer_norm_desc_init(&desc, lamina_layer_norm_forward));
  desc.flags = 0;
  desc.tensors[lamina_layer_norm_src] = desc.tensors[lamina_layer_norm_dst] = &src;
  OK(lamina_layer_norm_create(&norm, &desc, engine));
  OK(lamina_layer_norm_execute(norm, stream, memory, NULL, 0));
  CHECK(y[0] > -1.0001f && y[0] < -0.9999f && y[1] > 0.9999f && y[1] < 1.0001f);
  OK(lamina_layer_norm_destroy(norm));
  OK(lamina_stream_destroy(stream));
  OK(lamina_engine_destroy(engine));
  return 0;
}

int main(void) {
  const lamina_dims_t dims = {2, 2};
  lamina_graph_logical_tensor_t src, dst;
  lamina_graph_op_t relu;
  lamina_graph_graph_t graph;
  lamina_graph_partition_t partition;
  size_t count = 0;

  OK(lamina_graph_logical_tensor_init_with_dims(&src, 0, lamina_f32, 2, dims, lamina_graph_layout_type_strided,
                                                lamina_graph_tensor_property_undef));
  OK(lamina_graph_logical_tensor_init_with_dims(&dst, 1, lamina_f32, 2, dims, lamina_graph_layout_type_strided,
                                                lamina_graph_tensor_property_undef));
  OK(lamina_graph_op_create(&relu, 0, lamina_graph_op_ReLU, "relu"));
  OK(lamina_graph_op_add_input(relu, &src));
  OK(lamina_graph_op_add_output(relu, &dst));
  OK(lamina_graph_graph_create(&graph, lamina_cpu));
  OK(lamina_graph_add_op(graph, relu));
  CHECK(lamina_graph_graph_filter(graph, lamina_graph_partition_policy_fusion) == lamina_invalid_graph);
  CHECK(strstr(lamina_last_error(), "finalize") != NULL);
  OK(lamina_graph_graph_finalize(graph));
  OK(lamina_graph_graph_filter(graph, lamina_graph_partition_policy_fusion));
  OK(lamina_graph_graph_get_partition_num(graph, &count));
  CHECK(count == 1);
  OK(lamina_graph_graph_get_partitions(graph, count, &partition));
  OK(lamina_graph_op_destroy(relu));
  OK(lamina_graph_graph_destroy(graph));
  if (execute_relu(partition, &src, &dst) != 0) return 1;
  if (execute_layer_norm() != 0) return 1;
  OK(lamina_graph_partition_destroy(partition));
  CHECK(lamina_engine_create(NULL, lamina_cpu, 0) == lamina_invalid_arguments);
  printf("ok\n");
  return 0;
}
