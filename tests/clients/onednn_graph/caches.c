/* A client in C99: partition ids, in-place pairs, the caches, and an execution. Exits with 0 when all holds.
 */
#include <oneapi/dnnl/dnnl_graph.h>
#include <stdint.h>
#include <stdio.h>

static int failures = 0;

static void expect(int holds, const char* what) {
  printf("%s: %s\n", what, holds ? "ok" : "WRONG");
  failures += !holds;
}

#define CHECK(call) expect((call) == dnnl_success, #call)

static dnnl_graph_logical_tensor_t tensor_of(size_t id) {
  const dnnl_dims_t dims = {3, 4};
  dnnl_graph_logical_tensor_t tensor;
  CHECK(dnnl_graph_logical_tensor_init_with_dims(&tensor, id, dnnl_f32, 2, dims, dnnl_graph_layout_type_strided,
                                                 dnnl_graph_tensor_property_undef));
  return tensor;
}

static void caches(void) {
  int value = -5;
  CHECK(dnnl_graph_set_constant_tensor_cache(1));
  CHECK(dnnl_graph_get_constant_tensor_cache(&value));
  expect(value == 1, "the constant cache is on");
  CHECK(dnnl_graph_set_constant_tensor_cache(0));
  CHECK(dnnl_graph_get_constant_tensor_cache(&value));
  expect(value == 0, "the constant cache is off");
  expect(dnnl_graph_set_constant_tensor_cache(-1) == dnnl_invalid_arguments, "no negative flag");
  expect(dnnl_graph_get_constant_tensor_cache(NULL) == dnnl_invalid_arguments, "no null flag");
  CHECK(dnnl_graph_set_compiled_partition_cache_capacity(2));
  CHECK(dnnl_graph_get_compiled_partition_cache_capacity(&value));
  expect(value == 2, "two compiled partitions are kept");
  expect(dnnl_graph_set_compiled_partition_cache_capacity(-1) == dnnl_invalid_arguments, "no negative capacity");
  CHECK(dnnl_graph_set_compiled_partition_cache_capacity(1024));
}

/* c = a + b, then relu in a partition of its own under the debug policy. */
static void partitions(void) {
  dnnl_graph_logical_tensor_t a = tensor_of(10), b = tensor_of(11), c = tensor_of(12), d = tensor_of(13);
  dnnl_graph_op_t add = NULL, relu = NULL;
  dnnl_graph_graph_t graph = NULL;
  dnnl_graph_partition_t parts[2] = {NULL, NULL};
  size_t num = 0, ids[2] = {0, 0}, op_id = 0;
  CHECK(dnnl_graph_op_create(&add, 5, dnnl_graph_op_add, "add"));
  CHECK(dnnl_graph_op_add_input(add, &a));
  CHECK(dnnl_graph_op_add_input(add, &b));
  CHECK(dnnl_graph_op_add_output(add, &c));
  CHECK(dnnl_graph_op_set_attr_str(add, dnnl_graph_op_attr_auto_broadcast, "none", 1));
  CHECK(dnnl_graph_op_create(&relu, 3, dnnl_graph_op_relu, "relu"));
  CHECK(dnnl_graph_op_add_input(relu, &c));
  CHECK(dnnl_graph_op_add_output(relu, &d));
  CHECK(dnnl_graph_graph_create(&graph, dnnl_cpu));
  CHECK(dnnl_graph_add_op(graph, add));
  CHECK(dnnl_graph_add_op(graph, relu));
  CHECK(dnnl_graph_graph_finalize(graph));
  CHECK(dnnl_graph_graph_filter(graph, dnnl_graph_partition_policy_debug));
  CHECK(dnnl_graph_graph_get_partition_num(graph, &num));
  expect(num == 2, "two partitions");
  CHECK(dnnl_graph_graph_get_partitions(graph, num, parts));
  CHECK(dnnl_graph_graph_destroy(graph));
  CHECK(dnnl_graph_op_destroy(add));
  CHECK(dnnl_graph_op_destroy(relu));
  CHECK(dnnl_graph_partition_get_id(parts[0], &ids[0]));
  CHECK(dnnl_graph_partition_get_id(parts[1], &ids[1]));
  expect(ids[0] != ids[1], "partitions have ids of their own");
  CHECK(dnnl_graph_partition_get_ops(parts[0], 1, &op_id));
  expect(op_id == 5, "the addition comes first");

  dnnl_engine_t engine = NULL;
  dnnl_stream_t stream = NULL;
  CHECK(dnnl_engine_create(&engine, dnnl_cpu, 0));
  CHECK(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
  dnnl_graph_compiled_partition_t compiled = NULL;
  const dnnl_graph_logical_tensor_t* inputs[2] = {&a, &b};
  const dnnl_graph_logical_tensor_t* outputs[1] = {&c};
  CHECK(dnnl_graph_compiled_partition_create(&compiled, parts[0]));
  CHECK(dnnl_graph_partition_compile(parts[0], compiled, 2, inputs, 1, outputs, engine));
  const dnnl_graph_inplace_pair_t* pairs = NULL;
  CHECK(dnnl_graph_compiled_partition_get_inplace_ports(compiled, &num, &pairs));
  expect(num >= 1 && pairs[0].output_id == 12 && (pairs[0].input_id == 10 || pairs[0].input_id == 11),
         "the sum may lie in place");

  float left[12], right[12];
  for (int i = 0; i < 12; ++i) {
    left[i] = (float)i;
    right[i] = 100.0f;
  }
  float* const shared = num > 0 && pairs[0].input_id == 11 ? right : left;
  dnnl_graph_tensor_t in0 = NULL, in1 = NULL, out = NULL;
  CHECK(dnnl_graph_tensor_create(&in0, &a, engine, left));
  CHECK(dnnl_graph_tensor_create(&in1, &b, engine, right));
  CHECK(dnnl_graph_tensor_create(&out, &c, engine, shared));
  const_dnnl_graph_tensor_t in[2];
  const_dnnl_graph_tensor_t result[1];
  in[0] = in0;
  in[1] = in1;
  result[0] = out;
  CHECK(dnnl_graph_compiled_partition_execute(compiled, stream, 2, in, 1, result));
  CHECK(dnnl_stream_wait(stream));
  int right_values = 1;
  for (int i = 0; i < 12; ++i) right_values = right_values && shared[i] == (float)i + 100.0f;
  expect(right_values, "the sum, in place");
  CHECK(dnnl_graph_tensor_destroy(in0));
  CHECK(dnnl_graph_tensor_destroy(in1));
  CHECK(dnnl_graph_tensor_destroy(out));
  CHECK(dnnl_graph_compiled_partition_destroy(compiled));
  CHECK(dnnl_graph_partition_destroy(parts[0]));
  CHECK(dnnl_graph_partition_destroy(parts[1]));
  CHECK(dnnl_stream_destroy(stream));
  CHECK(dnnl_engine_destroy(engine));
}

int main(void) {
  caches();
  partitions();
  return failures == 0 ? 0 : 1;
}
