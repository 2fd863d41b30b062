// Many threads compile and execute attention concurrently through the public interface: one shared partition, and others that
// are compiled meanwhile.
#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "api_fixture.h"

namespace api_test {
namespace {

class LibraryThreads : public ::testing::Test {
 protected:
  static constexpr int64_t kHeads = 4, kRows = 96, kWidth = 32;

  LibraryThreads() {
    const dims qkv{1, kHeads, kRows, kWidth}, scores{1, kHeads, kRows, kRows};
    for (size_t i = 0; i < 3; ++i) inputs_.push_back(f32(i, qkv));
    const logical_tensor products = f32(3, scores), weights = f32(4, scores);
    dst_ = f32(5, qkv);
    partition_ = only_partition_of(
        {op(0, op::kind::MatMul, {inputs_[0], inputs_[1]}, {products}, "qk").set_attr(op::attr::transpose_b, true),
         op(1, op::kind::SoftMax, {products}, {weights}, "softmax").set_attr(op::attr::axis, int64_t{-1}),
         op(2, op::kind::MatMul, {weights, inputs_[2]}, {dst_}, "pv")});
    for (size_t i = 0; i < memory_.size(); ++i) {
      memory_[i].resize(kHeads * kRows * kWidth);
      for (size_t j = 0; j < memory_[i].size(); ++j) memory_[i][j] = static_cast<float>((j * 37 + i * 11) % 64) / 64.0f - 0.5f;
    }
  }

  compiled_partition compile() const { return partition_.compile(inputs_, {dst_}, cpu_); }
  std::vector<float> run(const compiled_partition& compiled) {
    std::vector<float> dst(memory_[0].size());
    std::vector<tensor> in;
    for (size_t i = 0; i < 3; ++i) in.emplace_back(inputs_[i], cpu_, memory_[i].data());
    compiled.execute(stream_, in, {{dst_, cpu_, dst.data()}});
    return dst;
  }

  engine cpu_{engine::kind::cpu, 0};
  stream stream_{cpu_};  // shared by all threads
  std::vector<logical_tensor> inputs_;
  logical_tensor dst_{5, data_type::f32};
  partition partition_;
  std::array<std::vector<float>, 3> memory_;
};

TEST_F(LibraryThreads, SharedAndNewPartitionsGiveTheSameBits) {
  const compiled_partition shared = compile();
  const std::vector<float> expected = run(shared);
  std::atomic<int> different = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const std::vector<float> dst = run(t % 2 == 0 ? shared : compile());
        if (std::memcmp(dst.data(), expected.data(), dst.size() * sizeof(float)) != 0) ++different;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(different, 0);
}

}  // namespace
}  // namespace api_test
