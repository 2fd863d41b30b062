// Kernels with elements of eight and four bits: every code, every instruction set, any stride.
#include <gtest/gtest.h>

#include "backends/cpu/backend.h"
#include "backends/cpu/code/host_machine.h"
#include "backends/cpu/support/cpu_check.h"
#include "backends/cpu/support/described_machines.h"
#include "backends/reference/tensor.h"
#include "compiler/compile.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32, s4 = DataType::s4, u4 = DataType::u4;
constexpr DataType e4m3 = DataType::f8_e4m3, e5m2 = DataType::f8_e5m2;

// `count` elements of `dtype` as f32: its codes 0, 1, 2, ...
Buffer codes_as_f32(DataType dtype, int64_t count) {
  Buffer codes(static_cast<size_t>(bytes_of(dtype, count))), values(static_cast<size_t>(count) * sizeof(float));
  for (int64_t i = 0; i < count; ++i) {
    const auto code = static_cast<uint32_t>(i);
    std::memcpy(&codes[static_cast<size_t>(bytes_of(dtype, i))], &code, static_cast<size_t>(bytes_of(dtype, 1)));
    store_from_double(f32, values.data(), i, load_as_double(dtype, codes.data(), i));
  }
  return values;
}

// Runs a graph of one op on one input and returns the bytes of its output.
Buffer run(const Graph& graph, const Buffer& input, const cpu::Target& most, int threads = 1) {
  const auto partitions = partition_graph(graph, PartitionPolicy::fusion, CpuCapabilities{});
  EXPECT_EQ(partitions.size(), 1U);
  EXPECT_EQ(partitions[0].unsupported_reason, "");
  const PortTensors ports = port_tensors(partitions[0]);
  const Subgraph subgraph = extract_subgraph(partitions[0], ports.inputs, ports.outputs);
  Buffer output(static_cast<size_t>(ports.outputs[0].byte_size()), std::byte{0xa5});
  const void* in = input.data();
  void* out = output.data();
  ExecutionContext context;
  context.threads = threads;
  compiler::compile_subgraph(subgraph, *cpu::make_backend(cpu::capped(cpu::host_machine(), most)))
      ->execute(context, {&in, 1}, {&out, 1});
  return output;
}

TEST(SmallTypeKernels, QuantizeToF8TakesEverySixteenBitValue) {
  for (const DataType from : {DataType::f16, DataType::bf16}) {
    const Buffer values = codes_as_f32(from, 65536);
    for (const DataType to : {e4m3, e5m2}) {
      GraphBuilder g;
      g.op(OpKind::Quantize, {g.input(f32, {256, 256})}, {{"scales", std::vector<float>{1.0F}}}, to);
      const Graph graph = g.finish();
      for (const cpu::Target* const most : targets_here()) {
        const Buffer stored = run(graph, values, *most);
        for (int64_t i = 0; i < 65536; ++i) {
          std::byte expected{};
          store_from_double(to, &expected, 0, load_as_double(f32, values.data(), i));
          ASSERT_EQ(stored[static_cast<size_t>(i)], expected)
              << name_of(from) << " code " << i << " to " << name_of(to) << " on " << most->name;
        }
      }
    }
  }
}

TEST(SmallTypeKernels, DequantizeTakesEveryF8Code) {
  Buffer codes(256);
  for (size_t i = 0; i < 256; ++i) codes[i] = static_cast<std::byte>(i);
  for (const DataType from : {e4m3, e5m2}) {
    GraphBuilder g;
    g.op(OpKind::Dequantize, {g.input(from, {256})}, {{"scales", std::vector<float>{0.5F}}}, f32);
    const Graph graph = g.finish();
    for (const cpu::Target* const most : targets_here()) {
      const Buffer values = run(graph, codes, *most);
      for (int64_t i = 0; i < 256; ++i) {
        const double expected = 0.5 * load_as_double(from, codes.data(), i), value = load_as_double(f32, values.data(), i);
        ASSERT_TRUE(value == expected || (std::isnan(value) && std::isnan(expected)))
            << name_of(from) << " code " << i << " on " << most->name;
      }
    }
  }
}

// Quantize -> Dequantize in one kernel, for every value of f16, with infinities and NaN
TEST(SmallTypeKernels, BytesInAKernelAreWhatAStoreKeeps) {
  const Buffer values = codes_as_f32(DataType::f16, 65536);
  for (const DataType byte : {DataType::u8, DataType::s8}) {
    for (const auto& [scale, zero_point] :
         std::vector<std::pair<float, int64_t>>{{1.0F, 0}, {1.0F, 5}, {0.25F, 0}, {0.25F, 5}}) {
      const Attributes steps{{"scales", std::vector<float>{scale}}, {"zps", std::vector<int64_t>{zero_point}}};
      GraphBuilder g;
      g.op(OpKind::Dequantize, {g.op(OpKind::Quantize, {g.input(f32, {256, 256})}, steps, byte)}, steps, f32);
      const Graph graph = g.finish();
      for (const cpu::Target* const most : targets_here()) {
        const Buffer made = run(graph, values, *most);
        for (int64_t i = 0; i < 65536; ++i) {
          const double value = load_as_double(f32, values.data(), i);
          std::byte kept{};
          store_from_double(byte, &kept, 0, value / scale + static_cast<double>(zero_point));
          ASSERT_EQ(load_as_double(f32, made.data(), i),
                    (load_as_double(byte, &kept, 0) - static_cast<double>(zero_point)) * scale)
              << value << " by " << scale << " from " << zero_point << " as " << name_of(byte) << " on " << most->name;
        }
      }
    }
  }
}

