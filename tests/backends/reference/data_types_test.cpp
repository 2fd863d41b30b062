// How the reference reads and writes each element type: rounding, saturation, packing, strides, ranks and empty tensors.
#include <limits>

#include "backends/backend.h"
#include "backends/reference/op_case.h"
#include "passes/extract_subgraph.h"

namespace lamina::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
const double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

LogicalTensor tensor_of(DataType dtype, const Dims& shape, const Dims& strides = {}) {
  LogicalTensor tensor;
  tensor.id = 0;
  tensor.dtype = dtype;
  tensor.shape = shape;
  tensor.layout = LayoutType::strided;
  tensor.strides = strides.empty() ? dense_strides(shape) : strides;
  return tensor;
}

// Returns `values` after storing and loading them.
Numbers stored(DataType dtype, const Numbers& values) {
  const LogicalTensor tensor = tensor_of(dtype, {static_cast<int64_t>(values.size())});
  std::vector<std::byte> memory(static_cast<size_t>(tensor.byte_size()));
  reference::store({DataType::f64, *tensor.shape, values, {}}, tensor, memory.data());
  return reference::load(tensor, memory.data()).values;
}

TEST(ReferenceDataTypes, FloatsRoundToNearestEven) {
  EXPECT_THAT(stored(DataType::f32, {1 + 0x1p-24, 1 + 3 * 0x1p-24, -0x1p-149}), ElementsAre(1, 1 + 0x1p-22, -0x1p-149));
  EXPECT_THAT(stored(DataType::bf16, {1 + 0x1p-8, 1 + 3 * 0x1p-8, 3.5e38}), ElementsAre(1, 1 + 0x1p-6, kInf));
  EXPECT_THAT(stored(DataType::f16, {1 + 0x1p-11, 1 + 3 * 0x1p-11, 65519, 65520, 0x1p-25, 3 * 0x1p-26}),
              ElementsAre(1, 1 + 0x1p-9, 65504, kInf, 0, 0x1p-24));
}

TEST(ReferenceDataTypes, F8OverflowsToNanOrInfinity) {
  // e4m3: 3 bits of mantissa, at most 448, no infinity; e5m2: 2 bits, at most 57344
  EXPECT_THAT(stored(DataType::f8_e4m3, {1.0625, 1.1875, 463, -448, 0x1p-9, 0x1p-10}),
              ElementsAre(1, 1.25, 448, -448, 0x1p-9, 0));
  expect_close(stored(DataType::f8_e4m3, {465, -kInf, kNaN}), {kNaN, kNaN, kNaN});
  EXPECT_THAT(stored(DataType::f8_e5m2, {1.125, 1.375, 61439, 61440, -0x1p-16}), ElementsAre(1, 1.5, 57344, kInf, -0x1p-16));
  expect_close(stored(DataType::f8_e5m2, {kNaN, -1e9}), {kNaN, -kInf});
}

TEST(ReferenceDataTypes, IntegersRoundHalvesToEvenAndSaturate) {
  EXPECT_THAT(stored(DataType::s8, {0.5, 1.5, -2.5, 127.6, -1e9, kNaN}), ElementsAre(0, 2, -2, 127, -128, 0));
  EXPECT_THAT(stored(DataType::u8, {-0.6, 254.5, 300}), ElementsAre(0, 254, 255));
  EXPECT_THAT(stored(DataType::s32, {2147483646.5, 3e9, -3e9}), ElementsAre(2147483646.0, 2147483647.0, -2147483648.0));
  EXPECT_THAT(stored(DataType::s64, {-1.5, 1e300}), ElementsAre(-2, 0x1p63));
  EXPECT_THAT(stored(DataType::s4, {-9, -8, 6.5, 7.5, 100}), ElementsAre(-8, -8, 6, 7, 7));
  EXPECT_THAT(stored(DataType::u4, {-1, 0.5, 14.5, 15, 16}), ElementsAre(0, 0, 14, 15, 15));
  EXPECT_THAT(stored(DataType::boolean, {0, -0.0, 0.25, -3}), ElementsAre(0, 0, 1, 1));
}

TEST(ReferenceDataTypes, FourBitNumbersLieTwoAByteTheFirstInTheLowHalf) {
  const LogicalTensor tensor = tensor_of(DataType::s4, {3});
  std::vector<uint8_t> memory{0xAA, 0xAA};
  reference::store({DataType::f64, {3}, {1, -2, 3}, {}}, tensor, memory.data());
  EXPECT_THAT(memory, ElementsAre(0xE1, 0xA3));  // the unused half does not change
  EXPECT_THAT(reference::load(tensor_of(DataType::u4, {3}), memory.data()).values, ElementsAre(1, 14, 3));
}

