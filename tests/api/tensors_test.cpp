// Tensors with their memory, host scalars, allocators, engines and streams, through the public interface.
#include <atomic>
#include <cstdlib>
#include <thread>

#include "api_fixture.h"

namespace api_test {
namespace {

class Tensors : public ::testing::Test {
 protected:
  tensor bind(const logical_tensor& lt, std::vector<float>& memory) { return {lt, cpu_, memory.data()}; }
  engine cpu_{engine::kind::cpu, 0};
  stream stream_{cpu_};
};

std::atomic<int> allocated = 0, released = 0;
std::atomic<bool> exhausted = false;
void* counting_allocate(size_t size, size_t alignment) {
  if (exhausted) return nullptr;
  ++allocated;
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}
void counting_release(void* memory) {
  ++released;
  std::free(memory);
}

TEST_F(Tensors, TensorsCanTakeTheirMemoryFromTheUsersAllocator) {
  allocated = released = 0;
  {
    const lamina::graph::allocator allocator(counting_allocate, counting_release);
    const engine counted = lamina::graph::make_engine_with_allocator(engine::kind::cpu, 0, allocator);
    const tensor t(f32(0, {100}), counted);
    EXPECT_NE(t.get_data_handle(), nullptr);
    EXPECT_EQ(allocated, 1);
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

TEST_F(Tensors, ATensorKeepsItsMemoryWhenItIsGivenItAgain) {
  allocated = released = 0;
  {
    const lamina::graph::allocator allocator(counting_allocate, counting_release);
    const engine counted = lamina::graph::make_engine_with_allocator(engine::kind::cpu, 0, allocator);
    tensor t(f32(0, {100}), counted);
    void* const memory = t.get_data_handle();
    t.set_data_handle(memory);
    EXPECT_EQ(t.get_data_handle(), memory);
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

TEST_F(Tensors, ATensorKeepsItsMemoryWhenThereIsNoMore) {
  allocated = released = 0;
  {
    const lamina::graph::allocator allocator(counting_allocate, counting_release);
    const engine counted = lamina::graph::make_engine_with_allocator(engine::kind::cpu, 0, allocator);
    tensor t(f32(0, {100}), counted);
    void* const memory = t.get_data_handle();
    exhausted = true;
    const Failure failure = failure_of([&] { t.set_data_handle(LAMINA_MEMORY_ALLOCATE); });
    exhausted = false;
    EXPECT_THAT(failure, FailsWith(lamina_out_of_memory, "out of memory"));
    EXPECT_EQ(t.get_data_handle(), memory);
    EXPECT_EQ(released, 0);
    t.set_data_handle(LAMINA_MEMORY_ALLOCATE);
    EXPECT_NE(t.get_data_handle(), memory);
    EXPECT_EQ(allocated, 2);
    EXPECT_EQ(released, 1);
  }
  EXPECT_EQ(released, 2);
}

// Equal partitions share an executable and its scratch memory, which is released with the last of them.
TEST_F(Tensors, ScratchMemoryStaysWhereALayerOfSeveralGoes) {
  allocated = released = 0;
  const auto src = f32(0, {64, 96}), diff_dst = f32(1, {64, 96}), mean = f32(2, {64}), variance = f32(3, {64});
  const auto gamma = f32(4, {96}), diff_src = f32(6, {64, 96}), diff_gamma = f32(7, {96}), diff_beta = f32(8, {96});
  const std::vector<logical_tensor> inputs{src, diff_dst, mean, variance, gamma}, outputs{diff_src, diff_gamma, diff_beta};
  {
    const lamina::graph::allocator allocator(counting_allocate, counting_release);
    const engine counted = lamina::graph::make_engine_with_allocator(engine::kind::cpu, 0, allocator),
                 plain(engine::kind::cpu, 0);
    const stream on_counted(counted), on_plain(plain);
    const auto layer = [&](const engine& on) {
      return only_partition_of({op(0, op::kind::LayerNormBackward, inputs, outputs, "norm")}).compile(inputs, outputs, on);
    };
    std::vector<std::vector<float>> memory;
    const auto execute = [&](const compiled_partition& compiled, const stream& on, const engine& of) {
      std::vector<tensor> given, results;
      for (const logical_tensor& input : inputs)
        given.emplace_back(input, of, memory.emplace_back(input.get_mem_size() / sizeof(float), 1.0f).data());
      for (const logical_tensor& output : outputs)
        results.emplace_back(output, of, memory.emplace_back(output.get_mem_size() / sizeof(float)).data());
      compiled.execute(on, given, results);
    };
    {
      const auto first = layer(counted);
      execute(first, on_counted, counted);
      ASSERT_EQ(allocated, 1);
      {
        const auto second = layer(counted), other = layer(plain);
        execute(second, on_counted, counted);
        execute(other, on_plain, plain);
        EXPECT_EQ(allocated, 1);
      }
      EXPECT_EQ(released, 0) << "the first layer is still there";
      execute(first, on_counted, counted);
      EXPECT_EQ(allocated, 1);
    }
    EXPECT_EQ(released, 1) << "no layer is left";
    {
      const auto other = layer(plain);
      {
        const auto again = layer(counted);
        execute(again, on_counted, counted);
        EXPECT_EQ(allocated, 2);
      }
      EXPECT_EQ(released, 2) << "the engine that its memory came from may go";
      execute(other, on_plain, plain);
    }
  }
  EXPECT_EQ(released, allocated);
}

TEST_F(Tensors, AllocatorWantsBothFunctionsOrNone) {
  EXPECT_THAT(failure_of([] { lamina::graph::allocator(counting_allocate, nullptr); }),
              FailsWith(lamina_invalid_arguments, "both host_malloc and host_free"));
}

TEST_F(Tensors, TensorKeepsItsHandleAndDescription) {
  std::vector<float> a(6), b(6);
  tensor t = bind(f32(3, {2, 3}), a);
  EXPECT_EQ(t.get_data_handle(), a.data());
  t.set_data_handle(b.data());
  EXPECT_EQ(t.get_data_handle(), b.data());
  EXPECT_TRUE(t.get_logical_tensor().is_equal(f32(3, {2, 3})));
}

TEST_F(Tensors, HostScalarsAreCopied) {
  const logical_tensor lt(3, data_type::f32, dims{}, layout_type::strided, property_type::host_scalar);
  float value = 4;
  tensor t = tensor::make_scalar_tensor(lt, &value);
  value = 5;
  // 2 * 4 = 8.
  const auto src = f32(1, {3}), dst = f32(2, {3});
  const auto product = only_partition_of({op(0, op::kind::Multiply, {src, lt}, {dst}, "product")});
  std::vector<float> x(3, 2), y(3);
  product.compile({src, lt}, {dst}, cpu_).execute(stream_, {bind(src, x), t}, {bind(dst, y)});
  EXPECT_THAT(y, ::testing::Each(8.0f));
  EXPECT_EQ(t.get_data_handle(), nullptr);
  EXPECT_FALSE(t.get_engine());
  EXPECT_THAT(failure_of([&] { t.set_data_handle(&value); }), FailsWith(lamina_invalid_arguments, "tensor 3 is a host scalar"));
  EXPECT_THAT(failure_of([&] { tensor::make_scalar_tensor(f32(1, {2}), &value); }),
              FailsWith(lamina_invalid_arguments, "a host scalar has rank 0"));
}

TEST_F(Tensors, AHostScalarHasRankZero) {
  EXPECT_THAT(failure_of([] { logical_tensor(3, data_type::f32, dims{2}, layout_type::strided, property_type::host_scalar); }),
              FailsWith(lamina_invalid_arguments, "logical tensor 3: ndims is 1 with property host_scalar, allowed is 0"));
}

TEST_F(Tensors, ATensorOfUnknownShapeStandsForThePorts) {
  const auto src = f32(0, {2, 3}), dst = f32(1, {2, 3});
  const auto relu = compiled_relu(src, dst, cpu_);
  std::vector<float> x{-1, 2, -3, 4, -5, 6}, y(6);
  const tensor open_src(logical_tensor(0, data_type::f32), cpu_, x.data());
  tensor open_dst(logical_tensor(1, data_type::f32, 2, layout_type::undef), cpu_, nullptr);
  EXPECT_THAT(failure_of([&] { relu.execute(stream_, {open_src}, {open_dst}); }),
              FailsWith(lamina_invalid_arguments, "output 1 has a null handle"));
  open_dst.set_data_handle(y.data());
  relu.execute(stream_, {open_src}, {open_dst});
  EXPECT_THAT(y, ::testing::ElementsAre(0, 2, 0, 4, 0, 6));
  const tensor other_type(logical_tensor(1, data_type::bf16), cpu_, y.data());
  EXPECT_THAT(failure_of([&] { relu.execute(stream_, {open_src}, {other_type}); }),
              FailsWith(lamina_invalid_arguments, "output 1 is bf16"));
}

TEST_F(Tensors, MemoryIsAllocatedForAKnownShapeOnly) {
  EXPECT_THAT(failure_of([&] { tensor(logical_tensor(1, data_type::f32), cpu_); }),
              FailsWith(lamina_invalid_arguments, "its shape must be known"));
}

TEST_F(Tensors, TensorsAndStreamsNameTheirEngine) {
  std::vector<float> x(6);
  EXPECT_EQ(bind(f32(0, {6}), x).get_engine().get(), cpu_.get());
  EXPECT_EQ(stream_.get_engine().get(), cpu_.get());
  EXPECT_EQ(stream_.get_engine().get_kind(), engine::kind::cpu);
}

TEST_F(Tensors, StreamsRunInOrderAndMayProfile) {
  stream(cpu_, stream::flags::out_of_order).wait();
  stream(cpu_, stream::flags::profiling).wait();
  stream(cpu_, static_cast<stream::flags>(lamina_stream_in_order | lamina_stream_profiling)).wait();
  EXPECT_THAT(failure_of([&] { stream(cpu_, static_cast<stream::flags>(8)); }),
              FailsWith(lamina_invalid_arguments, "flags is 8, allowed is lamina_stream_in_order"));
}

TEST(Engine, KindAndCount) {
  EXPECT_EQ(engine(engine::kind::cpu, 0).get_kind(), engine::kind::cpu);
  EXPECT_EQ(engine::get_count(engine::kind::cpu), 1u);
  EXPECT_THAT(failure_of([] { engine(engine::kind::cpu, 1); }), FailsWith(lamina_invalid_arguments, "engine index is 1"));
}

TEST(Version, IsThatOfTheBuild) { EXPECT_EQ(lamina::version()->major, 0); }

TEST(LastError, BelongsToTheThread) {
  EXPECT_EQ(lamina_stream_wait(nullptr), lamina_invalid_arguments);
  std::thread([] { EXPECT_STREQ(lamina_last_error(), ""); }).join();
  EXPECT_STRNE(lamina_last_error(), "");
}

}  // namespace
}  // namespace api_test
