// Scratch memory of an execution: lamina allocates it once from the caller's allocator, reuses it, also after a failed
// execution, and releases it to the same allocator.
#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "backends/cpu/backend.h"
#include "backends/cpu/support/cpu_check.h"
#include "backends/cpu/support/described_machines.h"
#include "backends/scratch_pool.h"
#include "compiler/compile.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

int allocations = 0, releases = 0;
bool exhausted = false;

void* counted_allocate(size_t bytes, size_t alignment) {
  if (exhausted) return nullptr;
  ++allocations;
  return ::operator new(bytes, std::align_val_t{alignment});
}
void counted_release(void* memory) {
  ++releases;
  ::operator delete(memory, std::align_val_t{64});
}

// The gradients of a layer norm: partial column sums need scratch memory. diff_src is large enough to be streamed, unless it
// overwrites diff_dst in place: then the first such execution compiles a second variant of the kernel.
class Scratch : public ::testing::Test {
 protected:
  static constexpr int64_t kRows = 8 << 10, kSize = 1 << 10;

  void SetUp() override {
    allocations = releases = 0;
    exhausted = false;
    context_.allocator = &allocator_;
    compile(cpu_backend());
  }

  void compile(const Backend& backend) {
    GraphBuilder g;
    const auto x = g.input(DataType::f32, {kRows, kSize}), dy = g.input(DataType::f32, {kRows, kSize});
    g.multi(OpKind::LayerNormBackward,
            {x, dy, g.input(DataType::f32, {kRows}), g.input(DataType::f32, {kRows}), g.input(DataType::f32, {kSize})}, {},
            {DataType::f32, DataType::f32, DataType::f32});
    const Graph graph = g.finish();
    const Partition partition = partition_graph(graph, PartitionPolicy::fusion, CpuCapabilities{}).at(0);
    std::vector<LogicalTensor> ins, outs;
    for (const ValueIndex v : partition.inputs) ins.push_back(graph.tensor(v));
    for (const ValueIndex v : partition.outputs) outs.push_back(graph.tensor(v));
    for (LogicalTensor& tensor : outs) {
      tensor.strides = dense_strides(*tensor.shape);
      tensor.layout = LayoutType::strided;
    }
    const Subgraph subgraph = extract_subgraph(partition, ins, outs);
    executable_ = compiler::compile_subgraph(subgraph, backend);
  }

  void execute(bool in_place) {
    std::vector<float>& dx = in_place ? dy_ : dx_;
    const void* const inputs[] = {x_.data(), dy_.data(), mean_.data(), variance_.data(), gamma_.data()};
    void* const outputs[] = {dx.data(), dgamma_.data(), dbeta_.data()};
    executable_->execute(context_, inputs, outputs);
  }

  Allocator allocator_{counted_allocate, counted_release};
  ExecutionContext context_;
  std::unique_ptr<Executable> executable_;
  std::vector<float> x_ = std::vector<float>(kRows * kSize), dy_ = x_, dx_ = x_;
  std::vector<float> mean_ = std::vector<float>(kRows), variance_ = std::vector<float>(kRows, 1);
  std::vector<float> gamma_ = std::vector<float>(kSize), dgamma_ = gamma_, dbeta_ = gamma_;
};

TEST_F(Scratch, IsAskedForOnceAndGivenBack) {
  ASSERT_GT(executable_->info().workspace_bytes, 0U);
  for (int i = 0; i < 3; ++i) execute(false);
  EXPECT_EQ(allocations, 1);
  EXPECT_EQ(releases, 0);
  executable_ = nullptr;
  EXPECT_EQ(releases, 1);
}

TEST_F(Scratch, OfAnExecutionThatFailsIsLentAgain) {
  compile(*cpu::make_backend(machine_of_nowhere()));  // the host rejects its code after the memory was taken
  for (int i = 0; i < 3; ++i) EXPECT_THROW(execute(i % 2 == 0), Error);
  EXPECT_EQ(allocations, 1);
  executable_ = nullptr;
  EXPECT_EQ(releases, 1);
}

TEST_F(Scratch, OfOneAllocatorIsNotLentToAnother) {
  execute(false);
  context_.allocator = nullptr;
  execute(false);
  EXPECT_EQ(allocations, 1);
  executable_->begin_use(nullptr);
  executable_->end_use(nullptr);  // the last user
  EXPECT_EQ(releases, 1);
}

TEST_F(Scratch, OfTheCallerIsUsedAsItIs) {
  std::vector<std::byte> own(executable_->info().workspace_bytes + 64);
  context_.workspace = own.data() + (64 - reinterpret_cast<uintptr_t>(own.data()) % 64);
  execute(false);
  EXPECT_EQ(allocations, 0);
}

TEST_F(Scratch, ThatTheAllocatorDoesNotGiveIsTold) {
  exhausted = true;
  try {
    execute(false);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::out_of_memory);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("the allocator returned null "));
  }
  EXPECT_EQ(releases, 0);
}

// A block that counts how many exist, and which two executions must not have at the same time.
struct Piece {
  explicit Piece(std::atomic<int>& count) : alive(count) { ++alive; }
  ~Piece() { --alive; }
  void* memory() { return this; }
  bool suits(const ExecutionContext&) const { return true; }
  void acquire(const ExecutionContext&) { EXPECT_FALSE(in_use.exchange(true)); }
  void release(const ExecutionContext&) { in_use = false; }
  ScratchOwner owner() const { return nullptr; }

  std::atomic<int>& alive;
  std::atomic<bool> in_use = false;
};

class Pool : public ::testing::Test {
 protected:
  using Lease = ScratchPool<Piece>::Lease;
  void* lease() { return Lease(pool_, 1, context_).memory(); }

  ExecutionContext context_;
  std::atomic<int> alive_ = 0;
  ScratchPool<Piece> pool_{[this](size_t, const ExecutionContext&) { return std::make_unique<Piece>(alive_); }};
};

TEST_F(Pool, GivesAThreadTheBlockThatItReturned) {
  void *mine = nullptr, *others = nullptr;
  {
    const Lease first(pool_, 1, context_);
    mine = first.memory();
    std::thread([&] {
      others = lease();
      for (int i = 0; i < 3; ++i) EXPECT_EQ(lease(), others);
    }).join();
  }
  EXPECT_NE(mine, others);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(lease(), mine);
}

TEST_F(Pool, GivesANewThreadABlockThatIsIdle) {
  void* const first = lease();
  for (int i = 0; i < 40; ++i) std::thread([&] { EXPECT_EQ(lease(), first); }).join();
  EXPECT_EQ(alive_, 1);
}

TEST_F(Pool, GivesABlockToOneExecutionAtATime) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 40; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) lease();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(alive_, 1);
}

TEST_F(Pool, FreesIdleBlocksWithTheLastUser) {
  pool_.begin_use(nullptr);
  lease();
  EXPECT_EQ(alive_, 1);
  pool_.end_use(nullptr);
  EXPECT_EQ(alive_, 0);
}

}  // namespace
}  // namespace lamina::testing