TEST(ReferenceDataTypes, StridesCountElementsOfFourBitsToo) {
  // u4 [2, 3] with a row of four elements: bytes 0 and 1, 2 and 3
  const std::vector<uint8_t> memory{0x21, 0xF3, 0x54, 0xF6};
  EXPECT_THAT(reference::load(tensor_of(DataType::u4, {2, 3}, {4, 1}), memory.data()).values, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(reference::load(tensor_of(DataType::u4, {3, 2}, {1, 4}), memory.data()).values, ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(ReferenceDataTypes, EveryTypeIsWrittenThroughStrides) {
  for (const DataType dtype :
       {DataType::f64, DataType::f32, DataType::bf16, DataType::f16, DataType::f8_e4m3, DataType::f8_e5m2, DataType::s32,
        DataType::s8, DataType::u8, DataType::s4, DataType::u4, DataType::s64}) {
    const LogicalTensor permuted = tensor_of(dtype, {2, 3}, {1, 4});
    std::vector<std::byte> memory(static_cast<size_t>(permuted.byte_size()) + 1, std::byte{0});
    reference::store({DataType::f64, {2, 3}, {1, 2, 3, 4, 5, 6}, {}}, permuted, memory.data());
    EXPECT_THAT(reference::load(permuted, memory.data()).values, ElementsAre(1, 2, 3, 4, 5, 6)) << name_of(dtype);
    EXPECT_EQ(load_as_double(dtype, memory.data(), 5), 5) << name_of(dtype);  // row 1, column 1
  }
}

TEST(ReferenceDataTypes, LongIntegersSurviveWhatMovesThem) {
  // a double cannot represent 2^53 + 1
  const std::vector<int64_t> input{(int64_t{1} << 53) + 1, -1, INT64_MAX, INT64_MIN};
  GraphBuilder builder;
  const uint64_t src = builder.input(DataType::s64, {2, 2});
  const uint64_t turned = builder.op(OpKind::StaticTranspose, {src}, {{"order", std::vector<int64_t>{1, 0}}});
  builder.op(OpKind::StaticReshape, {turned}, {{"shape", std::vector<int64_t>{4}}, {"special_zero", false}});
  const Graph graph = builder.finish();
  std::vector<int64_t> output(4);
  const void* in = input.data();
  void* out = output.data();
  reference_backend().compile_graph({graph, graph.inputs(), graph.outputs()})->execute({}, {&in, 1}, {&out, 1});
  EXPECT_THAT(output, ElementsAre(input[0], input[2], input[1], input[3]));
}

TEST(ReferenceRanks, HostScalarsAreTensorsOfRankZero) {
  OpCase op(OpKind::Multiply);
  EXPECT_THAT(op.input({2, 2}, {1, 2, 3, 4}).input({}, {0.5}).result(), ElementsAre(0.5, 1, 1.5, 2));
  OpCase alone(OpKind::Add);
  EXPECT_THAT(alone.input({}, {1}).input({}, {2}).result(), ElementsAre(3));
  OpCase unary(OpKind::Exp);
  EXPECT_THAT(unary.input({}, {0}).result(), ElementsAre(1));
}

TEST(ReferenceRanks, EmptyTensorsAreLegalEverywhere) {
  for (const OpKind kind : {OpKind::Abs, OpKind::SoftMax, OpKind::LogSoftmax, OpKind::Square}) {
    OpCase op(kind);
    EXPECT_TRUE(op.input({0, 3}, {}).result().empty()) << name_of(kind);
    OpCase rows(kind);
    EXPECT_TRUE(rows.input({3, 0}, {}).result().empty()) << name_of(kind);
  }
  OpCase sum(OpKind::Add);
  EXPECT_TRUE(sum.input({0, 3}, {}).input({1, 3}, {1, 2, 3}).result().empty());
  OpCase quantize(OpKind::Quantize);
  quantize.input({2, 0}, {}, DataType::f32).attr("scales", Attribute(std::vector<float>{0.5F})).outputs({DataType::s8});
  EXPECT_TRUE(quantize.result().empty());
}

// ---- ops without mathematics

TEST(ReferenceReorder, CopiesBetweenLayouts) {
  OpCase op(OpKind::Reorder);
  op.input({2, 3}, {1, 2, 3, 4, 5, 6}, DataType::f32, {1, 2}).outputs({DataType::f32});
  EXPECT_THAT(op.result(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(ReferenceMarkers, EndAndAWildcardWithoutOutputsComputeNothing) {
  for (const OpKind kind : {OpKind::End, OpKind::Wildcard}) {
    GraphBuilder builder;
    builder.multi(kind, {builder.input(DataType::f32, {2})}, {}, {});
    const Graph graph = builder.finish();
    EXPECT_EQ(reference::why_unsupported(graph, graph.ops()[0]), "");
    const float memory[] = {1, 2};
    const void* in = memory;
    EXPECT_TRUE(reference::run(graph, graph.inputs(), {}, {&in, 1}).empty());
  }
}

}  // namespace
}  // namespace lamina::testing
