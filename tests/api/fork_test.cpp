// A process executes and then forks, and its child executes too: the data loaders of frameworks do this.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "api_fixture.h"
#include "graph/text.h"
#include "support/emulator.h"

namespace api_test {
namespace {

class Fork : public ::testing::Test {
 protected:
  void SetUp() override {
    if (lamina::testing::kIsEmulated) GTEST_SKIP() << lamina::testing::kNoThreadsInAChild;
  }
  // Calls `body` in a child process; whether it returns true within 30 seconds.
  static bool is_true_in_a_child(const std::function<bool()>& body) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(30);
      bool is_right = false;
      try {
        is_right = body();
      } catch (...) {
      }
      _exit(is_right ? 0 : 1);
    }
    int status = -1;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  static std::vector<float> filled(size_t size) {
    std::vector<float> values(size);
    for (size_t i = 0; i < size; ++i) values[i] = static_cast<float>(i % 37) / 7;
    return values;
  }
  std::vector<float> run(const compiled_partition& compiled, const std::vector<logical_tensor>& inputs,
                         const logical_tensor& output) {
    std::vector<std::vector<float>> memory;
    std::vector<tensor> given;
    for (const logical_tensor& input : inputs) {
      memory.push_back(filled(input.get_mem_size() / sizeof(float)));
      given.emplace_back(input, cpu_, memory.back().data());
    }
    std::vector<float> result(output.get_mem_size() / sizeof(float));
    compiled.execute(stream_, given, {{output, cpu_, result.data()}});
    return result;
  }
  // Partitions compiled before and after the fork give the parent's results, bit by bit.
  void expect_the_same_in_a_child(const op& an_op, const std::vector<logical_tensor>& inputs, const logical_tensor& output) {
    const auto compiled = only_partition_of({an_op}).compile(inputs, {output}, cpu_);
    const std::vector<float> expected = run(compiled, inputs, output);
    const auto is_expected = [&](const compiled_partition& each) {
      const std::vector<float> result = run(each, inputs, output);
      return std::memcmp(result.data(), expected.data(), expected.size() * sizeof(float)) == 0;
    };
    EXPECT_TRUE(is_true_in_a_child([&] { return is_expected(compiled); }));
    EXPECT_TRUE(is_true_in_a_child([&] { return is_expected(only_partition_of({an_op}).compile(inputs, {output}, cpu_)); }));
    EXPECT_TRUE(is_expected(compiled)) << "the parent goes on";
  }

  engine cpu_{engine::kind::cpu, 0};
  stream stream_{cpu_};
};

TEST_F(Fork, ANormRunsInTheChild) {
  const auto src = f32(0, {512, 768}), gamma = f32(1, {768}), beta = f32(2, {768}), dst = f32(3, {512, 768});
  expect_the_same_in_a_child(
      op(0, op::kind::LayerNorm, {src, gamma, beta}, {dst}, "norm").set_attr(op::attr::keep_stats, false), {src, gamma, beta},
      dst);
}

TEST_F(Fork, AProductRunsInTheChild) {
  const auto src = f32(0, {256, 512}), weights = f32(1, {512, 256}), dst = f32(2, {256, 256});
  expect_the_same_in_a_child(op(0, op::kind::MatMul, {src, weights}, {dst}, "product"), {src, weights}, dst);
}

TEST_F(Fork, AChildOfAChildExecutes) {
  const auto src = f32(0, {512, 768}), dst = f32(1, {512, 768});
  const auto compiled = compiled_relu(src, dst, cpu_);
  const std::vector<float> expected = run(compiled, {src}, dst);
  EXPECT_TRUE(is_true_in_a_child([&] {
    return run(compiled, {src}, dst) == expected && is_true_in_a_child([&] { return run(compiled, {src}, dst) == expected; });
  }));
}

// A fork during a compile: the child lacks the threads that held locks.
TEST_F(Fork, AChildCompilesWhileAThreadOfTheParentDoes) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the address sanitizer's allocator stays locked in a child, where another thread was in it";
#endif
  const auto compile = [&](int64_t size) {
    const auto src = f32(0, {16, size}), dst = f32(1, {16, size});
    only_partition_of({op(0, op::kind::SoftMax, {src}, {dst}, "softmax").set_attr(op::attr::axis, int64_t{-1})})
        .compile({src}, {dst}, cpu_);
  };
  compile(700);
  std::atomic<bool> ends = false;
  std::thread parent([&] {
    for (int64_t size = 701; !ends; ++size) compile(size);
  });
  for (int time = 0; time < 10; ++time) {
    EXPECT_TRUE(is_true_in_a_child([&] {
      alarm(10);
      compile(600 - time);
      return true;
    }));
  }
  ends = true;
  parent.join();
}

