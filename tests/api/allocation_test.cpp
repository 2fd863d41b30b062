// After a partition's first execution, further ones allocate nothing on the heap. The program replaces malloc and its relatives
// to count the calls of all threads; operator new calls malloc.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "api_fixture.h"
#include "graph_cases.h"
#include "thread_pools.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LAMINA_COUNTS_ALLOCATIONS 0
#else
#define LAMINA_COUNTS_ALLOCATIONS 1
#endif

#if LAMINA_COUNTS_ALLOCATIONS

namespace {
std::atomic<bool> counting = false;
std::atomic<long> allocations = 0;
void count() {
  if (counting.load(std::memory_order_relaxed)) ++allocations;
}
}  // namespace

// The original functions of glibc, which the replacements call.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t size) {
  count();
  return __libc_malloc(size);
}
void* calloc(size_t number, size_t size) {
  count();
  return __libc_calloc(number, size);
}
void* realloc(void* memory, size_t size) {
  count();
  return __libc_realloc(memory, size);
}
void* memalign(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) {
  count();
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
}

#endif

namespace api_test {
namespace {

// Counts heap requests of any thread while `body` runs.
long allocations_during([[maybe_unused]] const std::function<void()>& body) {
#if LAMINA_COUNTS_ALLOCATIONS
  allocations = 0;
  counting = true;
  body();
  counting = false;
  return allocations;
#else
  return 0;
#endif
}

class Allocation : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!LAMINA_COUNTS_ALLOCATIONS) GTEST_SKIP() << "a sanitizer stands in for malloc itself";
  }

  // Returns the heap requests of two executions after the first, through the C++ interface: the minimum of several attempts. On
  // a loaded machine, an execution may start additional workers, which allocates.
  long allocations_of_execute(const std::vector<op>& ops, const std::vector<logical_tensor>& in,
                              const std::vector<logical_tensor>& out) {
    const auto compiled = only_partition_of(ops).compile(in, out, cpu_);
    std::vector<tensor> inputs, outputs;
    for (const logical_tensor& lt : in) inputs.emplace_back(lt, cpu_);
    for (const logical_tensor& lt : out) outputs.emplace_back(lt, cpu_);
    for (const tensor& t : inputs) std::memset(t.get_data_handle(), 0, t.get_logical_tensor().get_mem_size());
    compiled.execute(stream_, inputs, outputs);
    long least = std::numeric_limits<long>::max();
    for (int time = 0; time < 3 && least > 0; ++time) {
      least = std::min(least, allocations_during([&] {
                         compiled.execute(stream_, inputs, outputs);
                         compiled.execute(stream_, inputs, outputs);
                       }));
    }
    return least;
  }

  engine cpu_{engine::kind::cpu, 0};
  stream stream_{cpu_};
};

TEST_F(Allocation, TheCounterCounts) {
  EXPECT_GT(allocations_during([] { std::vector<int>(1000).swap(*std::make_unique<std::vector<int>>()); }), 0);
}

TEST_F(Allocation, NoneInAnElementwisePartition) {
  const auto src = f32(0, {512, 512}), dst = f32(1, {512, 512});
  EXPECT_EQ(allocations_of_execute({relu(src, dst)}, {src}, {dst}), 0);
}

TEST_F(Allocation, NoneInATinyPartition) {
  const auto src = f32(0, {2, 8}), dst = f32(1, {2, 8});
  EXPECT_EQ(allocations_of_execute({relu(src, dst)}, {src}, {dst}), 0);
}

TEST_F(Allocation, NoneInLayerNormWithStatistics) {
  const auto src = f32(0, {512, 768}), gamma = f32(1, {768}), beta = f32(2, {768});
  const auto dst = f32(3, {512, 768}), mean = f32(4, {512}), variance = f32(5, {512});
  EXPECT_EQ(allocations_of_execute({op(0, op::kind::LayerNorm, {src, gamma, beta}, {dst, mean, variance}, "ln")},
                                   {src, gamma, beta}, {dst, mean, variance}),
            0);
}

