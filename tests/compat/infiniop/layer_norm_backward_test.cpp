// infiniopLayerNormBackward as in its document: calls, types, strides, and a situation for each status.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "graph/lamina.h"
#include "infiniop.h"
#include "support/layer_norm_case.h"

namespace infiniop_test {
namespace {

using lamina::DataType;
using lamina::Dims;
using namespace lamina::testing;
using ::testing::HasSubstr;

infiniDtype_t to_infini(DataType type) {
  switch (type) {
    case DataType::f32: return INFINI_DTYPE_F32;
    case DataType::f16: return INFINI_DTYPE_F16;
    case DataType::bf16: return INFINI_DTYPE_BF16;
    case DataType::f64: return INFINI_DTYPE_F64;
    default: return INFINI_DTYPE_I32;
  }
}

// The tensors in the order of the document's create call.
enum Operand { grad_input, grad_weight, grad_bias, grad_output, weight, input_standardization, input_std_deviation, kCount };

struct Case {
  explicit Case(DataType type = DataType::f32, Dims shape = {5, 7, 33}, const Dims& strides = {}) {
    const Dims rows(shape.begin(), shape.end() - 1), columns{shape.back()};
    const auto count = static_cast<size_t>(TypedTensor(type, shape).count()),
               row_count = static_cast<size_t>(TypedTensor(type, rows).count());
    tensors[grad_input] = TypedTensor(type, shape, strides);
    tensors[grad_weight] = tensors[grad_bias] = TypedTensor(type, columns);
    tensors[grad_output] = TypedTensor(type, shape, RandomTensor(1).uniform(count, -2, 2), strides);
    tensors[weight] = TypedTensor(type, columns, RandomTensor(2).uniform(static_cast<size_t>(shape.back()), -2, 2));
    tensors[input_standardization] = TypedTensor(type, shape, RandomTensor(3).uniform(count, -2, 2), strides);
    tensors[input_std_deviation] = TypedTensor(type, rows, RandomTensor(4).uniform(row_count, 0.5, 2));
  }
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;
  ~Case() { destroy(); }

  void destroy() {
    infiniopDestroyLayerNormBackwardDescriptor(desc);
    for (infiniopTensorDescriptor_t& descriptor : descriptors)
      infiniopDestroyTensorDescriptor(std::exchange(descriptor, nullptr));
    infiniopDestroyHandle(std::exchange(handle, nullptr));
    desc = nullptr;
  }

  infiniStatus_t create() {
    destroy();
    EXPECT_EQ(infiniopCreateHandle(&handle), INFINI_STATUS_SUCCESS);
    for (size_t i = 0; i < kCount; ++i) {
      const TypedTensor& tensor = tensors[i];
      const std::vector<size_t> shape(tensor.shape.begin(), tensor.shape.end());
      const std::vector<ptrdiff_t> strides(tensor.strides.begin(), tensor.strides.end());
      EXPECT_EQ(
          infiniopCreateTensorDescriptor(&descriptors[i], shape.size(), shape.data(), strides.data(), to_infini(tensor.dtype)),
          INFINI_STATUS_SUCCESS);
    }
    return create_from_descriptors();
  }
  infiniStatus_t create_from_descriptors() {
    const auto& d = descriptors;
    return infiniopCreateLayerNormBackwardDescriptor(handle, &desc, d[grad_input], d[grad_weight], d[grad_bias], d[grad_output],
                                                     d[weight], d[input_standardization], d[input_std_deviation]);
  }
  infiniStatus_t execute(void* stream = nullptr) {
    size_t size = 0;
    EXPECT_EQ(infiniopGetLayerNormBackwardWorkspaceSize(desc, &size), INFINI_STATUS_SUCCESS);
    workspace.resize(size);
    std::array<void*, kCount> memory;
    for (size_t i = 0; i < kCount; ++i) memory[i] = tensors[i].data();
    return execute(memory, workspace.data(), size, stream);
  }
  infiniStatus_t execute(const std::array<void*, kCount>& m, void* space, size_t size, void* stream = nullptr) {
    return infiniopLayerNormBackward(desc, space, size, m[grad_input], m[grad_weight], m[grad_bias], m[grad_output], m[weight],
                                     m[input_standardization], m[input_std_deviation], stream);
  }
  std::array<void*, kCount> memory() {
    std::array<void*, kCount> all;
    for (size_t i = 0; i < kCount; ++i) all[i] = tensors[i].data();
    return all;
  }

