/* The C interface: a graph of one SoftMax, compiled and run. Every function returns a status; lamina_last_error() has the
 * sentence. */
#include <graph/lamina.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                            \
  do {                                                         \
    if ((call) != lamina_success) {                            \
      fprintf(stderr, "%s: %s\n", #call, lamina_last_error()); \
      exit(1);                                                 \
    }                                                          \
  } while (0)

enum { kRows = 4, kColumns = 8 };

int main(void) {
  const lamina_dims_t shape = {kRows, kColumns};
  lamina_graph_logical_tensor_t src, dst;
  CHECK(lamina_graph_logical_tensor_init_with_dims(&src, 0, lamina_f32, 2, shape, lamina_graph_layout_type_strided,
                                                   lamina_graph_tensor_property_undef));
  CHECK(lamina_graph_logical_tensor_init_with_dims(&dst, 1, lamina_f32, 2, shape, lamina_graph_layout_type_strided,
                                                   lamina_graph_tensor_property_undef));
  lamina_graph_op_t softmax;
  const int64_t axis = 1;
  CHECK(lamina_graph_op_create(&softmax, 0, lamina_graph_op_SoftMax, "softmax"));
  CHECK(lamina_graph_op_add_input(softmax, &src));
  CHECK(lamina_graph_op_add_output(softmax, &dst));
  CHECK(lamina_graph_op_set_attr_s64(softmax, lamina_graph_op_attr_axis, &axis, 1));

  lamina_graph_graph_t graph;
  CHECK(lamina_graph_graph_create(&graph, lamina_cpu));
  CHECK(lamina_graph_add_op(graph, softmax));
  CHECK(lamina_graph_graph_finalize(graph));
  CHECK(lamina_graph_graph_filter(graph, lamina_graph_partition_policy_fusion));
  lamina_graph_partition_t partition;
  CHECK(lamina_graph_graph_get_partitions(graph, 1, &partition));

  lamina_engine_t engine;
  lamina_stream_t stream;
  CHECK(lamina_engine_create(&engine, lamina_cpu, 0));
  CHECK(lamina_stream_create(&stream, engine, lamina_stream_default_flags));
  const lamina_graph_logical_tensor_t *inputs[] = {&src}, *outputs[] = {&dst};
  lamina_graph_compiled_partition_t compiled;
  CHECK(lamina_graph_compiled_partition_create(&compiled, partition));
  CHECK(lamina_graph_partition_compile(partition, compiled, 1, inputs, 1, outputs, engine));

  float x[kRows * kColumns], y[kRows * kColumns];
  for (int i = 0; i < kRows * kColumns; ++i) x[i] = (float)(i % 5);
  lamina_graph_tensor_t from, to;
  CHECK(lamina_graph_tensor_create(&from, &src, engine, x));
  CHECK(lamina_graph_tensor_create(&to, &dst, engine, y));
  const_lamina_graph_tensor_t ins[] = {from}, outs[] = {to};
  CHECK(lamina_graph_compiled_partition_execute(compiled, stream, 1, ins, 1, outs));
  CHECK(lamina_stream_wait(stream));

  float sum = 0;
  for (int i = 0; i < kColumns; ++i) sum += y[i];
  printf("the first row sums to %g\n", sum);

  lamina_graph_tensor_destroy(from);
  lamina_graph_tensor_destroy(to);
  lamina_graph_compiled_partition_destroy(compiled);
  lamina_graph_partition_destroy(partition);
  lamina_graph_graph_destroy(graph);
  lamina_graph_op_destroy(softmax);
  lamina_stream_destroy(stream);
  lamina_engine_destroy(engine);
  return fabsf(sum - 1) < 1e-6f ? 0 : 1;
}
