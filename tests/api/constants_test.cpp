// Constant weights are packed once per compiled partition, and only if this is allowed.
#include <thread>

#include "api_fixture.h"

namespace api_test {
namespace {

using ::testing::Each;

class Constants : public ::testing::Test {
 protected:
  void TearDown() override {
    lamina::graph::set_constant_tensor_cache(1);
    lamina::graph::set_constant_tensor_cache_capacity(engine::kind::cpu, SIZE_MAX);
  }

  // [rows, 32] x [32, 48], the weights constant.
  partition product(int64_t rows, property_type property) {
    src_ = f32(0, {rows, 32});
    weights_ = logical_tensor(1, data_type::f32, {32, 48}, layout_type::strided, property);
    dst_ = f32(2, {rows, 48});
    return only_partition_of({op(0, op::kind::MatMul, {src_, weights_}, {dst_}, "product")});
  }
  std::vector<float> run(const compiled_partition& compiled, float value) {
    std::vector<float> src(static_cast<size_t>(src_.get_dims()[0]) * 32, 1.0f), weights(32 * 48, value),
        dst(src.size() / 32 * 48);
    compiled.execute(stream_, {{src_, cpu_, src.data()}, {weights_, cpu_, weights.data()}}, {{dst_, cpu_, dst.data()}});
    return dst;
  }

  engine cpu_{engine::kind::cpu, 0};
  stream stream_{cpu_};
  logical_tensor src_{0, data_type::f32}, weights_{1, data_type::f32}, dst_{2, data_type::f32};
};

TEST_F(Constants, AreThoseOfTheFirstExecution) {
  for (const int64_t rows : {1, 500}) {
    const auto compiled = product(rows, property_type::constant).compile({src_, weights_}, {dst_}, cpu_);
    EXPECT_THAT(run(compiled, 2), Each(64.0f));
    EXPECT_THAT(run(compiled, 3), Each(64.0f)) << "a constant keeps its value";
  }
}

TEST_F(Constants, MayBeDeclaredAtCompilationAlone) {
  const partition made = product(4, property_type::undef);
  const logical_tensor constant(1, data_type::f32, {32, 48}, layout_type::strided, property_type::constant);
  const auto with = made.compile({src_, constant}, {dst_}, cpu_), without = made.compile({src_, weights_}, {dst_}, cpu_);
  EXPECT_THAT(run(with, 2), Each(64.0f));
  EXPECT_THAT(run(with, 3), Each(64.0f));
  EXPECT_THAT(run(without, 2), Each(64.0f));
  EXPECT_THAT(run(without, 3), Each(96.0f));
}

TEST_F(Constants, BelongToTheirCompiledPartition) {
  const auto first = product(4, property_type::constant).compile({src_, weights_}, {dst_}, cpu_);
  const auto second = product(4, property_type::constant).compile({src_, weights_}, {dst_}, cpu_);
  EXPECT_THAT(run(first, 2), Each(64.0f));
  EXPECT_THAT(run(second, 3), Each(96.0f)) << "the code is shared, the weights are not";
  EXPECT_THAT(run(first, 2), Each(64.0f));
}

TEST_F(Constants, AreNotKeptWhereNobodyWantsIt) {
  lamina::graph::set_constant_tensor_cache(0);
  EXPECT_EQ(lamina::graph::get_constant_tensor_cache(), 0);
  const auto compiled = product(4, property_type::constant).compile({src_, weights_}, {dst_}, cpu_);
  EXPECT_THAT(run(compiled, 2), Each(64.0f));
  EXPECT_THAT(run(compiled, 3), Each(96.0f));
}

TEST_F(Constants, AreKeptAsFarAsTheyFit) {
  EXPECT_EQ(lamina::graph::get_constant_tensor_cache_capacity(engine::kind::cpu), SIZE_MAX);
  const auto unlimited = product(4, property_type::constant).compile({src_, weights_}, {dst_}, cpu_);
  lamina::graph::set_constant_tensor_cache_capacity(engine::kind::cpu, 0);
  EXPECT_EQ(lamina::graph::get_constant_tensor_cache_capacity(engine::kind::cpu), 0u);
  const auto limited = product(4, property_type::constant).compile({src_, weights_}, {dst_}, cpu_);
  EXPECT_THAT(run(unlimited, 2), Each(64.0f));
  EXPECT_THAT(run(unlimited, 3), Each(64.0f)) << "it was compiled before there was a limit";
  EXPECT_THAT(run(limited, 2), Each(64.0f));
  EXPECT_THAT(run(limited, 3), Each(96.0f)) << "nothing is kept";
}

// 32 x 48 values need less than a mebibyte: some of many such partitions fit, and destroyed ones release their share.
TEST_F(Constants, GiveTheirRoomBack) {
  lamina::graph::set_constant_tensor_cache_capacity(engine::kind::cpu, 1);
  const auto keeps = [&](const compiled_partition& compiled) {
    run(compiled, 2);
    return run(compiled, 3).front() == 64.0f;
  };
  const auto fresh = [&] { return product(4, property_type::constant).compile({src_, weights_}, {dst_}, cpu_); };
  std::vector<compiled_partition> all;
  for (size_t most = 4096; most > 0 && (all.empty() || keeps(all.back())); --most) all.push_back(fresh());
  ASSERT_GT(all.size(), 2u);
  EXPECT_FALSE(keeps(all.back()));
  all.erase(all.begin());
  EXPECT_TRUE(keeps(fresh()));
}

TEST_F(Constants, CapacityIsOfTheCpu) {
  EXPECT_THAT(failure_of([] { lamina::graph::set_constant_tensor_cache_capacity(engine::kind::gpu, 1); }),
              FailsWith(lamina_invalid_arguments, "kind is gpu, allowed is cpu"));
}

TEST_F(Constants, OthersMayChange) {
  const auto compiled = product(4, property_type::variable).compile({src_, weights_}, {dst_}, cpu_);
  EXPECT_THAT(run(compiled, 2), Each(64.0f));
  EXPECT_THAT(run(compiled, 3), Each(96.0f));
}

TEST_F(Constants, ArePackedOnceByManyThreads) {
  const auto compiled = product(64, property_type::constant).compile({src_, weights_}, {dst_}, cpu_);
  std::vector<std::vector<float>> results(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < results.size(); ++i) threads.emplace_back([&, i] { results[i] = run(compiled, 2); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_THAT(result, Each(64.0f));
}

TEST_F(Constants, AFlagIsNotNegative) {
  EXPECT_THAT(failure_of([] { lamina::graph::set_constant_tensor_cache(-1); }),
              FailsWith(lamina_invalid_arguments, "flag is -1, allowed is 0 or more"));
}

}  // namespace
}  // namespace api_test
