// Allocation failures in everything that builds or describes: engines, streams, tensors, ops, graphs, their texts and
// partitions.
#include <array>

#include "starve/starve_fixture.h"

namespace starve {
namespace {

class StarvedBuilding : public ::testing::Test {
 protected:
  void SetUp() override {
    LAMINA_EXPECT_OK(lamina_engine_create(&cpu_, lamina_cpu, 0));
    LAMINA_EXPECT_OK(lamina_graph_graph_create(&graph_, lamina_cpu));
  }
  void TearDown() override {
    lamina_graph_graph_destroy(graph_);
    lamina_engine_destroy(cpu_);
  }

  static lamina_graph_op_t made_op(size_t id, lamina_graph_op_kind_t kind, const std::vector<lamina_graph_logical_tensor_t>& in,
                                   const std::vector<lamina_graph_logical_tensor_t>& out) {
    lamina_graph_op_t op = nullptr;
    LAMINA_EXPECT_OK(lamina_graph_op_create(&op, id, kind, "an op with a name that no short string holds"));
    for (const auto& each : in) LAMINA_EXPECT_OK(lamina_graph_op_add_input(op, &each));
    for (const auto& each : out) LAMINA_EXPECT_OK(lamina_graph_op_add_output(op, &each));
    return op;
  }
  // Adds LayerNorm, then GELU, while allocations fail.
  void build() {
    const std::array ops{made_op(0, lamina_graph_op_LayerNorm, {src_, gamma_, beta_}, {norm_}),
                         made_op(1, lamina_graph_op_GELU, {norm_}, {dst_})};
    const uint8_t no = 0;
    LAMINA_EXPECT_OK(lamina_graph_op_set_attr_bool(ops[0], lamina_graph_op_attr_keep_stats, &no, 1));
    for (const lamina_graph_op_t op : ops) {
      EXPECT_GT(sweep({"lamina_graph_add_op",
                       [&] {
                         const lamina_status_t status = lamina_graph_add_op(graph_, op);
                         if (status != lamina_success) has_changed_ = has_changed_ || is_taken(op);
                         return status;
                       }}),
                LAMINA_FAILS_ALLOCATIONS ? 10 : -1);
      lamina_graph_op_destroy(op);
    }
    EXPECT_FALSE(has_changed_) << "a graph that refused an op knows of it";
  }
  // Whether the graph accepted the op's output.
  bool is_taken(lamina_graph_op_t op) const {
    size_t id = 0;
    lamina_graph_op_get_id(op, &id);
    lamina_graph_logical_tensor_t unused;
    return lamina_graph_graph_get_logical_tensor(graph_, id == 0 ? norm_.id : dst_.id, &unused) == lamina_success;
  }

