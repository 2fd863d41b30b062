// Allocation failures with an OpenCL device, PoCL's if there is no other. The driver's own allocations never fail and are not
// counted: memory that it keeps is not a leak of lamina.
#include "../api/graph_cases.h"
#include "../api/opencl_caller.h"
#include "starve/starve_fixture.h"

namespace starve {
namespace {

using api_test::f32;

// The caller's own objects, which exist until the process ends, like those of a driver.
struct Caller {
  api_test::Opencl cl;
  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;

  Caller() {
    if (cl.library != nullptr) device = cl.first_device();
    if (device == nullptr) return;
    int status = 0;
    context = cl.find<cl_context (*)(void*, unsigned, cl_device_id*, void*, void*, int*)>("clCreateContext")(
        nullptr, 1, &device, nullptr, nullptr, &status);
    queue = cl.find<cl_command_queue (*)(cl_context, cl_device_id, uint64_t, int*)>("clCreateCommandQueue")(context, device, 0,
                                                                                                            &status);
  }
  void write(const lamina::graph::tensor& to, const std::vector<float>& values) const {
    cl.find<int (*)(cl_command_queue, void*, unsigned, size_t, size_t, const void*, unsigned, void*, void*)>(
        "clEnqueueWriteBuffer")(queue, to.get_data_handle(), 1, 0, values.size() * sizeof(float), values.data(), 0, nullptr,
                                nullptr);
  }
  std::vector<float> read(const lamina::graph::tensor& from, size_t count) const {
    std::vector<float> values(count);
    cl.find<int (*)(cl_command_queue, void*, unsigned, size_t, size_t, void*, unsigned, void*, void*)>("clEnqueueReadBuffer")(
        queue, from.get_data_handle(), 1, 0, count * sizeof(float), values.data(), 0, nullptr, nullptr);
    return values;
  }
};

const Caller& caller() {
  static const Caller& the_caller = *new Caller;
  return the_caller;
}

class StarvedGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (caller().queue == nullptr) GTEST_SKIP() << "no OpenCL device on this machine";
    LAMINA_EXPECT_OK(lamina_graph_set_compiled_partition_cache_capacity(0));
  }
  void TearDown() override { LAMINA_EXPECT_OK(lamina_graph_set_compiled_partition_cache_capacity(1024)); }
};

// Memory that a call leaves in the driver is not lamina's.
Sweep of_lamina(const char* label, std::function<lamina_status_t()> call, std::function<void()> undo = nullptr) {
  return {.label = label,
          .call = std::move(call),
          .undo = std::move(undo),
          .owner = Owner::lamina,
          .step = 7,
          .keeps_more_each_time = true};
}

void* no_memory(size_t, size_t, cl_device_id, cl_context) { return nullptr; }
void no_release(void*, cl_device_id, cl_context, cl_event) {}

