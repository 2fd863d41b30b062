// Many threads execute shared compiled partitions on one pool, or on lamina's workers, while others compile partitions: the
// same ones, which are cached, and new ones. The thread sanitizer runs this test too (docs/testing.md): it sees every
// synchronisation, since the pool belongs to the test and the workers to lamina.
#include <omp.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>

#include "graph_cases.h"
#include "thread_pools.h"

namespace api_test {
namespace {

using lamina::graph::make_engine_with_threadpool;

constexpr int kThreads = 8, kExecutionsOfAThread = 1250, kPoolThreads = 3;
constexpr int kCompileAgain = 25, kCompileAnew = 125;  // one compile per this number of executions

// The smallest cases that use several threads.
std::vector<GraphCase> small_cases() {
  return {layer_norm_case(40, 512),
          layer_norm_backward_case(200, 64),
          layer_norm_backward_case(5, 8192),
          softmax_case(1, 20'000),
          attention_case(1, 2, 64, 16),
          mlp_case(64, 32, 48),
          two_products_case(64, 32),
          int8_product_case(64, 64, 48),
          convolution_case(2, 8, 12),
          weight_gradient_case(2, 8, 12),
          pool_case(2, 16, 24)};
}

// of_process: OpenMP's threads, or lamina's workers if the environment selects them, as for the thread sanitizer.
enum class Threads { of_pool, of_process };

class ManyThreads : public ::testing::TestWithParam<Threads> {
 protected:
  ManyThreads()
      : pool_(kPoolThreads),
        pooled_(GetParam() == Threads::of_process ? engine(engine::kind::cpu, 0)
                                                  : make_engine_with_threadpool(engine::kind::cpu, 0, pool_)) {
    for (const GraphCase& each : small_cases()) {
      shared_.push_back(std::make_unique<const CompiledCase>(each, pooled_));
      bits_.push_back(shared_.back()->run(pooled_));
    }
  }

  void execute_and_compile(int thread) {
    omp_set_num_threads(kPoolThreads);  // for threads of either kind
    for (int i = 0; i < kExecutionsOfAThread; ++i) {
      const size_t which = static_cast<size_t>(i + thread) % shared_.size();
      const CompiledCase& shared = *shared_[which];
      const bool is_fresh = i % kCompileAgain == 0;
      if ((is_fresh ? shared.run(shared.compile(pooled_), pooled_) : shared.run(pooled_)) != bits_[which]) ++different_;
      if (i % kCompileAnew == 0) compile_new(thread, i / kCompileAnew);
    }
  }

  // Compiles shapes that are new, for code and for primitives; two threads compile each shape concurrently.
  void compile_new(int thread, int round) {
    const int64_t size = 1000 + 10 * (thread / 2) + round;
    const CompiledCase norm(layer_norm_case(4, size), pooled_), product(mlp_case(8, size, 16), pooled_);
    norm.run(pooled_);
    product.run(pooled_);
  }

  QueuePool pool_;
  engine pooled_;
  std::vector<std::unique_ptr<const CompiledCase>> shared_;
  std::vector<std::vector<Bytes>> bits_;
  std::atomic<int> different_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Kinds, ManyThreads, ::testing::Values(Threads::of_pool, Threads::of_process),
                         [](const auto& one) { return one.param == Threads::of_process ? "OfTheProcess" : "OfAPool"; });

TEST_P(ManyThreads, ExecuteSharedPartitionsWhileOthersAreCompiled) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back([this, t] { execute_and_compile(t); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(different_, 0) << "of " << kThreads * kExecutionsOfAThread << " executions";
  if (GetParam() == Threads::of_pool) {
    EXPECT_GT(pool_.calls, kThreads * kExecutionsOfAThread / 2) << "the cases are too small for threads";
  }
}

}  // namespace
}  // namespace api_test
