// The public interface on a GPU engine: the first device of the loader, PoCL on a machine without a GPU. Tensors use device
// memory; an OpenCL program may supply its own context, queue and allocator.
#include <algorithm>
#include <cmath>
#include <vector>

#include "api/api_fixture.h"
#include "api/opencl_caller.h"
#include "graph/cuda.h"
#include "graph/opencl.h"

namespace api_test {
namespace {

int allocations = 0, releases = 0;

void* counted_allocate(size_t size, size_t, cl_device_id, cl_context context) {
  ++allocations;
  const Opencl cl;
  int status = 0;
  return cl.find<void* (*)(cl_context, uint64_t, size_t, void*, int*)>("clCreateBuffer")(context, 1, size, nullptr, &status);
}
void counted_release(void* memory, cl_device_id, cl_context, cl_event) {
  ++releases;
  const Opencl cl;
  cl.find<int (*)(void*)>("clReleaseMemObject")(memory);
}

TEST(GpuApi, ANormRunsOnTheCallersContextQueueAndMemory) {
  const Opencl cl;
  if (cl.library == nullptr) GTEST_SKIP() << "no OpenCL loader on this machine";
  cl_device_id const device = cl.first_device();
  if (device == nullptr) GTEST_SKIP() << "no OpenCL device on this machine";
  int status = 0;
  cl_context const context = cl.find<cl_context (*)(void*, unsigned, cl_device_id*, void*, void*, int*)>("clCreateContext")(
      nullptr, 1, const_cast<cl_device_id*>(&device), nullptr, nullptr, &status);
  ASSERT_EQ(status, 0);
  cl_command_queue const queue = cl.find<cl_command_queue (*)(cl_context, cl_device_id, uint64_t, int*)>(
      "clCreateCommandQueue")(context, device, 0, &status);
  ASSERT_EQ(status, 0);
  const auto write = cl.find<int (*)(cl_command_queue, void*, unsigned, size_t, size_t, const void*, unsigned, void*, void*)>(
      "clEnqueueWriteBuffer");
  const auto read =
      cl.find<int (*)(cl_command_queue, void*, unsigned, size_t, size_t, void*, unsigned, void*, void*)>("clEnqueueReadBuffer");

  allocations = releases = 0;
  {
    lamina_graph_allocator_t allocator = nullptr;
    ASSERT_EQ(lamina_graph_ocl_interop_allocator_create(&allocator, counted_allocate, counted_release), lamina_success);
    lamina_engine_t raw_engine = nullptr;
    ASSERT_EQ(lamina_graph_ocl_interop_make_engine_with_allocator(&raw_engine, device, context, allocator), lamina_success)
        << lamina_last_error();
    lamina_graph_allocator_destroy(allocator);
    const engine gpu(raw_engine);
    EXPECT_EQ(gpu.get_kind(), engine::kind::gpu);
    lamina_stream_t raw_stream = nullptr;
    ASSERT_EQ(lamina_ocl_interop_stream_create(&raw_stream, gpu.get(), queue), lamina_success) << lamina_last_error();

    graph g(engine::kind::gpu);
    g.add_op(relu(f32(0, {3, 5}), f32(1, {3, 5})));
    g.finalize();
    const auto partitions = g.get_partitions();
    ASSERT_EQ(partitions.size(), 1u);
    const auto compiled = partitions[0].compile({f32(0, {3, 5})}, {f32(1, {3, 5})}, gpu);
    const tensor src(f32(0, {3, 5}), gpu), dst(f32(1, {3, 5}), gpu);
    EXPECT_EQ(allocations, 2);
    std::vector<float> host(15), result(15, -7);
    for (size_t i = 0; i < 15; ++i) host[i] = static_cast<float>(i) - 7;
    ASSERT_EQ(write(queue, src.get_data_handle(), 1, 0, 60, host.data(), 0, nullptr, nullptr), 0);
    const const_lamina_graph_tensor_t in = src.get(), out = dst.get();
    ASSERT_EQ(lamina_graph_compiled_partition_execute(compiled.get(), raw_stream, 1, &in, 1, &out), lamina_success)
        << lamina_last_error();
    ASSERT_EQ(lamina_stream_wait(raw_stream), lamina_success);
    ASSERT_EQ(read(queue, dst.get_data_handle(), 1, 0, 60, result.data(), 0, nullptr, nullptr), 0);
    for (size_t i = 0; i < 15; ++i) EXPECT_EQ(result[i], std::max(host[i], 0.0F));
    lamina_stream_destroy(raw_stream);
  }
  EXPECT_EQ(releases, allocations);
  cl.find<int (*)(cl_command_queue)>("clReleaseCommandQueue")(queue);
  cl.find<int (*)(cl_context)>("clReleaseContext")(context);
}

TEST(GpuApi, NamesWhatIsMissingOrDoesNotFit) {
  lamina_engine_t made = nullptr;
  EXPECT_EQ(lamina_ocl_interop_engine_create(&made, nullptr, nullptr), lamina_invalid_arguments);
  EXPECT_THAT(lamina_last_error(), ::testing::HasSubstr("device"));
  lamina_graph_allocator_t allocator = nullptr;
  EXPECT_EQ(lamina_graph_cuda_interop_allocator_create(&allocator, nullptr, nullptr), lamina_invalid_arguments);
  EXPECT_THAT(lamina_last_error(), ::testing::HasSubstr("pass both functions"));
  const engine cpu(engine::kind::cpu, 0);
  lamina_stream_t stream = nullptr;
  int nothing = 0;
  EXPECT_EQ(lamina_cuda_interop_stream_create(&stream, cpu.get(), reinterpret_cast<CUstream>(&nothing)),
            lamina_invalid_arguments);
  EXPECT_THAT(lamina_last_error(), ::testing::HasSubstr("the engine runs on cpu, needed is cuda"));
}

// A ReLU with everything that it needs to run on one engine.
struct ReluOn {
  explicit ReluOn(engine::kind kind) : on(kind, 0), its_stream(on), src(f32(0, {3, 5}), on), dst(f32(1, {3, 5}), on) {
    graph g(kind);
    g.add_op(relu(f32(0, {3, 5}), f32(1, {3, 5})));
    g.finalize();
    compiled = g.get_partitions().at(0).compile({f32(0, {3, 5})}, {f32(1, {3, 5})}, on);
  }
  engine on;
  stream its_stream;
  tensor src, dst;
  compiled_partition compiled;
};

TEST(GpuApi, APartitionRefusesAStreamOrTensorOfAnotherDevice) {
  if (engine::get_count(engine::kind::gpu) == 0) GTEST_SKIP() << "no GPU engine on this machine";
  const ReluOn cpu(engine::kind::cpu), gpu(engine::kind::gpu);
  for (const auto& [own, other] : {std::pair(&cpu, &gpu), std::pair(&gpu, &cpu)}) {
    const auto refuses = [&, own = own](const stream& s, const tensor& src, const tensor& dst, const char* what) {
      EXPECT_THAT(failure_of([&] { own->compiled.execute(s, {src}, {dst}); }), FailsWith(lamina_invalid_arguments, what));
    };
    refuses(other->its_stream, own->src, own->dst, "the stream belongs to an engine on");
    refuses(own->its_stream, other->src, own->dst, "tensor 0 belongs to an engine on");
    refuses(own->its_stream, own->src, other->dst, "tensor 1 belongs to an engine on");
    own->compiled.execute(own->its_stream, {own->src}, {own->dst});
    stream(own->its_stream).wait();
  }
}

}  // namespace
}  // namespace api_test