// Dequantize -> LayerNorm -> Quantize, f8 in and out
TEST(SmallTypeKernels, ANormBetweenF8IsOneKernel) {
  for (const DataType dtype : {e4m3, e5m2}) {
    GraphBuilder g;
    const auto x = g.op(OpKind::Dequantize, {g.input(dtype, {37, 200})}, {{"scales", std::vector<float>{0.5F}}}, f32);
    const auto y = g.op(OpKind::LayerNorm, {x, g.input(f32, {200}), g.input(f32, {200})}, {{"keep_stats", false}});
    g.op(OpKind::Quantize, {y}, {{"scales", std::vector<float>{0.25F}}}, dtype);
    EXPECT_EQ(expect_cpu_matches_reference(g.finish()).kernels_per_partition, std::vector<size_t>{1});
  }
}

// ---- four bits

TEST(SmallTypeKernels, DynamicDequantizeTakesDataAndZeroPointsOfFourBits) {
  for (const auto& [data, zps] : std::vector<std::pair<DataType, DataType>>{
           {s4, DataType::undef}, {u4, DataType::undef}, {s4, s4}, {u4, DataType::u8}, {u4, u4}}) {
    for (const Dims& group : {Dims{1, 1, 10}, Dims{2, 1, 35}, Dims{1, 5, 1}}) {
      for (const Dims& strides : {Dims{}, Dims{1, 6, 30}, Dims{700, 71, 1}, Dims{701, 140, 2}}) {
        SCOPED_TRACE(join(name_of(data), " zps ", name_of(zps), " groups ", describe(group), " strides ", describe(strides)));
        GraphBuilder g;
        const Dims scales{6 / group[0], 5 / group[1], 70 / group[2]};
        std::vector<uint64_t> inputs{g.input(data, {6, 5, 70}, strides), g.input(DataType::f16, scales)};
        if (zps != DataType::undef) inputs.push_back(g.input(zps, scales));
        const std::vector<int64_t> group_shape(group.begin(), group.end());
        g.op(OpKind::DynamicDequantize, inputs, {{"qtype", std::string("per_group")}, {"group_shape", group_shape}},
             DataType::f16);
        expect_one_kernel(expect_cpu_matches_reference(g.finish(), 256));
      }
    }
  }
}

// ---- four bits: moved by layout ops

struct Movement {
  Dims shape, from, to;  // strides; empty: dense
};

std::vector<Movement> movements() {
  return {{{300, 64}, {}, {}},
          {{7, 33}, {}, {}},
          {{7, 33}, {}, {34, 1}},
          {{7, 33}, {40, 1}, {}},
          {{7, 33}, {1, 7}, {}},
          {{7, 33}, {}, {1, 7}},
          {{5, 6, 10}, {}, {71, 11, 1}},
          {{5, 6, 10}, {61, 10, 1}, {60, 10, 1}},
          {{1}, {}, {}},
          {{3, 129}, {300, 2}, {261, 2}},
          {{301, 1001}, {}, {1, 301}},
          {{500, 900}, {}, {902, 1}}};
}

Graph reorder(DataType dtype, const Movement& m) {
  GraphBuilder g;
  const auto y = g.op(OpKind::Reorder, {g.input(dtype, m.shape, m.from)});
  g.tensor(y).shape = m.shape;
  g.tensor(y).strides = m.to.empty() ? dense_strides(m.shape) : m.to;
  g.tensor(y).layout = LayoutType::strided;
  return g.finish();
}

// The bits between the elements of the output do not change, also with several threads.
TEST(SmallTypeKernels, NibblesMoveWithoutTouchingTheirNeighbours) {
  for (const Movement& m : movements()) {
    for (const DataType dtype : {s4, u4}) {
      const Graph graph = reorder(dtype, m);
      const LogicalTensor& src = graph.tensor(graph.ops()[0].inputs[0]);
      const LogicalTensor& dst = graph.tensor(graph.ops()[0].outputs[0]);
      SCOPED_TRACE(join(describe(src), " to ", describe(dst)));
      Buffer input(static_cast<size_t>(src.byte_size()));
      std::mt19937 random(4);
      for (std::byte& byte : input) byte = static_cast<std::byte>(random());
      Buffer expected(static_cast<size_t>(dst.byte_size()), std::byte{0xa5});
      reference::for_each_offset<2>(*src.shape, {src.strides, dst.strides}, [&](const auto& at) {
        store_from_double(dtype, expected.data(), at[1], load_as_double(dtype, input.data(), at[0]));
      });
      for (const cpu::Target* const most : targets_here()) {
        for (const int threads : {1, 4})
          ASSERT_EQ(run(graph, input, *most, threads), expected) << most->name << ", " << threads << " threads";
      }
    }
  }
}

TEST(SmallTypeKernels, NibblesAreTransposedAndReshaped) {
  for (const DataType dtype : {s4, u4}) {
    GraphBuilder g;
    const auto x = g.op(OpKind::StaticTranspose, {g.input(dtype, {3, 5, 7})}, {{"order", std::vector<int64_t>{2, 0, 1}}});
    g.op(OpKind::StaticReshape, {x}, {{"shape", std::vector<int64_t>{15, 7}}, {"special_zero", false}});
    expect_cpu_matches_reference(g.finish());
  }
}

}  // namespace
}  // namespace lamina::testing