TEST_F(StarvedGpu, EnginesStreamsAndMemory) {
  lamina_engine_t engine = nullptr, other = nullptr;
  lamina_stream_t stream = nullptr;
  lamina_graph_allocator_t allocator = nullptr;
  lamina_graph_tensor_t tensor = nullptr;
  sweep(of_lamina(
      "lamina_engine_create", [&] { return lamina_engine_create(&other, lamina_gpu, 0); },
      [&] { lamina_engine_destroy(other); }));
  lamina_engine_destroy(other);
  sweep(of_lamina(
      "lamina_ocl_interop_engine_create",
      [&] { return lamina_ocl_interop_engine_create(&engine, caller().device, caller().context); },
      [&] { lamina_engine_destroy(engine); }));
  const int64_t failed = sweep(of_lamina(
      "lamina_ocl_interop_stream_create", [&] { return lamina_ocl_interop_stream_create(&stream, engine, caller().queue); },
      [&] { lamina_stream_destroy(stream); }));
  EXPECT_GE(failed, LAMINA_FAILS_ALLOCATIONS);
  sweep(of_lamina(
      "lamina_graph_ocl_interop_allocator_create",
      [&] { return lamina_graph_ocl_interop_allocator_create(&allocator, no_memory, no_release); },
      [&] { lamina_graph_allocator_destroy(allocator); }));
  sweep(of_lamina(
      "lamina_graph_ocl_interop_make_engine_with_allocator",
      [&] { return lamina_graph_ocl_interop_make_engine_with_allocator(&other, caller().device, caller().context, allocator); },
      [&] { lamina_engine_destroy(other); }));
  const auto described = f32(0, {3, 5});
  sweep(of_lamina(
      "lamina_graph_tensor_create",
      [&] { return lamina_graph_tensor_create(&tensor, &described.data, engine, LAMINA_MEMORY_ALLOCATE); },
      [&] { lamina_graph_tensor_destroy(tensor); }));
  lamina_graph_tensor_destroy(tensor);
  // Its allocator always fails.
  EXPECT_EQ(lamina_graph_tensor_create(&tensor, &described.data, other, LAMINA_MEMORY_ALLOCATE), lamina_out_of_memory);
  sweep(of_lamina("lamina_stream_wait", [&] { return lamina_stream_wait(stream); }));
  lamina_stream_destroy(stream);
  lamina_engine_destroy(other);
  lamina_graph_allocator_destroy(allocator);
  lamina_engine_destroy(engine);
}

// Compiling and executing while allocations fail gives the same results as without failures.
TEST_F(StarvedGpu, CompilesAndExecutes) {
  constexpr int64_t kRows = 3, kSize = 40;
  lamina_engine_t raw = nullptr;
  LAMINA_EXPECT_OK(lamina_ocl_interop_engine_create(&raw, caller().device, caller().context));
  const lamina::engine gpu(raw);
  lamina_stream_t stream = nullptr;
  LAMINA_EXPECT_OK(lamina_ocl_interop_stream_create(&stream, raw, caller().queue));
  const auto src = f32(0, {kRows, kSize}), dst = f32(1, {kRows, kSize});
  lamina::graph::graph g(lamina::engine::kind::gpu);
  g.add_op(lamina::graph::op(0, lamina::graph::op::kind::SoftMax, {src}, {dst}, "softmax")
               .set_attr(lamina::graph::op::attr::axis, int64_t{-1}));
  g.finalize();
  const auto partition = g.get_partitions().at(0);
  const lamina_graph_logical_tensor_t *in = &src.data, *out = &dst.data;
  const lamina::graph::tensor input(src, gpu), output(dst, gpu);
  std::vector<float> values(static_cast<size_t>(kRows * kSize));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) / 4;
  caller().write(input, values);
  const const_lamina_graph_tensor_t given = input.get(), made = output.get();
  std::vector<std::vector<float>> results;
  for (const bool starves : {false, true}) {
    lamina_graph_compiled_partition_t compiled = nullptr;
    LAMINA_EXPECT_OK(lamina_graph_compiled_partition_create(&compiled, partition.get()));
    const auto compile = [&] { return lamina_graph_partition_compile(partition.get(), compiled, 1, &in, 1, &out, raw); };
    const auto execute = [&] { return lamina_graph_compiled_partition_execute(compiled, stream, 1, &given, 1, &made); };
    caller().write(output, std::vector<float>(values.size(), -1));
    if (starves) {
      EXPECT_GT(sweep(of_lamina("compile for a GPU", compile)), LAMINA_FAILS_ALLOCATIONS ? 100 : -1);
      sweep(of_lamina("execute on a GPU", execute));
    } else {
      LAMINA_EXPECT_OK(compile());
      LAMINA_EXPECT_OK(execute());
    }
    LAMINA_EXPECT_OK(lamina_stream_wait(stream));
    results.push_back(caller().read(output, values.size()));
    lamina_graph_compiled_partition_destroy(compiled);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_GT(results[0].at(0), 0);
  lamina_stream_destroy(stream);
}

}  // namespace
}  // namespace starve