TEST_F(Allocation, NoneInLayerNormBackwardWithItsColumnSums) {
  const auto src = f32(0, {512, 768}), diff_dst = f32(1, {512, 768}), mean = f32(2, {512}), variance = f32(3, {512});
  const auto gamma = f32(4, {768}), beta = f32(5, {768});
  const auto diff_src = f32(6, {512, 768}), diff_gamma = f32(7, {768}), diff_beta = f32(8, {768});
  EXPECT_EQ(allocations_of_execute({op(0, op::kind::LayerNormBackward, {src, diff_dst, mean, variance, gamma, beta},
                                       {diff_src, diff_gamma, diff_beta}, "ln_bwd")},
                                   {src, diff_dst, mean, variance, gamma, beta}, {diff_src, diff_gamma, diff_beta}),
            0);
}

TEST_F(Allocation, NoneOnACallersThreads) {
  CallerPool pool(3);
  cpu_ = lamina::graph::make_engine_with_threadpool(engine::kind::cpu, 0, pool);
  stream_ = stream(cpu_);
  // Ops that oneDNN runs are excluded: it builds a list of arguments in each call.
  for (const GraphCase& each : {layer_norm_case(512, 768), layer_norm_backward_case(512, 768), softmax_case(1, 200'000),
                                layer_norm_backward_case(7, 20'001), pool_case(4, 32, 40)})
    EXPECT_EQ(allocations_of_execute(each.ops, each.inputs, each.outputs), 0) << each.name;
}

// oneDNN allocates in each call, and more if it packs weights. Constants beyond the cache's capacity are packed in each call,
// as weights are that are not constant: that must cost no allocation of lamina's.
TEST_F(Allocation, NoneForConstantsBeyondTheCapacity) {
  const logical_tensor src = f32(0, {64, 256}), dst = f32(2, {64, 512});
  const auto allocations_with = [&](property_type property) {
    const logical_tensor weights = typed(1, data_type::f32, {256, 512}, property);
    return allocations_of_execute({op(0, op::kind::MatMul, {src, weights}, {dst}, "product")}, {src, weights}, {dst});
  };
  const long not_constant = allocations_with(property_type::undef);
  lamina::graph::set_constant_tensor_cache_capacity(engine::kind::cpu, 0);
  const long beyond_capacity = allocations_with(property_type::constant);
  lamina::graph::set_constant_tensor_cache_capacity(engine::kind::cpu, SIZE_MAX);
  EXPECT_EQ(beyond_capacity, not_constant);
}

TEST_F(Allocation, NoneWithMorePortsThanTheInlineArraysHold) {
  // src plus 40 summands in sequence
  std::vector<op> ops;
  std::vector<logical_tensor> in = {f32(0, {16, 16})};
  for (size_t i = 0; i < 40; ++i) {
    in.push_back(f32(100 + i, {16, 16}));
    ops.emplace_back(i, op::kind::Add, std::vector<logical_tensor>{f32(i, {16, 16}), in.back()},
                     std::vector<logical_tensor>{f32(i + 1, {16, 16})}, "add" + std::to_string(i));
  }
  const auto compiled = only_partition_of(ops).compile(in, {f32(40, {16, 16})}, cpu_);
  std::vector<tensor> inputs;
  std::vector<const_lamina_graph_tensor_t> c_inputs;
  for (const logical_tensor& lt : in) {
    inputs.emplace_back(lt, cpu_);
    c_inputs.push_back(inputs.back().get());
  }
  const tensor output(f32(40, {16, 16}), cpu_);
  const const_lamina_graph_tensor_t c_output = output.get();
  const auto execute = [&] {
    lamina_graph_compiled_partition_execute(compiled.get(), stream_.get(), c_inputs.size(), c_inputs.data(), 1, &c_output);
  };
  execute();
  EXPECT_EQ(allocations_during(execute), 0);
}

}  // namespace
}  // namespace api_test