  // The formula for a raw input with mean 0: src = x * std, variance + epsilon = std^2.
  LayerNormNumbers numbers() const {
    LayerNormNumbers n;
    n.size = tensors[grad_input].shape.back();
    n.epsilon = 0;
    n.diff_dst = tensors[grad_output].values();
    n.scale = tensors[weight].values();
    const Values deviation = tensors[input_std_deviation].values(), x = tensors[input_standardization].values();
    n.mean.assign(deviation.size(), 0);
    for (const double d : deviation) n.variance.push_back(d * d);
    for (size_t i = 0; i < x.size(); ++i) n.src.push_back(x[i] * deviation[i / static_cast<size_t>(n.size)]);
    return n;
  }
  void check(bool with_bias = true) {
    const LayerNormNumbers n = numbers();
    expect_close(tensors[grad_input], n.diff_src(), "grad_input", 4);
    expect_close(tensors[grad_weight], n.diff_scale(), "grad_weight", 4);
    if (with_bias) expect_close(tensors[grad_bias], n.diff_shift(), "grad_bias", 4);
  }

  std::array<TypedTensor, kCount> tensors;
  std::array<infiniopTensorDescriptor_t, kCount> descriptors{};
  infiniopHandle_t handle = nullptr;
  infiniopLayerNormBackwardDescriptor_t desc = nullptr;
  std::vector<unsigned char> workspace;
};

TEST(InfiniopLayerNormBackward, TakesF16F32AndBF16) {
  for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
    SCOPED_TRACE(name_of(type));
    Case c(type);
    ASSERT_EQ(c.create(), INFINI_STATUS_SUCCESS) << lamina_last_error();
    ASSERT_EQ(c.execute(), INFINI_STATUS_SUCCESS) << lamina_last_error();
    c.check();
  }
}

TEST(InfiniopLayerNormBackward, TakesStridedTensorsWithAContiguousLastDim) {
  const Dims strides[] = {{7 * 40, 40, 1}, {33, 5 * 33, 1}, {48, 5 * 48, 1}};
  for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
    for (const Dims& stride : strides) {
      Case c(type, {5, 7, 33}, stride);
      ASSERT_EQ(c.create(), INFINI_STATUS_SUCCESS) << lamina_last_error();
      ASSERT_EQ(c.execute(), INFINI_STATUS_SUCCESS) << lamina_last_error();
      c.check();
    }
  }
}

TEST(InfiniopLayerNormBackward, TensorsMayHaveStridesOfTheirOwn) {
  Case c;
  c.tensors[grad_input] = TypedTensor(DataType::f32, {5, 7, 33}, Dims{33, 5 * 33, 1});
  c.tensors[grad_weight] = TypedTensor(DataType::f32, {33}, Dims{3});
  c.tensors[weight] = TypedTensor(DataType::f32, {33}, c.tensors[weight].values(), Dims{2});
  c.tensors[input_std_deviation] = TypedTensor(DataType::f32, {5, 7}, c.tensors[input_std_deviation].values(), Dims{1, 5});
  ASSERT_EQ(c.create(), INFINI_STATUS_SUCCESS) << lamina_last_error();
  ASSERT_EQ(c.execute(), INFINI_STATUS_SUCCESS) << lamina_last_error();
  c.check();
}

