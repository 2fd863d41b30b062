// Generated convolutions give the bits of the interpreter: all six kinds in all formats, of floats and of integers, rows in
// place, by pointers and copied, one to three threads, weights packed or not, on every described machine.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/library/products/convolution.h"
#include "backends/cpu/support/described_machines.h"
#include "backends/cpu/threads/executor.h"
#include "support/convolution_graphs.h"
#include "support/library_step.h"

namespace lamina::testing {
namespace {

using kernel::LibraryStep;
using kernel::WindowedContraction;

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, u8 = DataType::u8, s8 = DataType::s8;

// Memory at the start of a cache line, with numbers of the type.
class Aligned {
 public:
  explicit Aligned(size_t bytes) : memory_(bytes + 64) {}
  Aligned(const LogicalTensor& tensor, std::mt19937& random) : Aligned(static_cast<size_t>(tensor.byte_size())) {
    const double lowest = tensor.dtype == u8 ? 0 : tensor.dtype == s8 ? -128 : -1;
    std::uniform_real_distribution<double> around(lowest, lowest + (is_byte_integer(tensor.dtype) ? 255 : 2));
    for (int64_t i = 0; i < tensor.byte_size() / bytes_of(tensor.dtype, 1); ++i)
      store_from_double(tensor.dtype, data(), i, around(random));
  }
  char* data() { return memory_.data() + (64 - reinterpret_cast<uintptr_t>(memory_.data()) % 64); }

 private:
  std::vector<char> memory_;
};

class ConvolutionBits : public OnDescribedMachine {
 protected:
  void expect_chain(const ConvolutionCase& c) {
    SCOPED_TRACE(join(name_of(c.kind), " ", c.channels_last ? "NXC" : "NCX", c.taps_first ? ", taps first" : ", taps last"));
    expect_bits_of(library_step_of(graph_of(c)));
  }

  void expect_exact_sums(const ConvolutionCase& c, DataType src, int64_t zero_point, bool by_channel) {
    SCOPED_TRACE(join(name_of(c.kind), " ", name_of(src), ", zero point ", zero_point, by_channel ? ", scales" : ", scale"));
    LibraryStep step = library_step_of(graph_of(c));
    step.inputs[0].dtype = src, step.inputs[1].dtype = s8;
    step.quantized = QuantizedProduct{};
    step.quantized->src.scales = {0.5f}, step.quantized->src.zero_point = zero_point;
    for (int64_t i = 0; i < (by_channel ? c.dst_channels : 1); ++i)
      step.quantized->weights.scales.push_back(0.01f * static_cast<float>(1 + i));
    expect_bits_of(step);
  }

  void expect_bits_of(const LibraryStep& step) {
    const WindowedContraction contraction = kernel::windowed_contraction_of(step);
    std::vector<Aligned> memory;
    for (const auto* ports : {&step.inputs, &step.outputs})
      for (const LogicalTensor& tensor : *ports) memory.emplace_back(tensor, random_);
    std::vector<void*> args;
    for (Aligned& of_port : memory) args.push_back(of_port.data());
    if (step.inputs.back().is_empty_port()) args[step.inputs.size() - 1] = nullptr;
    const auto bytes = static_cast<size_t>(step.outputs[0].byte_size());
    std::vector<char> expected(bytes);
    kernel::interpret(contraction, args[contraction.left.port], args[contraction.right.port],
                      contraction.has_bias() ? args[contraction.bias.port] : nullptr, expected.data());
    for (const bool packs : {false, true}) {
      const int threads = 1 + static_cast<int>(random_() % 3);
      EXPECT_TRUE(result_of(contraction, args, bytes, threads, packs) == expected)
          << threads << " threads" << (packs ? ", weights packed" : "");
    }
  }

  std::vector<char> result_of(const WindowedContraction& contraction, std::vector<void*> args, size_t bytes, int threads,
                              bool packs) {
    const auto made = cpu::generated_convolution(contraction, machine_, {.threads = threads, .packs_weights = packs});
    const cpu::Executor executor(cpu::Executor::Kind::workers, threads);
    Aligned scratch(made->scratch_bytes()), packed(made->packed_bytes());
    if (made->packed_bytes() > 0) {
      made->pack(args, packed.data(), scratch.data(), executor);
      args[1] = packed.data();
    }
    char* const dst = static_cast<char*>(args[contraction.dst.port]);
    std::memset(dst, 0xff, bytes);
    made->run(args, scratch.data(), executor);
    return {dst, dst + bytes};
  }

