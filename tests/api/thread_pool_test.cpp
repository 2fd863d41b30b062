// The caller's own threads: results with the same bits as with OpenMP's threads, for any order of work items in the pool, and
// clear errors if the pool violates its contract.
#include <omp.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <thread>

#include "graph_cases.h"
#include "thread_pools.h"

namespace api_test {
namespace {

using lamina::graph::make_engine_with_threadpool;
using ::testing::HasSubstr;

// Large enough for several threads each: rows, blocks of column sums, rows that threads share, tiles.
const std::vector<GraphCase>& cases() {
  static const std::vector<GraphCase> all = {
      layer_norm_case(500, 768),
      layer_norm_case(3, 60'001),
      layer_norm_backward_case(1000, 96),
      layer_norm_backward_case(300, 4096),
      layer_norm_backward_case(7, 20'001),
      softmax_case(2, 300'000),
      attention_case(2, 4, 200, 32),
      mlp_case(200, 192, 320),
      mlp_case(200, 192, 320, data_type::bf16),
      two_products_case(300, 128),
      int8_product_case(200, 256, 320),
      convolution_case(4, 16, 28),
      weight_gradient_case(4, 16, 28),
      pool_case(4, 32, 40),
  };
  return all;
}

class ThreadPool : public ::testing::TestWithParam<size_t> {
 protected:
  const GraphCase& which_ = cases().at(GetParam());
  engine openmp_{engine::kind::cpu, 0};

  std::vector<Bytes> expected() const {
    const int before = omp_get_max_threads();
    omp_set_num_threads(3);
    auto results = CompiledCase(which_, openmp_).run(openmp_);
    omp_set_num_threads(before);
    return results;
  }
};
INSTANTIATE_TEST_SUITE_P(Cases, ThreadPool, ::testing::Range(size_t{0}, size_t{14}), [](const auto& one) {
  std::string name = cases()[one.param].name + std::to_string(one.param);
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

TEST_P(ThreadPool, OfThreadsGivesTheBitsOfOpenmp) {
  const std::vector<Bytes> bits = expected();
  for (const int threads : {1, 2, 7}) {
    QueuePool pool(threads);
    const engine pooled = make_engine_with_threadpool(engine::kind::cpu, 0, pool);
    EXPECT_TRUE(CompiledCase(which_, pooled).run(pooled) == bits) << threads << " threads";
    if (threads > 1) {
      EXPECT_GT(pool.calls, 0) << "the pool has had no work";
    }
  }
}

TEST_P(ThreadPool, OfTheCallingThreadAloneGivesTheBitsOfOpenmp) {
  CallerPool pool(5);
  const engine pooled = make_engine_with_threadpool(engine::kind::cpu, 0, pool);
  EXPECT_TRUE(CompiledCase(which_, pooled).run(pooled) == expected());
}

// Threads belong to the stream: a partition compiled for OpenMP's threads runs on a pool, which may have more, and vice versa.
TEST_P(ThreadPool, RunsWhatWasCompiledForAnotherEngine) {
  QueuePool pool(4);
  const engine pooled = make_engine_with_threadpool(engine::kind::cpu, 0, pool);
  const std::vector<Bytes> bits = expected();
  EXPECT_TRUE(CompiledCase(which_, openmp_).run(pooled) == bits);
  EXPECT_TRUE(CompiledCase(which_, pooled).run(openmp_) == bits);
}

TEST(ThreadPoolUse, IsTheCallingThreadAloneWhereThereIsLittleToDo) {
  QueuePool pool(4);
  const engine pooled = make_engine_with_threadpool(engine::kind::cpu, 0, pool);
  CompiledCase(layer_norm_case(2, 64), pooled).run(pooled);
  EXPECT_EQ(pool.calls, 0);
}

// A pool whose callers only wait would deadlock if one of its own threads called it.
TEST(ThreadPoolUse, IsTheCallingThreadAloneOnOneOfThePoolsOwn) {
  QueuePool pool(2, false);
  const engine pooled = make_engine_with_threadpool(engine::kind::cpu, 0, pool);
  const CompiledCase compiled(layer_norm_case(500, 768), pooled);
  struct State {
    const CompiledCase& compiled;
    const engine& pooled;
    std::array<std::vector<Bytes>, 2> results;
  } state{compiled, pooled, {}};
  pool.parallel_for(
      2,
      [](void* given, int index) {
        auto& s = *static_cast<State*>(given);
        s.results[static_cast<size_t>(index)] = s.compiled.run(s.pooled);
      },
      &state);
  EXPECT_EQ(pool.calls, 1) << "only the test's own call";
  const std::vector<Bytes> bits = compiled.run(pooled);
  for (const auto& result : state.results) EXPECT_TRUE(result == bits);
}

// The thread that packs constant weights must not need the threads that wait for them.
TEST(ThreadPoolUse, PacksWeightsWhileItsThreadsWaitForThem) {
  QueuePool pool(2, false);
  const engine pooled = make_engine_with_threadpool(engine::kind::cpu, 0, pool);
  const CompiledCase shared(mlp_case(64, 512, 512), pooled);
  const std::vector<Bytes> bits = shared.run(pooled);
  struct State {
    const CompiledCase& shared;
    const engine& pooled;
    const compiled_partition* fresh;
    std::array<std::vector<Bytes>, 2> results;
  };
  for (int round = 0; round < 30; ++round) {
    const compiled_partition fresh = shared.compile(pooled);  // its weights are not packed yet
    State state{shared, pooled, &fresh, {}};
    std::vector<Bytes> outside;
    std::thread other([&] { outside = shared.run(fresh, pooled); });
    pool.parallel_for(
        2,
        [](void* given, int index) {
          auto& s = *static_cast<State*>(given);
          s.results[static_cast<size_t>(index)] = s.shared.run(*s.fresh, s.pooled);
        },
        &state);
    other.join();
    EXPECT_TRUE(outside == bits && state.results[0] == bits && state.results[1] == bits) << "round " << round;
  }
}

// ---- errors

// A pool whose functions do what a test prescribes.
struct Faulty {
  int threads = 2;
  bool throws = false, asks_throws = false;
  int first = 0, calls_left_out = 0;

  static lamina_threadpool_t functions(Faulty& faulty) {
    return {sizeof(lamina_threadpool_t), &faulty,
            [](void* user) {
              if (static_cast<Faulty*>(user)->asks_throws) throw std::runtime_error("no idea");
              return static_cast<Faulty*>(user)->threads;
            },
            [](void*) { return 0; },
            [](void* user, int count, void (*work)(void*, int), void* state) {
              const auto& self = *static_cast<Faulty*>(user);
              if (self.throws) throw std::runtime_error("out of threads");
              for (int i = 0; i < count - self.calls_left_out; ++i) work(state, self.first + i);
            }};
  }
};

lamina_status_t make_engine(lamina_engine_kind_t kind, const lamina_threadpool_t& pool, lamina_engine_t* made) {
  return lamina_graph_make_engine_with_threadpool(made, kind, 0, nullptr, &pool);
}

void expect_refused(lamina_engine_kind_t kind, const lamina_threadpool_t& pool, const std::string& sentence) {
  lamina_engine_t made = nullptr;
  EXPECT_EQ(make_engine(kind, pool, &made), lamina_invalid_arguments);
  EXPECT_EQ(made, nullptr);
  EXPECT_THAT(lamina_last_error(), HasSubstr(sentence));
}

TEST(ThreadPoolErrors, StructsAreChecked) {
  Faulty user;
  const lamina_threadpool_t good = Faulty::functions(user);
  lamina_threadpool_t bad = good;
  bad.size = 8;
  expect_refused(lamina_cpu, bad, "pool->size is 8, allowed is " + std::to_string(sizeof bad));
  bad = good;
  bad.num_threads = nullptr;
  expect_refused(lamina_cpu, bad, "pool->num_threads is null");
  bad = good;
  bad.in_parallel = nullptr;
  expect_refused(lamina_cpu, bad, "pool->in_parallel is null");
  bad = good;
  bad.parallel_for = nullptr;
  expect_refused(lamina_cpu, bad, "pool->parallel_for is null");
  expect_refused(lamina_gpu, good, "kind is gpu, allowed with a thread pool is cpu");
  user.threads = 0;
  expect_refused(lamina_cpu, good, "num_threads returned 0, allowed is 1 or more");
  user.threads = -3;
  expect_refused(lamina_cpu, good, "num_threads returned -3, allowed is 1 or more");
}

TEST(ThreadPoolErrors, WhatAPoolDoesWrongFailsTheExecutionAlone) {
  Faulty user;
  const lamina_threadpool_t functions = Faulty::functions(user);
  lamina_engine_t made = nullptr;
  ASSERT_EQ(make_engine(lamina_cpu, functions, &made), lamina_success) << lamina_last_error();
  const engine pooled(made);
  for (const GraphCase& which : {layer_norm_backward_case(1000, 96), attention_case(2, 4, 200, 32)}) {
    const CompiledCase compiled(which, pooled);
    const std::vector<Bytes> bits = compiled.run(pooled);
    const auto expect_failure = [&](lamina_status_t status, const std::string& sentence) {
      EXPECT_THAT([&] { compiled.run(pooled); },
                  ::testing::Throws<error>(::testing::AllOf(::testing::Field(&error::status, status),
                                                            ::testing::Property(&error::what, HasSubstr(sentence)))));
      user = Faulty{};
      EXPECT_TRUE(compiled.run(pooled) == bits) << "after a failure: " << sentence;
    };
    user.throws = true;
    expect_failure(lamina_runtime_error, "thread pool: parallel_for threw: out of threads");
    user.asks_throws = true;
    expect_failure(lamina_runtime_error, "thread pool: num_threads threw: no idea");
    user.threads = 0;
    expect_failure(lamina_invalid_arguments, "thread pool: num_threads returned 0, allowed is 1 or more");
    user.calls_left_out = 1;
    expect_failure(lamina_runtime_error, "thread pool: parallel_for returned after 1 calls of work, needed are 2");
    user.first = 1;
    expect_failure(lamina_runtime_error, "thread pool: parallel_for called work with index 2, allowed is 0 to 1");
  }
}

}  // namespace
}  // namespace api_test
