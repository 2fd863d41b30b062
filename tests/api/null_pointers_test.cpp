// The C ABI rejects null with a message that names the function and the argument, and never crashes.
#include "api_fixture.h"
#include "graph/layer_norm.h"

namespace api_test {
namespace {

using ::testing::HasSubstr;

void expect_refused(lamina_status_t status, const std::string& function, const std::string& argument) {
  EXPECT_EQ(status, lamina_invalid_arguments) << function;
  EXPECT_THAT(lamina_last_error(), HasSubstr(function + ": argument " + argument + " is null"));
}
#define EXPECT_REFUSED(argument, function, ...) expect_refused(function(__VA_ARGS__), #function, argument)

TEST(NullPointers, EngineStreamAllocator) {
  lamina_engine_kind_t kind;
  EXPECT_REFUSED("engine", lamina_engine_create, nullptr, lamina_cpu, 0);
  EXPECT_REFUSED("flag", lamina_graph_get_constant_tensor_cache, nullptr);
  EXPECT_REFUSED("engine", lamina_engine_get_kind, nullptr, &kind);
  EXPECT_REFUSED("allocator", lamina_graph_allocator_create, nullptr, nullptr, nullptr);
  lamina_engine_t engine = nullptr;
  EXPECT_REFUSED("allocator", lamina_graph_make_engine_with_allocator, &engine, lamina_cpu, 0, nullptr);
  EXPECT_REFUSED("pool", lamina_graph_make_engine_with_threadpool, &engine, lamina_cpu, 0, nullptr, nullptr);
  const lamina_threadpool_t pool{};
  EXPECT_REFUSED("engine", lamina_graph_make_engine_with_threadpool, nullptr, lamina_cpu, 0, nullptr, &pool);
  lamina_stream_t stream = nullptr;
  EXPECT_REFUSED("engine", lamina_stream_create, &stream, nullptr, lamina_stream_default_flags);
  EXPECT_REFUSED("stream", lamina_stream_get_engine, nullptr, &engine);
  EXPECT_REFUSED("stream", lamina_stream_wait, nullptr);
}

TEST(NullPointers, LayerNorm) {
  const engine cpu(engine::kind::cpu, 0);
  lamina_layer_norm_desc_t desc;
  lamina_layer_norm_t norm = nullptr;
  size_t size;
  lamina_graph_logical_tensor_t tensor;
  uint8_t shares;
  EXPECT_REFUSED("desc", lamina_layer_norm_desc_init_sized, nullptr, sizeof desc, lamina_layer_norm_forward);
  EXPECT_EQ(lamina_layer_norm_desc_init(nullptr, lamina_layer_norm_forward), lamina_invalid_arguments);
  EXPECT_REFUSED("layer_norm", lamina_layer_norm_create, nullptr, &desc, cpu.get());
  EXPECT_REFUSED("desc", lamina_layer_norm_create, &norm, nullptr, cpu.get());
  EXPECT_REFUSED("engine", lamina_layer_norm_create, &norm, &desc, nullptr);
  EXPECT_REFUSED("layer_norm", lamina_layer_norm_get_workspace_size, nullptr, &size);
  EXPECT_REFUSED("layer_norm", lamina_layer_norm_query, nullptr, lamina_layer_norm_src, &tensor);
  EXPECT_REFUSED("layer_norm", lamina_layer_norm_may_share, nullptr, lamina_layer_norm_src, lamina_layer_norm_dst, &shares);
  EXPECT_REFUSED("layer_norm", lamina_layer_norm_execute, nullptr, nullptr, nullptr, nullptr, 0);
}

TEST(NullPointers, LogicalTensor) {
  lamina_graph_logical_tensor_t t;
  size_t size;
  uint8_t equal;
  const auto strided = lamina_graph_layout_type_strided;
  const auto undef = lamina_graph_tensor_property_undef;
  EXPECT_REFUSED("logical_tensor", lamina_graph_logical_tensor_init, nullptr, 0, lamina_f32, 1, strided, undef);
  EXPECT_REFUSED("dims", lamina_graph_logical_tensor_init_with_dims, &t, 0, lamina_f32, 1, nullptr, strided, undef);
  EXPECT_REFUSED("dims", lamina_graph_logical_tensor_init_with_strides, &t, 0, lamina_f32, 1, nullptr, nullptr, undef);
  EXPECT_REFUSED("logical_tensor", lamina_graph_logical_tensor_get_mem_size, nullptr, &size);
  EXPECT_REFUSED("left", lamina_graph_logical_tensor_is_equal, nullptr, &t, &equal);
  EXPECT_EQ(lamina_graph_logical_tensor_init_with_dims(&t, 0, lamina_f32, 0, nullptr, strided, undef), lamina_success);
}

TEST(NullPointers, Op) {
  lamina_graph_op_t op = nullptr;
  EXPECT_REFUSED("op", lamina_graph_op_create, nullptr, 0, lamina_graph_op_ReLU, "");
  ASSERT_EQ(lamina_graph_op_create(&op, 0, lamina_graph_op_LayerNorm, nullptr), lamina_success);
  EXPECT_REFUSED("input", lamina_graph_op_add_input, op, nullptr);
  EXPECT_REFUSED("op", lamina_graph_op_add_output, nullptr, nullptr);
  EXPECT_REFUSED("value", lamina_graph_op_set_attr_f32, op, lamina_graph_op_attr_epsilon, nullptr, 1);
  EXPECT_REFUSED("value", lamina_graph_op_set_attr_f64, op, lamina_graph_op_attr_epsilon, nullptr, 1);
  EXPECT_REFUSED("value", lamina_graph_op_set_attr_s64, op, lamina_graph_op_attr_begin_norm_axis, nullptr, 1);
  EXPECT_REFUSED("value", lamina_graph_op_set_attr_bool, op, lamina_graph_op_attr_use_affine, nullptr, 1);
  EXPECT_REFUSED("value", lamina_graph_op_set_attr_str, op, lamina_graph_op_attr_mode, nullptr, 1);
  EXPECT_REFUSED("id", lamina_graph_op_get_id, op, nullptr);
  EXPECT_REFUSED("kind", lamina_graph_op_get_kind, op, nullptr);
  lamina_graph_op_destroy(op);
}

TEST(NullPointers, Graph) {
  lamina_graph_graph_t g = nullptr;
  size_t num;
  uint8_t finalized;
  EXPECT_REFUSED("graph", lamina_graph_graph_set_constant, nullptr, 0, 1.0);
  EXPECT_REFUSED("graph", lamina_graph_graph_create_with_fpmath_mode, nullptr, lamina_cpu, lamina_fpmath_mode_strict);
  ASSERT_EQ(lamina_graph_graph_create(&g, lamina_cpu), lamina_success);
  EXPECT_REFUSED("op", lamina_graph_add_op, g, nullptr);
  EXPECT_REFUSED("graph", lamina_graph_graph_finalize, nullptr);
  EXPECT_REFUSED("graph", lamina_graph_graph_is_finalized, nullptr, &finalized);
  EXPECT_REFUSED("graph", lamina_graph_graph_filter, nullptr, lamina_graph_partition_policy_fusion);
  EXPECT_REFUSED("num", lamina_graph_graph_get_partition_num, g, nullptr);
  EXPECT_REFUSED("graph", lamina_graph_graph_get_partition_num, nullptr, &num);
  lamina_graph_graph_destroy(g);
}

TEST(NullPointers, PartitionAndCompiledPartition) {
  lamina_graph_partition_t p = nullptr;
  lamina_graph_compiled_partition_t c = nullptr;
  lamina_graph_logical_tensor_t t;
  size_t num;
  uint8_t can_share;
  const lamina_graph_inplace_pair_t* pairs = nullptr;
  EXPECT_REFUSED("op", lamina_graph_partition_create_with_op, &p, nullptr, lamina_cpu);
  EXPECT_REFUSED("partition", lamina_graph_partition_get_id, nullptr, &num);
  EXPECT_REFUSED("partition", lamina_graph_partition_get_op_num, nullptr, &num);
  EXPECT_REFUSED("partition", lamina_graph_partition_get_input_ports, nullptr, 0, &t);
  EXPECT_REFUSED("partition", lamina_graph_partition_compile, nullptr, nullptr, 0, nullptr, 0, nullptr, nullptr);
  EXPECT_REFUSED("partition", lamina_graph_partition_tune, nullptr, 0, nullptr, 0, nullptr, nullptr, 0, nullptr);
  EXPECT_REFUSED("partition", lamina_graph_compiled_partition_create, &c, nullptr);
  EXPECT_REFUSED("compiled_partition", lamina_graph_compiled_partition_query_logical_tensor, nullptr, 0, &t);
  EXPECT_REFUSED("compiled_partition", lamina_graph_compiled_partition_get_inplace_ports, nullptr, &num, &pairs);
  EXPECT_REFUSED("compiled_partition", lamina_graph_compiled_partition_may_share, nullptr, 0, 1, &can_share);
  EXPECT_REFUSED("compiled_partition", lamina_graph_compiled_partition_execute_v2, nullptr, nullptr, 0, nullptr, 0, nullptr,
                 nullptr);
  EXPECT_REFUSED("compiled_partition", lamina_graph_compiled_partition_get_scratchpad_logical_tensor, nullptr, &t);
}

TEST(NullPointers, Tensor) {
  lamina_graph_tensor_t t = nullptr;
  lamina_graph_logical_tensor_t lt;
  void* handle = nullptr;
  EXPECT_REFUSED("logical_tensor", lamina_graph_tensor_create, &t, nullptr, nullptr, nullptr);
  EXPECT_REFUSED("tensor", lamina_graph_tensor_get_data_handle, nullptr, &handle);
  EXPECT_REFUSED("tensor", lamina_graph_tensor_set_data_handle, nullptr, nullptr);
  lamina_engine_t engine = nullptr;
  EXPECT_REFUSED("tensor", lamina_graph_tensor_get_engine, nullptr, &engine);
  EXPECT_REFUSED("tensor", lamina_graph_tensor_get_logical_tensor, nullptr, &lt);
}

TEST(NullPointers, Settings) {
  EXPECT_REFUSED("mode", lamina_get_default_fpmath_mode, nullptr);
  EXPECT_REFUSED("capacity", lamina_graph_get_compiled_partition_cache_capacity, nullptr);
  EXPECT_REFUSED("mebibytes", lamina_graph_get_constant_tensor_cache_capacity, lamina_cpu, nullptr);
}

TEST(NullPointers, DestroyAcceptsThem) {
  EXPECT_EQ(lamina_engine_destroy(nullptr), lamina_success);
  EXPECT_EQ(lamina_stream_destroy(nullptr), lamina_success);
  EXPECT_EQ(lamina_graph_allocator_destroy(nullptr), lamina_success);
  EXPECT_EQ(lamina_graph_op_destroy(nullptr), lamina_success);
  EXPECT_EQ(lamina_graph_graph_destroy(nullptr), lamina_success);
  EXPECT_EQ(lamina_graph_partition_destroy(nullptr), lamina_success);
  EXPECT_EQ(lamina_graph_compiled_partition_destroy(nullptr), lamina_success);
  EXPECT_EQ(lamina_graph_tensor_destroy(nullptr), lamina_success);
}

TEST(NullPointers, EmptyCppObjectIsRefusedToo) {
  EXPECT_THAT(failure_of([] { partition().get_id(); }), FailsWith(lamina_invalid_arguments, "was never created"));
}

}  // namespace
}  // namespace api_test
