// Executions that use the caller's scratchpad.
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "api_fixture.h"

namespace api_test {
namespace {

// A product whose weights are packed in every execution, so that it needs scratch memory.
class Scratchpad : public ::testing::Test {
 protected:
  Scratchpad()
      : compiled_(only_partition_of({op(0, op::kind::MatMul, {src_, weights_}, {between_}, "product"),
                                     op(1, op::kind::SoftMax, {between_}, {dst_}, "softmax").set_attr(op::attr::axis, 1)})
                      .compile({src_, weights_}, {dst_}, cpu_)),
        bytes_(compiled_.get_scratchpad_logical_tensor().get_mem_size()),
        memory_(static_cast<char*>(std::aligned_alloc(64, (bytes_ + 127) / 64 * 64)), std::free) {}

  std::vector<float> run(const tensor& scratchpad) {
    std::vector<float> src(64 * 32, 0.5f), weights(32 * 48), dst(64 * 48);
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 48) / 48;
    compiled_.execute(stream_, {{src_, cpu_, src.data()}, {weights_, cpu_, weights.data()}}, {{dst_, cpu_, dst.data()}},
                      scratchpad);
    return dst;
  }
  tensor scratchpad_of(size_t bytes, void* memory) const {
    return {logical_tensor(9, data_type::u8, {static_cast<int64_t>(bytes)}, layout_type::strided), cpu_, memory};
  }

  engine cpu_{engine::kind::cpu, 0};
  stream stream_{cpu_};
  logical_tensor src_ = f32(0, {64, 32}), weights_ = f32(1, {32, 48}), between_ = f32(2, {64, 48}), dst_ = f32(3, {64, 48});
  compiled_partition compiled_;
  size_t bytes_;
  std::unique_ptr<char, void (*)(void*)> memory_;
};

TEST_F(Scratchpad, IsDescribedAsBytes) {
  const logical_tensor lt = compiled_.get_scratchpad_logical_tensor();
  EXPECT_EQ(lt.get_data_type(), data_type::u8);
  EXPECT_EQ(lt.get_dims(), (dims{static_cast<int64_t>(bytes_)}));
  EXPECT_GT(bytes_, 0u);
}

TEST_F(Scratchpad, IsUsedInPlaceOfMemoryOfLamina) {
  const std::vector<float> expected = run(tensor());
  std::fill_n(memory_.get(), bytes_ + 64, char{77});
  EXPECT_EQ(run(scratchpad_of(bytes_, memory_.get())), expected);
  EXPECT_TRUE(std::any_of(memory_.get(), memory_.get() + bytes_, [](char c) { return c != 77; })) << "it was not used";
  EXPECT_TRUE(std::all_of(memory_.get() + bytes_, memory_.get() + bytes_ + 64, [](char c) { return c == 77; }))
      << "more than that was written";
}

TEST_F(Scratchpad, IsRefusedWhereItDoesNotServe) {
  EXPECT_THAT(failure_of([&] { run(scratchpad_of(bytes_ - 1, memory_.get())); }),
              FailsWith(lamina_invalid_arguments, "the scratchpad has " + std::to_string(bytes_ - 1) + " bytes, " +
                                                      std::to_string(bytes_) + " are needed"));
  EXPECT_THAT(failure_of([&] { run(scratchpad_of(bytes_, nullptr)); }),
              FailsWith(lamina_invalid_arguments, "the scratchpad has a null handle"));
  EXPECT_THAT(failure_of([&] { run(scratchpad_of(bytes_, memory_.get() + 4)); }),
              FailsWith(lamina_invalid_arguments, "the scratchpad is not aligned to 64 bytes"));
}

TEST(ScratchpadOfNothing, IsEmptyAndNotNeeded) {
  const engine cpu(engine::kind::cpu, 0);
  const auto relu = compiled_relu(f32(0, {6}), f32(1, {6}), cpu);
  EXPECT_EQ(relu.get_scratchpad_logical_tensor().get_mem_size(), 0u);
}

}  // namespace
}  // namespace api_test
