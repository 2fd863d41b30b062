// Scratch memory of asynchronous executions on a device: which execution uses which block, and which stream waits for which.
// The mock device logs the calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "backends/gpu/backend.h"
#include "backends/gpu/gpu_kernels.h"
#include "compiler/compile.h"
#include "interface/status.h"

namespace lamina::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Handles of memory and streams are small numbers.
void* handle(intptr_t number) { return reinterpret_cast<void*>(number); }
intptr_t number_of(const void* handle) { return reinterpret_cast<intptr_t>(handle); }

struct Log {
  std::vector<std::string> waits;  // "stream 2 for stream 1", "host for stream 1"
  std::set<intptr_t> busy;         // streams with unfinished work
  std::set<intptr_t> memory;       // allocated and not yet released
  std::vector<intptr_t> scratch;   // the last buffer of each launch, in order
  intptr_t last_memory = 100;
  bool launch_fails = false, record_fails = false;
};

class LoggedEvent final : public gpu::Event {
 public:
  explicit LoggedEvent(Log& log) : log_(log) {}
  void record(void* stream) override {
    if (log_.record_fails) throw Error(Status::runtime_error, "no event");
    stream_ = number_of(stream);
  }
  bool is_complete() const override { return !log_.busy.contains(stream_); }
  void wait() const override {
    if (stream_ != 0) log_.waits.push_back(join("host for stream ", stream_));
  }
  void hold_back(void* stream) const override {
    if (stream_ != 0) log_.waits.push_back(join("stream ", number_of(stream), " for stream ", stream_));
  }

 private:
  Log& log_;
  intptr_t stream_ = 0;  // 0: not recorded
};

class LoggedModule final : public gpu::Module {
 public:
  explicit LoggedModule(Log& log) : log_(log) {}
  void launch(void*, size_t, int64_t, int, std::span<const gpu::BufferView> buffers, std::span<const int64_t>) const override {
    if (log_.launch_fails) throw Error(Status::runtime_error, "no launch");
    log_.scratch.push_back(number_of(buffers.back().memory));
  }

 private:
  Log& log_;
};

class LoggedDevice final : public gpu::Device {
 public:
  explicit LoggedDevice(Log& log) : log_(log) {}
  std::string_view api() const override { return "opencl"; }
  std::string name() const override { return "log"; }
  const gpu::Language& language() const override { return gpu::languages::opencl; }
  gpu::DeviceLimits limits() const override { return {}; }
  bool needs_alignment() const override { return false; }
  gpu::LoadedModule load(const gpu::KernelSource&) override { return {std::make_shared<LoggedModule>(log_), false}; }
  void* allocate(size_t) override { return handle(*log_.memory.insert(++log_.last_memory).first); }
  void release(void* memory) override { log_.memory.erase(number_of(memory)); }
  void copy_in(void*, void*, int64_t, const void*, size_t) override {}
  void put(void*, void*, int64_t, const void*, size_t) override {}
  void copy_out(void*, void*, void*, int64_t, size_t) override {}
  void copy(void*, void*, void*, size_t) override {}
  double time(const std::function<void(void*)>& work) override { return work(nullptr), 0; }
  void wait(void* stream) override { log_.waits.push_back(join("host for all of stream ", number_of(stream))); }
  std::unique_ptr<gpu::Event> make_event() override { return std::make_unique<LoggedEvent>(log_); }

 private:
  Log& log_;
};

class GpuScratch : public ::testing::Test {
 protected:
  void SetUp() override {
    const Graph graph = norm_backward_graph(DataType::f32, 40, 64);
    const Partition partition = partition_graph(graph, PartitionPolicy::fusion, gpu_capabilities()).at(0);
    std::vector<LogicalTensor> ins, outs;
    for (const ValueIndex v : partition.inputs) ins.push_back(graph.tensor(v));
    for (const ValueIndex v : partition.outputs) outs.push_back(graph.tensor(v));
    for (LogicalTensor& tensor : outs) {
      tensor.strides = dense_strides(*tensor.shape);
      tensor.layout = LayoutType::strided;
    }
    const Subgraph subgraph = extract_subgraph(partition, ins, outs);
    executable_ = compiler::compile_subgraph(subgraph, *backend_);
  }

  // Returns the scratch memory that the execution used.
  intptr_t execute_on(intptr_t stream) {
    const void* const inputs[] = {handle(1), handle(2), handle(3), handle(4), handle(5)};
    void* const outputs[] = {handle(6), handle(7), handle(8)};
    ExecutionContext context;
    context.stream = handle(stream);
    context.allocator = &allocator_;
    executable_->execute(context, inputs, outputs);
    return log_.scratch.back();
  }

  Log log_;
  Allocator allocator_;
  std::shared_ptr<const Backend> backend_ = gpu::make_backend(std::make_shared<LoggedDevice>(log_));
  std::unique_ptr<Executable> executable_;
};

TEST_F(GpuScratch, OfOneStreamIsOneBlockAndEachUseWaitsForTheLast) {
  log_.busy = {1};
  const intptr_t first = execute_on(1);
  EXPECT_THAT(log_.waits, IsEmpty());
  EXPECT_EQ(execute_on(1), first);
  EXPECT_THAT(log_.waits, ElementsAre("stream 1 for stream 1"));  // the same handle may denote a new stream by now
}

TEST_F(GpuScratch, OfAStreamThatIsBusyIsNotLentToAnother) {
  log_.busy = {1};
  const intptr_t first = execute_on(1), second = execute_on(2);
  EXPECT_NE(first, second);
  EXPECT_THAT(log_.waits, IsEmpty());
  EXPECT_EQ(log_.memory.size(), 2U);
}

TEST_F(GpuScratch, OfAStreamThatIsDoneIsLentToAnother) {
  const intptr_t first = execute_on(1);
  EXPECT_EQ(execute_on(2), first);
  EXPECT_EQ(log_.memory.size(), 1U);
}

TEST_F(GpuScratch, IsReleasedWhenItsStreamsAreDone) {
  log_.busy = {1, 2};
  execute_on(1);
  execute_on(2);
  executable_ = nullptr;
  EXPECT_THAT(log_.waits, ::testing::UnorderedElementsAre("host for stream 1", "host for stream 2"));
  EXPECT_THAT(log_.memory, IsEmpty());
}

TEST_F(GpuScratch, OfTheCallersAllocatorGoesBackToItWhenItsStreamIsDone) {
  allocator_.device_allocate = [](size_t, size_t) { return handle(77); };
  allocator_.device_deallocate = [this](void* memory) { log_.waits.push_back(join(number_of(memory), " is released")); };
  log_.busy = {1};
  EXPECT_EQ(execute_on(1), 77);
  executable_ = nullptr;
  EXPECT_THAT(log_.waits, ElementsAre("host for stream 1", "77 is released"));
}

TEST_F(GpuScratch, OfAnExecutionThatFailsIsLentAgain) {
  log_.launch_fails = true;
  for (int i = 0; i < 3; ++i) EXPECT_THROW(execute_on(1), Error);
  log_.launch_fails = false;
  execute_on(1);
  EXPECT_EQ(log_.memory.size(), 1U);
}

TEST_F(GpuScratch, WithoutAnEventBehindItsUseIsReleasedWhenAllOfTheStreamIsDone) {
  log_.record_fails = true;
  EXPECT_THROW(execute_on(1), Error);
  EXPECT_THAT(log_.waits, ElementsAre("host for all of stream 1"));
  EXPECT_THAT(log_.memory, IsEmpty());
}

}  // namespace
}  // namespace lamina::testing