// Two threads of the parent work without pause while it forks 400 times. Each child does the same work: it would hang if a lock
// stayed held.
class ForkAmidWork : public Fork {
 protected:
  void SetUp() override {
    Fork::SetUp();
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizer's allocator stays locked in a child, where another thread was in it";
#endif
  }
  void expect_that_children_end(const std::function<void(int thread, int time)>& work) {
    work(0, 0);
    std::atomic<bool> ends = false;
    std::vector<std::thread> threads;
    for (int thread = 1; thread <= 2; ++thread) {
      threads.emplace_back([&, thread] {
        for (int time = 0; !ends; ++time) work(thread, time);
      });
    }
    int hung = 0;
    for (int time = 0; time < 400 && hung < 3; ++time) {
      hung += is_true_in_a_child([&] {
        alarm(10);
        work(0, time);
        return true;
      })
                  ? 0
                  : 1;
    }
    ends = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(hung, 0) << "children that did not end";
  }
  void compile_softmax(int64_t rows) const {
    const auto src = f32(0, {rows, 64}), dst = f32(1, {rows, 64});
    only_partition_of({op(0, op::kind::SoftMax, {src}, {dst}, "softmax").set_attr(op::attr::axis, int64_t{-1})})
        .compile({src}, {dst}, cpu_);
  }
};

TEST_F(ForkAmidWork, ThatLooksUpCompiledPartitions) {
  expect_that_children_end([&](int, int) { compile_softmax(16); });
}

TEST_F(ForkAmidWork, ThatCompiles) {
  expect_that_children_end([&](int thread, int time) { compile_softmax(1 + (time * 3 + thread) % 700); });
}

// The sums over rows need scratch memory.
TEST_F(ForkAmidWork, ThatExecutesAndPrintsVerboseLines) {
  const std::vector<logical_tensor> inputs = {f32(0, {256, 64}), f32(1, {256, 64}), f32(2, {256}),
                                              f32(3, {256}),     f32(4, {64}),      f32(5, {64})};
  const std::vector<logical_tensor> outputs = {f32(6, {256, 64}), f32(7, {64}), f32(8, {64})};
  const auto compiled =
      only_partition_of({op(0, op::kind::LayerNormBackward, inputs, outputs, "norm")}).compile(inputs, outputs, cpu_);
  const auto execute = [&](int, int) {
    std::vector<std::vector<float>> memory;
    std::vector<tensor> given, results;
    for (const logical_tensor& input : inputs) {
      memory.push_back(filled(input.get_mem_size() / sizeof(float)));
      given.emplace_back(input, cpu_, memory.back().data());
    }
    for (const logical_tensor& output : outputs) {
      memory.emplace_back(output.get_mem_size() / sizeof(float));
      results.emplace_back(output, cpu_, memory.back().data());
    }
    compiled.execute(stream_, given, results);
  };
  lamina_set_verbose_output(1, [](void*, const char*, size_t) {}, nullptr);
  expect_that_children_end(execute);
  lamina_set_verbose_output(0, nullptr, nullptr);
}

// Each call tunes another kernel, so that all of them are timed.
TEST_F(ForkAmidWork, ThatTunes) {
  expect_that_children_end([&](int thread, int time) {
    const auto src = f32(0, {2 + (time * 3 + thread) % 700, 48}), dst = f32(1, {2 + (time * 3 + thread) % 700, 48});
    only_partition_of({op(0, op::kind::SoftMax, {src}, {dst}, "softmax").set_attr(op::attr::axis, int64_t{-1})})
        .tune({src}, {dst}, cpu_, 1);
  });
}

TEST_F(ForkAmidWork, ThatExecutesAProduct) {
  const auto src = f32(0, {48, 64}), weights = f32(1, {64, 32}), dst = f32(2, {48, 32});
  const auto compiled =
      only_partition_of({op(0, op::kind::MatMul, {src, weights}, {dst}, "product")}).compile({src, weights}, {dst}, cpu_);
  expect_that_children_end([&](int, int) { run(compiled, {src, weights}, dst); });
}

TEST_F(ForkAmidWork, ThatCompilesProducts) {
  expect_that_children_end([&](int thread, int time) {
    const int64_t rows = 1 + (time * 3 + thread) % 4000;
    const auto src = f32(0, {rows, 64}), weights = f32(1, {64, 32}), dst = f32(2, {rows, 32});
    only_partition_of({op(0, op::kind::MatMul, {src, weights}, {dst}, "product")}).compile({src, weights}, {dst}, cpu_);
  });
}

}  // namespace
}  // namespace api_test