TEST(InfiniopLayerNormBackward, TakesOneToFiveDims) {
  for (const Dims& shape : {Dims{33}, Dims{6, 33}, Dims{2, 3, 33}, Dims{2, 3, 4, 33}, Dims{2, 3, 1, 4, 33}}) {
    Case c(DataType::f32, shape);
    ASSERT_EQ(c.create(), INFINI_STATUS_SUCCESS) << lamina_last_error();
    ASSERT_EQ(c.execute(), INFINI_STATUS_SUCCESS) << lamina_last_error();
    c.check();
  }
}

TEST(InfiniopLayerNormBackward, StridesMayBeLeftOut) {
  const size_t shape[] = {5, 7, 33}, one = 33;
  Case c;
  ASSERT_EQ(c.create(), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infiniopDestroyTensorDescriptor(c.descriptors[grad_input]), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infiniopCreateTensorDescriptor(&c.descriptors[grad_input], 3, shape, nullptr, INFINI_DTYPE_F32),
            INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infiniopDestroyTensorDescriptor(c.descriptors[weight]), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infiniopCreateTensorDescriptor(&c.descriptors[weight], 1, &one, nullptr, INFINI_DTYPE_F32), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infiniopDestroyLayerNormBackwardDescriptor(c.desc), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(c.create_from_descriptors(), INFINI_STATUS_SUCCESS) << lamina_last_error();
  ASSERT_EQ(c.execute(), INFINI_STATUS_SUCCESS) << lamina_last_error();
  c.check();
}

TEST(InfiniopLayerNormBackward, TheGradientOfTheBiasMayBeLeftOut) {
  Case c;
  ASSERT_EQ(c.create(), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infiniopDestroyLayerNormBackwardDescriptor(c.desc), INFINI_STATUS_SUCCESS);
  infiniopDestroyTensorDescriptor(std::exchange(c.descriptors[grad_bias], nullptr));
  ASSERT_EQ(c.create_from_descriptors(), INFINI_STATUS_SUCCESS) << lamina_last_error();
  auto memory = c.memory();
  memory[grad_bias] = nullptr;
  size_t size = 0;
  ASSERT_EQ(infiniopGetLayerNormBackwardWorkspaceSize(c.desc, &size), INFINI_STATUS_SUCCESS);
  std::vector<unsigned char> workspace(size);
  ASSERT_EQ(c.execute(memory, workspace.data(), size), INFINI_STATUS_SUCCESS) << lamina_last_error();
  c.check(false);
}

TEST(InfiniopLayerNormBackward, RunsOnAStream) {
  infinirtStream_t stream = nullptr;
  ASSERT_EQ(infinirtStreamCreate(&stream), INFINI_STATUS_SUCCESS);
  Case c;
  ASSERT_EQ(c.create(), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(c.execute(stream), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infinirtStreamSynchronize(stream), INFINI_STATUS_SUCCESS);
  c.check();
  EXPECT_EQ(infinirtStreamDestroy(stream), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtStreamSynchronize(stream), INFINI_STATUS_BAD_PARAM);
}

TEST(InfiniopLayerNormBackward, TheDescriptorNeedsNothingThatItWasMadeFrom) {
  Case c;
  ASSERT_EQ(c.create(), INFINI_STATUS_SUCCESS);
  for (infiniopTensorDescriptor_t& descriptor : c.descriptors)
    infiniopDestroyTensorDescriptor(std::exchange(descriptor, nullptr));
  infiniopDestroyHandle(std::exchange(c.handle, nullptr));
  ASSERT_EQ(c.execute(), INFINI_STATUS_SUCCESS);
  c.check();
}

TEST(InfiniopLayerNormBackward, ManyThreadsExecuteOneDescriptor) {
  Case c;
  ASSERT_EQ(c.create(), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(c.execute(), INFINI_STATUS_SUCCESS);
  size_t size = 0;
  ASSERT_EQ(infiniopGetLayerNormBackwardWorkspaceSize(c.desc, &size), INFINI_STATUS_SUCCESS);
  std::vector<std::array<TypedTensor, kCount>> copies(4, c.tensors);
  std::vector<std::thread> threads;
  for (auto& copy : copies) {
    threads.emplace_back([&] {
      std::array<void*, kCount> memory;
      for (size_t i = 0; i < kCount; ++i) memory[i] = copy[i].data();
      std::vector<unsigned char> workspace(size);
      for (int i = 0; i < 20; ++i) EXPECT_EQ(c.execute(memory, workspace.data(), size), INFINI_STATUS_SUCCESS);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& copy : copies)
    for (const Operand output : {grad_input, grad_weight, grad_bias}) expect_same(copy[output], c.tensors[output], "an output");
}

TEST(InfiniopLayerNormBackward, EmptyTensorsAreANoOpThatSucceeds) {
  Case c(DataType::f32, {0, 33});
  ASSERT_EQ(c.create(), INFINI_STATUS_SUCCESS) << lamina_last_error();
  EXPECT_EQ(c.execute(), INFINI_STATUS_SUCCESS) << lamina_last_error();
  for (int64_t i = 0; i < 33; ++i) EXPECT_EQ(c.tensors[grad_weight].at(i), 0) << "a sum over no rows";
}

// ---- a situation for each status

TEST(InfiniopStatus, BadParamForNullPointers) {
  Case c;
  ASSERT_EQ(c.create(), INFINI_STATUS_SUCCESS);
  const auto& d = c.descriptors;
  EXPECT_EQ(infiniopCreateLayerNormBackwardDescriptor(nullptr, &c.desc, d[0], d[1], d[2], d[3], d[4], d[5], d[6]),
            INFINI_STATUS_BAD_PARAM);
  EXPECT_THAT(lamina_last_error(), HasSubstr("handle is null"));
  EXPECT_EQ(infiniopCreateLayerNormBackwardDescriptor(c.handle, nullptr, d[0], d[1], d[2], d[3], d[4], d[5], d[6]),
            INFINI_STATUS_BAD_PARAM);
  infiniopLayerNormBackwardDescriptor_t made = nullptr;
  for (size_t absent = 0; absent < kCount; ++absent) {
    if (absent == grad_bias) continue;
    auto some = d;
    some[absent] = nullptr;
    EXPECT_EQ(infiniopCreateLayerNormBackwardDescriptor(c.handle, &made, some[0], some[1], some[2], some[3], some[4], some[5],
                                                        some[6]),
              INFINI_STATUS_BAD_PARAM);
    EXPECT_THAT(lamina_last_error(), HasSubstr("_desc is null"));
  }
  size_t size = 0;
  EXPECT_EQ(infiniopGetLayerNormBackwardWorkspaceSize(nullptr, &size), INFINI_STATUS_BAD_PARAM);
  EXPECT_EQ(infiniopGetLayerNormBackwardWorkspaceSize(c.desc, nullptr), INFINI_STATUS_BAD_PARAM);
  ASSERT_EQ(infiniopGetLayerNormBackwardWorkspaceSize(c.desc, &size), INFINI_STATUS_SUCCESS);
  std::vector<unsigned char> workspace(size);
  for (size_t absent = 0; absent < kCount; ++absent) {
    auto memory = c.memory();
    memory[absent] = nullptr;
    EXPECT_EQ(c.execute(memory, workspace.data(), size), INFINI_STATUS_BAD_PARAM) << absent;
    EXPECT_THAT(lamina_last_error(), HasSubstr("is null"));
  }
  EXPECT_EQ(c.execute(c.memory(), nullptr, size), INFINI_STATUS_BAD_PARAM);
  EXPECT_EQ(infiniopCreateHandle(nullptr), INFINI_STATUS_BAD_PARAM);
  EXPECT_EQ(infiniopDestroyLayerNormBackwardDescriptor(nullptr), INFINI_STATUS_SUCCESS);
}

TEST(InfiniopStatus, BadParamForUseAfterDestroy) {
  Case c;
  ASSERT_EQ(c.create(), INFINI_STATUS_SUCCESS);
  infiniopLayerNormBackwardDescriptor_t stale = c.desc;
  EXPECT_EQ(infiniopDestroyLayerNormBackwardDescriptor(std::exchange(c.desc, nullptr)), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infiniopDestroyLayerNormBackwardDescriptor(stale), INFINI_STATUS_BAD_PARAM);
  size_t size = 0;
  EXPECT_EQ(infiniopGetLayerNormBackwardWorkspaceSize(stale, &size), INFINI_STATUS_BAD_PARAM);
  EXPECT_THAT(lamina_last_error(), HasSubstr("desc is already destroyed"));
  c.desc = stale;
  EXPECT_EQ(c.execute(c.memory(), nullptr, 0), INFINI_STATUS_BAD_PARAM);
  c.desc = nullptr;
  infiniopTensorDescriptor_t stale_tensor = c.descriptors[weight];
  infiniopDestroyTensorDescriptor(stale_tensor);
  EXPECT_EQ(c.create_from_descriptors(), INFINI_STATUS_BAD_PARAM);
  EXPECT_THAT(lamina_last_error(), HasSubstr("weight_desc is already destroyed"));
  c.descriptors[weight] = nullptr;
}

TEST(InfiniopStatus, BadParamForAnOutputInTheMemoryOfAnInput) {
  Case c;
  ASSERT_EQ(c.create(), INFINI_STATUS_SUCCESS);
  size_t size = 0;
  ASSERT_EQ(infiniopGetLayerNormBackwardWorkspaceSize(c.desc, &size), INFINI_STATUS_SUCCESS);
  std::vector<unsigned char> workspace(size);
  auto memory = c.memory();
  memory[grad_weight] = memory[weight];
  EXPECT_EQ(c.execute(memory, workspace.data(), size), INFINI_STATUS_BAD_PARAM);
  memory = c.memory();
  memory[grad_input] = memory[grad_output];
  EXPECT_EQ(c.execute(memory, workspace.data(), size), INFINI_STATUS_SUCCESS) << "in place: " << lamina_last_error();
}

TEST(InfiniopStatus, InsufficientWorkspace) {
  Case c;
  ASSERT_EQ(c.create(), INFINI_STATUS_SUCCESS);
  size_t size = 0;
  ASSERT_EQ(infiniopGetLayerNormBackwardWorkspaceSize(c.desc, &size), INFINI_STATUS_SUCCESS);
  ASSERT_GT(size, 0U);
  std::vector<unsigned char> workspace(size);
  EXPECT_EQ(c.execute(c.memory(), workspace.data(), size - 1), INFINI_STATUS_INSUFFICIENT_WORKSPACE);
  EXPECT_THAT(lamina_last_error(), HasSubstr("workspace_size is " + std::to_string(size - 1)));
  EXPECT_EQ(c.execute(c.memory(), workspace.data(), size), INFINI_STATUS_SUCCESS);
}

TEST(InfiniopStatus, DeviceTypeNotSupported) {
  Case c;
  ASSERT_EQ(c.create(), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infinirtSetDevice(INFINI_DEVICE_NVIDIA, 0), INFINI_STATUS_SUCCESS);
  infiniopHandle_t other = nullptr;
  ASSERT_EQ(infiniopCreateHandle(&other), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infinirtSetDevice(INFINI_DEVICE_CPU, 0), INFINI_STATUS_SUCCESS);
  std::swap(c.handle, other);
  infiniopLayerNormBackwardDescriptor_t working = std::exchange(c.desc, nullptr);
  EXPECT_EQ(c.create_from_descriptors(), INFINI_STATUS_DEVICE_TYPE_NOT_SUPPORTED);
  EXPECT_THAT(lamina_last_error(), HasSubstr("the handle is for device 1, allowed is the CPU (0)"));
  EXPECT_EQ(c.desc, nullptr);
  c.desc = working;
  infiniopDestroyHandle(other);
}

TEST(InfiniopStatus, DeviceNotFound) {
  ASSERT_EQ(infinirtSetDevice(INFINI_DEVICE_CPU, 3), INFINI_STATUS_SUCCESS);
  infiniopHandle_t handle = nullptr;
  EXPECT_EQ(infiniopCreateHandle(&handle), INFINI_STATUS_DEVICE_NOT_FOUND);
  ASSERT_EQ(infinirtSetDevice(INFINI_DEVICE_CPU, 0), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtSetDevice(INFINI_DEVICE_TYPE_COUNT, 0), INFINI_STATUS_BAD_PARAM);
}

TEST(InfiniopStatus, BadTensorDtypeForOtherTypesAndForTwoTypes) {
  for (const DataType type : {DataType::f64, DataType::s32}) {
    Case c(type);
    EXPECT_EQ(c.create(), INFINI_STATUS_BAD_TENSOR_DTYPE);
    EXPECT_THAT(lamina_last_error(), HasSubstr("allowed are F16 (12), F32 (13), BF16 (19)"));
  }
  for (size_t other = 0; other < kCount; ++other) {
    Case c;
    c.tensors[other] = TypedTensor(DataType::f16, c.tensors[other].shape);
    EXPECT_EQ(c.create(), INFINI_STATUS_BAD_TENSOR_DTYPE) << other;
    EXPECT_THAT(lamina_last_error(), HasSubstr("all tensors must have the same type"));
  }
}

TEST(InfiniopStatus, BadTensorDtypeForMemoryThatCannotHoldTheType) {
  Case c;
  ASSERT_EQ(c.create(), INFINI_STATUS_SUCCESS);
  std::vector<unsigned char> workspace(1 << 16);
  auto memory = c.memory();
  memory[weight] = static_cast<unsigned char*>(memory[weight]) + 2;
  EXPECT_EQ(c.execute(memory, workspace.data(), workspace.size()), INFINI_STATUS_BAD_TENSOR_DTYPE);
  EXPECT_THAT(lamina_last_error(), HasSubstr("weight_desc is at an address that is not a multiple of 4"));
}

TEST(InfiniopStatus, BadTensorShape) {
  const std::array<Dims, kCount> wrong = {{{5, 7, 34}, {34}, {33, 1}, {5, 7, 34}, {32}, {7, 5, 33}, {5, 7, 1}}};
  for (size_t other = 0; other < kCount; ++other) {
    Case c;
    c.tensors[other] = TypedTensor(DataType::f32, wrong[other]);
    EXPECT_EQ(c.create(), INFINI_STATUS_BAD_TENSOR_SHAPE) << other;
    EXPECT_THAT(lamina_last_error(), HasSubstr("allowed is"));
  }
}

TEST(InfiniopStatus, BadTensorStrides) {
  for (const Operand operand : {grad_input, grad_output, input_standardization}) {
    Case c;
    c.tensors[operand] = TypedTensor(DataType::f32, {5, 7, 33}, Dims{1, 5, 35});
    EXPECT_EQ(c.create(), INFINI_STATUS_BAD_TENSOR_STRIDES) << operand;
    EXPECT_THAT(lamina_last_error(), HasSubstr("the last must be 1"));
  }
  for (const Operand operand : {grad_input, grad_weight, grad_bias}) {
    Case c;
    c.tensors[operand].strides[0] = 0;
    EXPECT_EQ(c.create(), INFINI_STATUS_BAD_TENSOR_STRIDES) << operand;
  }
  for (size_t operand = 0; operand < kCount; ++operand) {
    Case c;
    c.tensors[operand].strides[0] = -1;
    EXPECT_EQ(c.create(), INFINI_STATUS_BAD_TENSOR_STRIDES) << operand;
  }
}

}  // namespace
}  // namespace infiniop_test