  void expect_chain_of_all_kinds(ConvolutionCase c) {
    for (const OpKind kind : kConvolutionKinds) {
      for (const bool channels_last : {true, false}) {
        for (const bool taps_first : {true, false}) {
          c.kind = kind, c.channels_last = channels_last, c.taps_first = taps_first;
          expect_chain(c);
        }
      }
    }
  }

  const cpu::Machine machine_ = machine();
  std::mt19937 random_{1};
};

TEST_P(ConvolutionBits, AreThoseOfTheChain) {
  expect_chain_of_all_kinds({.src_channels = 5, .dst_channels = 7});
  expect_chain_of_all_kinds({.src_channels = 20, .dst_channels = 33, .space = {7, 9}, .strides = {2, 1}, .dilations = {1, 2}});
  expect_chain_of_all_kinds({.src_channels = 40, .dst_channels = 17, .pads_begin = {3, 0}, .pads_end = {1, 4}});
}

TEST_P(ConvolutionBits, AreThoseOfTheChainForOneTap) {
  const ConvolutionCase one{.src_channels = 19, .dst_channels = 34, .kernel = {1, 1}, .pads_begin = {0, 0}, .pads_end = {0, 0}};
  expect_chain_of_all_kinds(one);
  ConvolutionCase strided = one;
  strided.strides = {2, 3};
  expect_chain_of_all_kinds(strided);
}

TEST_P(ConvolutionBits, AreThoseOfTheChainWithGroupsAndAxes) {
  expect_chain_of_all_kinds({.src_channels = 24, .dst_channels = 12, .groups = 2, .space = {5, 6}});
  expect_chain_of_all_kinds({.src_channels = 12, .dst_channels = 12, .groups = 12, .space = {5, 6}});
  expect_chain_of_all_kinds(
      {.src_channels = 16, .space = {17}, .kernel = {4}, .strides = {2}, .pads_begin = {3}, .pads_end = {0}, .dilations = {1}});
  expect_chain_of_all_kinds({.batch = 1,
                             .space = {3, 4, 3, 4},
                             .kernel = {2, 2, 1, 3},
                             .strides = {1, 1, 1, 1},
                             .pads_begin = {1, 0, 0, 1},
                             .pads_end = {0, 0, 0, 1},
                             .dilations = {1, 2, 1, 1}});
}

// A vector has columns of several groups, the last one a part of them.
TEST_P(ConvolutionBits, AreThoseOfTheChainWithGroupsOfFewChannels) {
  expect_chain_of_all_kinds({.src_channels = 20, .dst_channels = 20, .groups = 5, .space = {5, 6}});
  expect_chain_of_all_kinds({.src_channels = 11, .dst_channels = 22, .groups = 11, .space = {5, 6}, .strides = {2, 1}});
  expect_chain_of_all_kinds({.src_channels = 33, .dst_channels = 11, .groups = 11, .space = {5, 6}, .dilations = {1, 2}});
  expect_chain_of_all_kinds({.src_channels = 14,
                             .dst_channels = 28,
                             .groups = 7,
                             .space = {9},
                             .kernel = {1},
                             .strides = {1},
                             .pads_begin = {0},
                             .pads_end = {0},
                             .dilations = {1}});
}

// Each channel by itself: one vector, some, and a part of one; lines of one tile and of several, with and without a border.
TEST_P(ConvolutionBits, AreThoseOfTheChainOfEachChannel) {
  for (const int64_t channels : {3, 16, 40, 96, 150}) {
    for (const int64_t width : {5, 7, 8, 21}) {
      ConvolutionCase c{
          .batch = 2, .src_channels = channels, .dst_channels = channels, .groups = channels, .space = {6, width}};
      expect_chain(c);
      c.strides = {2, 2}, c.kernel = {5, 5}, c.pads_begin = {2, 2}, c.pads_end = {2, 2};
      expect_chain(c);
      c.strides = {1, 1}, c.dilations = {2, 3}, c.pads_begin = {4, 6}, c.pads_end = {4, 2};
      expect_chain(c);
      c.kind = OpKind::ConvolutionBackwardData;
      expect_chain(c);
      c.kind = OpKind::ConvolutionBackwardWeights;
      for (const bool channels_last : {true, false}) {
        c.channels_last = channels_last;
        expect_chain(c);
      }
    }
  }
  // Pixels of the result are two taps apart; more taps than tiles have pixels.
  expect_chain({.src_channels = 40,
                .dst_channels = 40,
                .groups = 40,
                .space = {6, 31},
                .strides = {1, 4},
                .pads_begin = {1, 2},
                .pads_end = {1, 2},
                .dilations = {1, 2}});
  expect_chain({.src_channels = 40,
                .dst_channels = 40,
                .groups = 40,
                .space = {6, 21},
                .kernel = {3, 11},
                .pads_begin = {1, 5},
                .pads_end = {1, 5}});
  expect_chain({.src_channels = 24, .dst_channels = 24, .groups = 24, .space = {5, 6}, .dtype = DataType::f64});
}

TEST_P(ConvolutionBits, AreThoseOfTheChainOfFewChannels) {
  for (const int64_t channels : {1, 3, 4}) {
    for (const int64_t made : {16, 40, 96}) {
      ConvolutionCase c{.batch = 2, .src_channels = channels, .dst_channels = made, .space = {6, 31}};
      expect_chain(c);
      c.strides = {2, 2}, c.kernel = {5, 7}, c.pads_begin = {2, 3}, c.pads_end = {2, 3};
      expect_chain(c);
      c.strides = {1, 2}, c.dilations = {2, 1}, c.pads_begin = {4, 0}, c.pads_end = {4, 1};
      expect_chain(c);
    }
  }
  expect_chain({.src_channels = 3, .dst_channels = 24, .space = {5, 6}, .dtype = DataType::f64});
}

// Pixels outside are left out, which changes no bit of a finite sum.
TEST_P(ConvolutionBits, AreThoseOfTheChainOfDenseLines) {
  for (const int64_t made : {16, 40, 96}) {
    ConvolutionCase c{.batch = 2, .src_channels = 6, .dst_channels = made, .space = {6, 31}};
    for (const OpKind kind : {OpKind::Convolution, OpKind::ConvTranspose, OpKind::ConvolutionBackwardData}) {
      c.kind = kind;
      expect_chain(c);
    }
    c.kind = OpKind::Convolution;
    c.kernel = {5, 7}, c.pads_begin = {2, 9}, c.pads_end = {2, 9};
    expect_chain(c);
    c.strides = {1, 2}, c.dilations = {2, 1}, c.pads_begin = {4, 0}, c.pads_end = {4, 1};
    expect_chain(c);
  }
  expect_chain({.src_channels = 5, .dst_channels = 24, .space = {5, 9}, .dtype = DataType::f64});
}

TEST_P(ConvolutionBits, AreThoseOfTheChainInSixteenBits) {
  expect_chain_of_all_kinds({.src_channels = 20, .dst_channels = 18, .space = {5, 6}, .dtype = bf16});
}

TEST_P(ConvolutionBits, AreThoseOfTheChainForManyTerms) {
  for (const OpKind kind : {OpKind::Convolution, OpKind::ConvTranspose, OpKind::ConvolutionBackwardWeights})
    expect_chain({.kind = kind, .src_channels = 600, .dst_channels = 20, .space = {5, 5}});
}

TEST_P(ConvolutionBits, OfIntegersAreExact) {
  for (const auto& [src, zero_point] : std::vector<std::pair<DataType, int64_t>>{{u8, 0}, {u8, 131}, {s8, -7}}) {
    for (const bool is_first : {true, false}) {
      const ConvolutionCase odd{.src_channels = 5, .dst_channels = 33, .channels_last = is_first, .taps_first = !is_first};
      expect_exact_sums(odd, src, zero_point, true);
      expect_exact_sums({.src_channels = 24, .dst_channels = 12, .groups = 2, .channels_last = is_first, .dtype = bf16}, src,
                        zero_point, true);
      expect_exact_sums({.src_channels = 12, .dst_channels = 12, .groups = 12, .strides = {2, 1}}, src, zero_point, is_first);
      expect_exact_sums({.kind = OpKind::ConvTranspose, .dst_channels = 20, .strides = {2, 1}, .channels_last = is_first}, src,
                        zero_point, true);
    }
    expect_exact_sums({.src_channels = 700, .dst_channels = 20, .space = {5, 5}}, src, zero_point, true);
    expect_exact_sums({.src_channels = 19, .dst_channels = 34, .kernel = {1, 1}, .pads_begin = {0, 0}, .pads_end = {0, 0}}, src,
                      zero_point, false);
  }
}

INSTANTIATE_TEST_SUITE_P(OnMachines, ConvolutionBits, ::testing::ValuesIn(described_machines()), name_of_machine);

}  // namespace
}  // namespace lamina::testing