  const lamina_graph_logical_tensor_t src_ = f32(0, {32, 96}), gamma_ = f32(1, {96}), beta_ = f32(2, {96}),
                                      norm_ = f32(3, {32, 96}), dst_ = f32(4, {32, 96});
  lamina_engine_t cpu_ = nullptr;
  lamina_graph_graph_t graph_ = nullptr;
  bool has_changed_ = false;
};

// Returns the object that `create` makes while allocations fail; `destroy` releases it.
template <typename Handle, typename Create, typename Destroy>
Handle created(const char* label, Create create, Destroy destroy) {
  const auto untouched = reinterpret_cast<Handle>(uintptr_t{64});
  Handle handle = untouched;
  bool was_written = false;
  const int64_t failed = sweep({label,
                                [&] {
                                  handle = untouched;
                                  const lamina_status_t status = create(&handle);
                                  was_written = was_written || (status != lamina_success && handle != untouched);
                                  return status;
                                },
                                [&] { destroy(handle); }});
  EXPECT_FALSE(was_written) << label << " failed, and wrote its result";
  EXPECT_GE(failed, LAMINA_FAILS_ALLOCATIONS) << label;
  return handle;
}

void* allocate(size_t size, size_t alignment) {
  return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}
void deallocate(void* memory) { free(memory); }

TEST_F(StarvedBuilding, EnginesStreamsAndAllocators) {
  const auto engine = created<lamina_engine_t>(
      "lamina_engine_create", [](auto* made) { return lamina_engine_create(made, lamina_cpu, 0); }, lamina_engine_destroy);
  const auto stream = created<lamina_stream_t>(
      "lamina_stream_create", [&](auto* made) { return lamina_stream_create(made, engine, lamina_stream_default_flags); },
      lamina_stream_destroy);
  const auto allocator = created<lamina_graph_allocator_t>(
      "lamina_graph_allocator_create", [](auto* made) { return lamina_graph_allocator_create(made, allocate, deallocate); },
      lamina_graph_allocator_destroy);
  const auto other = created<lamina_engine_t>(
      "lamina_graph_make_engine_with_allocator",
      [&](auto* made) { return lamina_graph_make_engine_with_allocator(made, lamina_cpu, 0, allocator); },
      lamina_engine_destroy);
  const lamina_threadpool_t pool{sizeof pool, nullptr, [](void*) { return 2; }, [](void*) { return 0; },
                                 [](void*, int count, void (*work)(void*, int), void* state) {
                                   for (int i = 0; i < count; ++i) work(state, i);
                                 }};
  const auto pooled = created<lamina_engine_t>(
      "lamina_graph_make_engine_with_threadpool",
      [&](auto* made) { return lamina_graph_make_engine_with_threadpool(made, lamina_cpu, 0, allocator, &pool); },
      lamina_engine_destroy);
  LAMINA_EXPECT_OK(lamina_stream_wait(stream));
  lamina_stream_destroy(stream);
  for (const lamina_engine_t each : {engine, other, pooled}) lamina_engine_destroy(each);
  lamina_graph_allocator_destroy(allocator);
}

TEST_F(StarvedBuilding, Tensors) {
  const auto tensor = created<lamina_graph_tensor_t>(
      "lamina_graph_tensor_create",
      [&](auto* made) { return lamina_graph_tensor_create(made, &src_, cpu_, LAMINA_MEMORY_ALLOCATE); },
      lamina_graph_tensor_destroy);
  void *before = nullptr, *after = nullptr;
  LAMINA_EXPECT_OK(lamina_graph_tensor_get_data_handle(tensor, &before));
  fail_allocation(1, Owner::all_but_llvm);
  const lamina_status_t status = lamina_graph_tensor_set_data_handle(tensor, LAMINA_MEMORY_ALLOCATE);
  EXPECT_EQ(status, stop_failing() ? lamina_out_of_memory : lamina_success);
  LAMINA_EXPECT_OK(lamina_graph_tensor_get_data_handle(tensor, &after));
  EXPECT_EQ(before == after, status != lamina_success) << "what it had is its own still";
  sweep({"lamina_graph_tensor_set_data_handle",
         [&] { return lamina_graph_tensor_set_data_handle(tensor, LAMINA_MEMORY_ALLOCATE); }});
  lamina_graph_logical_tensor_t described;
  sweep({"lamina_graph_tensor_get_logical_tensor", [&] { return lamina_graph_tensor_get_logical_tensor(tensor, &described); }});
  lamina_graph_tensor_destroy(tensor);

  lamina_graph_logical_tensor_t scalar;
  LAMINA_EXPECT_OK(lamina_graph_logical_tensor_init(&scalar, 7, lamina_f32, 0, lamina_graph_layout_type_strided,
                                                    lamina_graph_tensor_property_host_scalar));
  const float value = 2;
  lamina_graph_tensor_destroy(created<lamina_graph_tensor_t>(
      "lamina_graph_tensor_create_scalar", [&](auto* made) { return lamina_graph_tensor_create_scalar(made, &scalar, &value); },
      lamina_graph_tensor_destroy));
}

TEST_F(StarvedBuilding, LogicalTensors) {
  const lamina_dims_t dims{32, 96}, strides{96, 1};
  lamina_graph_logical_tensor_t made;
  const auto undef = lamina_graph_tensor_property_undef;
  sweep({"lamina_graph_logical_tensor_init",
         [&] { return lamina_graph_logical_tensor_init(&made, 0, lamina_f32, 2, lamina_graph_layout_type_strided, undef); }});
  sweep({"lamina_graph_logical_tensor_init_with_dims", [&] {
           return lamina_graph_logical_tensor_init_with_dims(&made, 0, lamina_f32, 2, dims, lamina_graph_layout_type_any,
                                                             undef);
         }});
  sweep({"lamina_graph_logical_tensor_init_with_strides",
         [&] { return lamina_graph_logical_tensor_init_with_strides(&made, 0, lamina_f32, 2, dims, strides, undef); }});
  size_t size = 0;
  uint8_t equal = 0;
  sweep({"lamina_graph_logical_tensor_get_mem_size", [&] { return lamina_graph_logical_tensor_get_mem_size(&made, &size); }});
  sweep({"lamina_graph_logical_tensor_is_equal", [&] { return lamina_graph_logical_tensor_is_equal(&made, &src_, &equal); }});
  EXPECT_EQ(size, 32 * 96 * sizeof(float));
  EXPECT_EQ(equal, 1);
}

TEST_F(StarvedBuilding, Ops) {
  const char* const name = "an op with a name that no short string holds";
  const auto op = created<lamina_graph_op_t>(
      "lamina_graph_op_create", [&](auto* made) { return lamina_graph_op_create(made, 0, lamina_graph_op_Dequantize, name); },
      lamina_graph_op_destroy);
  sweep({"lamina_graph_op_add_input", [&] { return lamina_graph_op_add_input(op, &src_); }});
  sweep({"lamina_graph_op_add_output", [&] { return lamina_graph_op_add_output(op, &dst_); }});
  const std::vector<float> scales(40, 1.5F);
  const std::vector<int64_t> points(40, 1);
  const std::string type = "per_channel but longer than a short string is";
  sweep({"lamina_graph_op_set_attr_f32",
         [&] { return lamina_graph_op_set_attr_f32(op, lamina_graph_op_attr_scales, scales.data(), scales.size()); }});
  const double epsilon = 1e-5;
  sweep({"lamina_graph_op_set_attr_f64",
         [&] { return lamina_graph_op_set_attr_f64(op, lamina_graph_op_attr_epsilon, &epsilon, 1); }});
  sweep({"lamina_graph_op_set_attr_s64",
         [&] { return lamina_graph_op_set_attr_s64(op, lamina_graph_op_attr_zps, points.data(), points.size()); }});
  sweep({"lamina_graph_op_set_attr_str",
         [&] { return lamina_graph_op_set_attr_str(op, lamina_graph_op_attr_qtype, type.data(), type.size()); }});
  const uint8_t yes = 1;
  sweep({"lamina_graph_op_set_attr_bool",
         [&] { return lamina_graph_op_set_attr_bool(op, lamina_graph_op_attr_keep_dims, &yes, 1); }});
  lamina_graph_op_destroy(op);
}

TEST_F(StarvedBuilding, WhatAnOpTellsOfItself) {
  const lamina_graph_op_t op = made_op(0, lamina_graph_op_LayerNorm, {src_, gamma_, beta_}, {});
  std::array<lamina_graph_logical_tensor_t, 4> outputs;
  size_t num = 0;
  sweep({"lamina_graph_op_infer_outputs", [&] {
           num = outputs.size();
           return lamina_graph_op_infer_outputs(op, &num, outputs.data());
         }});
  EXPECT_EQ(num, 3u);
  Text text;
  sweep({"lamina_graph_op_kind_write_schema",
         [&] { return lamina_graph_op_kind_write_schema(lamina_graph_op_LayerNorm, Text::take, &text); }});
  EXPECT_GT(text.length, 100u);
  lamina_graph_op_destroy(op);
}

TEST_F(StarvedBuilding, GraphsAndPartitions) {
  lamina_graph_graph_destroy(created<lamina_graph_graph_t>(
      "lamina_graph_graph_create", [](auto* made) { return lamina_graph_graph_create(made, lamina_cpu); },
      lamina_graph_graph_destroy));
  lamina_graph_graph_destroy(created<lamina_graph_graph_t>(
      "lamina_graph_graph_create_with_fpmath_mode",
      [](auto* made) { return lamina_graph_graph_create_with_fpmath_mode(made, lamina_cpu, lamina_fpmath_mode_bf16); },
      lamina_graph_graph_destroy));
  build();
  sweep({"lamina_graph_graph_set_constant", [&] { return lamina_graph_graph_set_constant(graph_, 1, 1); }});
  sweep({"lamina_graph_graph_finalize", [&] { return lamina_graph_graph_finalize(graph_); }});
  size_t inputs = 0, outputs = 0, num = 0;
  sweep({"lamina_graph_graph_get_border_num", [&] { return lamina_graph_graph_get_border_num(graph_, &inputs, &outputs); }});
  std::vector<lamina_graph_logical_tensor_t> in(inputs), out(outputs);
  sweep({"lamina_graph_graph_get_border",
         [&] { return lamina_graph_graph_get_border(graph_, inputs, in.data(), outputs, out.data()); }});
  EXPECT_EQ(inputs, 3u);
  const lamina_graph_partition_policy_t fusion = lamina_graph_partition_policy_fusion;
  EXPECT_GT(sweep({"lamina_graph_graph_filter", [&] { return lamina_graph_graph_filter(graph_, fusion); }}),
            LAMINA_FAILS_ALLOCATIONS ? 100 : -1);
  LAMINA_EXPECT_OK(lamina_graph_graph_get_partition_num(graph_, &num));
  EXPECT_EQ(num, 1u);
  const auto partition = created<lamina_graph_partition_t>(
      "lamina_graph_graph_get_partitions", [&](auto* made) { return lamina_graph_graph_get_partitions(graph_, 1, made); },
      lamina_graph_partition_destroy);
  sweep({"lamina_graph_partition_get_op_num", [&] { return lamina_graph_partition_get_op_num(partition, &num); }});
  EXPECT_EQ(num, 2u);
  std::array<size_t, 2> ids;
  sweep({"lamina_graph_partition_get_ops", [&] { return lamina_graph_partition_get_ops(partition, 2, ids.data()); }});
  LAMINA_EXPECT_OK(lamina_graph_partition_get_input_ports_num(partition, &num));
  in.resize(num);
  sweep({"lamina_graph_partition_get_input_ports",
         [&] { return lamina_graph_partition_get_input_ports(partition, num, in.data()); }});
  sweep({"lamina_graph_partition_get_output_ports",
         [&] { return lamina_graph_partition_get_output_ports(partition, 1, out.data()); }});
  Text text;
  sweep({"lamina_graph_partition_write_reasons",
         [&] { return lamina_graph_partition_write_reasons(partition, Text::take, &text); }});
  EXPECT_NE(text.str().find("fused.consumer"), std::string::npos);
  const const_lamina_graph_partition_t given = partition;
  for (const auto format : {lamina_graph_explanation_json, lamina_graph_explanation_html, lamina_graph_explanation_dot}) {
    sweep({.label = "lamina_graph_partitions_explain",
           .call =
               [&] {
                 return lamina_graph_partitions_explain(1, &given, nullptr, nullptr, format, "title", nullptr, Text::take,
                                                        &text);
               },
           .step = 7});
    EXPECT_GT(text.length, 100u);
  }
  lamina_graph_partition_destroy(partition);
}

TEST_F(StarvedBuilding, PartitionsOfOneOp) {
  const lamina_graph_op_t op = made_op(0, lamina_graph_op_GELU, {norm_}, {dst_});
  const auto partition = created<lamina_graph_partition_t>(
      "lamina_graph_partition_create_with_op",
      [&](auto* made) { return lamina_graph_partition_create_with_op(made, op, lamina_cpu); }, lamina_graph_partition_destroy);
  lamina_graph_compiled_partition_destroy(created<lamina_graph_compiled_partition_t>(
      "lamina_graph_compiled_partition_create",
      [&](auto* made) { return lamina_graph_compiled_partition_create(made, partition); },
      lamina_graph_compiled_partition_destroy));
  lamina_graph_partition_destroy(partition);
  lamina_graph_op_destroy(op);
}

TEST_F(StarvedBuilding, Dumps) {
  build();
  const std::string json = json_of(graph_);
  Text text;
  sweep({"lamina_graph_graph_write_json", [&] { return lamina_graph_graph_write_json(graph_, Text::take, &text); }});
  EXPECT_EQ(text.str(), json);
  const auto read = created<lamina_graph_graph_t>(
      "lamina_graph_graph_create_from_json",
      [&](auto* made) { return lamina_graph_graph_create_from_json(made, json.data(), json.size(), "dump"); },
      lamina_graph_graph_destroy);
  EXPECT_EQ(json_of(read), json);
  lamina_graph_logical_tensor_t tensor;
  sweep({"lamina_graph_graph_get_logical_tensor", [&] { return lamina_graph_graph_get_logical_tensor(read, 0, &tensor); }});
  lamina_graph_graph_destroy(read);
}

// Reporting a refused call needs memory too.
TEST_F(StarvedBuilding, RefusalsWithoutMemory) {
  const lamina_graph_op_t op = made_op(0, lamina_graph_op_LayerNorm, {gamma_}, {norm_});
  int64_t number = 0;
  for (bool has_failed = true; has_failed;) {
    fail_allocation(++number, Owner::all_but_llvm);
    const lamina_status_t status = lamina_graph_add_op(graph_, op);
    has_failed = stop_failing();
    EXPECT_NE(status, lamina_success);
    EXPECT_TRUE(has_failed || status != lamina_out_of_memory) << lamina_last_error();
  }
  EXPECT_NE(std::string(lamina_last_error()).find("LayerNorm"), std::string::npos) << lamina_last_error();
  lamina_graph_op_destroy(op);
}

}  // namespace
}  // namespace starve
