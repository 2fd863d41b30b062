// Conversions of stored elements to and from f32 and f64 match load_as_double and store_from_double bit for bit, on every
// instruction set.
#include "backends/cpu/vector/convert.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "backends/cpu/vector/vector_jit.h"
#include "interface/status.h"

namespace lamina::cpu::testing {
namespace {

constexpr DataType kTypes[] = {DataType::f32,     DataType::f64, DataType::bf16, DataType::f16, DataType::f8_e5m2,
                               DataType::f8_e4m3, DataType::s64, DataType::s32,  DataType::s8,  DataType::u8,
                               DataType::boolean, DataType::s4,  DataType::u4,   DataType::u16, DataType::u32,
                               DataType::u64,     DataType::s16};

// Each nibble is converted in a byte of its own.
bool is_nibble(DataType type) { return type == DataType::s4 || type == DataType::u4; }
size_t size_of(DataType type) { return is_nibble(type) ? 1 : static_cast<size_t>(bits_of(type)) / 8; }

template <typename T>
ElementType element() {
  return [](llvm::LLVMContext& c) { return sizeof(T) == 8 ? llvm::Type::getDoubleTy(c) : llvm::Type::getFloatTy(c); };
}
ElementType stored(DataType type) {
  return [type](llvm::LLVMContext& context) { return storage_type(context, type); };
}

// Values near every step of every small type, ties between steps, limits of integer ranges, and random bits.
template <typename T>
std::vector<T> values_to_store() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values{0, Limits::infinity(), Limits::quiet_NaN(), Limits::max(), Limits::min(), Limits::denorm_min()};
  const auto around = [&](double centre) {
    const T value = static_cast<T>(centre);
    values.insert(values.end(), {value, std::nextafter(value, T(0)), std::nextafter(value, Limits::infinity())});
  };
  for (const DataType type : {DataType::f16, DataType::bf16, DataType::f8_e5m2, DataType::f8_e4m3})
    for (uint32_t code = 0; code < (1U << (bits_of(type) - 1)); code += bits_of(type) == 16 ? 7 : 1) {
      const uint32_t next = code + 1;
      const double low = load_as_double(type, &code, 0), high = load_as_double(type, &next, 0);
      around(low);
      around(low + (high - low) / 2);  // a tie
    }
  for (const double end : {0.5,     1.5,     2.5,          6.5,          7.0,          7.5,    8.5,    15.5,    126.5,
                           127.5,   128.5,   254.5,        255.5,        448.0,        464.0,  480.0,  57344.0, 61440.0,
                           65504.0, 65520.0, 2147483646.5, 2147483647.5, 2147483648.5, 0x1p63, 0x1p64, 0x1p127, 1e300})
    around(end);
  const size_t count = values.size();
  for (size_t i = 0; i < count; ++i) values.push_back(-values[i]);
  std::mt19937_64 random(3);
  for (int i = 0; i < 40000; ++i) {
    if constexpr (sizeof(T) == 8)
      values.push_back(std::bit_cast<double>(random()));
    else
      values.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
    values.push_back(static_cast<T>(std::ldexp(static_cast<double>(random()), -static_cast<int>(random() % 100))));
  }
  values.resize((values.size() + 63) / 64 * 64);
  return values;
}

std::vector<uint8_t> expected_bytes(DataType type, double value) {
  std::vector<uint8_t> bytes(size_of(type));
  store_from_double(type, bytes.data(), 0, value);
  return bytes;
}

template <typename T>
void expect_stored_as_the_interface_stores(DataType type, const Emit& emit) {
  const auto values = values_to_store<T>();
  const size_t size = size_of(type);
  for (const auto& level : runnable_levels())
    for (const int width : {1, 16, 32}) {
      VectorJit jit(level);
      std::vector<uint8_t> bytes(values.size() * size);
      jit.compile(emit, element<T>(), stored(type), width)(values.data(), bytes.data(), static_cast<int64_t>(values.size()));
      for (size_t i = 0; i < values.size(); ++i) {
        if (std::isnan(values[i]) && size >= 4 && is_floating(type)) continue;  // f32 and f64 keep payloads
        const auto expected = expected_bytes(type, static_cast<double>(values[i]));
        ASSERT_EQ(std::memcmp(&bytes[i * size], expected.data(), size), 0)
            << name_of(type) << " on " << level << ", width " << width << ": " << std::hexfloat << values[i];
      }
    }
}

class VectorConvert : public ::testing::TestWithParam<DataType> {};

TEST_P(VectorConvert, StoresF32AsTheInterfaceDoes) {
  expect_stored_as_the_interface_stores<float>(
      GetParam(),
      [type = GetParam()](auto& b, llvm::Value* value, const auto& target) { return emit_from_f32(b, type, value, target); });
}

TEST_P(VectorConvert, StoresF64WithOneRounding) {
  expect_stored_as_the_interface_stores<double>(
      GetParam(),
      [type = GetParam()](auto& b, llvm::Value* value, const auto& target) { return emit_from_f64(b, type, value, target); });
}

// Elements of `type`: all codes of small types, random bits for wide types.
std::vector<uint8_t> elements_to_load(DataType type) {
  const size_t size = size_of(type), count = size == 1 ? 256 : 65536;
  std::vector<uint8_t> bytes(count * size);
  std::mt19937_64 random(5);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bits = size <= 2 ? i : i < 256 ? i - 128 : random();
    std::memcpy(&bytes[i * size], &bits, size);
  }
  return bytes;
}

template <typename T>
void expect_loaded_as_the_interface_loads(DataType type, const Emit& emit) {
  const auto bytes = elements_to_load(type);
  const size_t size = size_of(type), count = bytes.size() / size;
  for (const auto& level : runnable_levels())
    for (const int width : {1, 16}) {
      VectorJit jit(level);
      std::vector<T> values(count);
      jit.compile(emit, stored(type), element<T>(), width)(bytes.data(), values.data(), static_cast<int64_t>(count));
      for (size_t i = 0; i < count; ++i) {
        const T expected = static_cast<T>(load_as_double(type, &bytes[i * size], 0));
        if (std::isnan(expected)) {
          ASSERT_TRUE(std::isnan(values[i])) << name_of(type) << " code " << i;
        } else {
          ASSERT_EQ(std::memcmp(&values[i], &expected, sizeof(T)), 0)
              << name_of(type) << " on " << level << ", element " << i << ": " << values[i] << ", not " << expected;
        }
      }
    }
}

TEST_P(VectorConvert, LoadsF32AsTheInterfaceDoes) {
  expect_loaded_as_the_interface_loads<float>(GetParam(), [type = GetParam()](auto& b, llvm::Value* raw, const auto& target) {
    return emit_to_f32(b, type, raw, target);
  });
}

TEST_P(VectorConvert, LoadsF64AsTheInterfaceDoes) {
  expect_loaded_as_the_interface_loads<double>(GetParam(), [type = GetParam()](auto& b, llvm::Value* raw, const auto& target) {
    return emit_to_f64(b, type, raw, target);
  });
}

// Values so close to the middle between two floats that a double cannot represent the difference: rounding twice gives the
// other neighbour. The test covers the host's instructions and the fallback for machines that would round twice.
TEST(VectorConvert, RoundsLongIntegersOnce) {
  std::vector<int64_t> values;
  for (int shift = 0; shift < 39; ++shift) {
    for (const int64_t odd : {int64_t{1}, int64_t{2}, int64_t{3}}) {
      const int64_t middle = ((int64_t{1} << 24) + odd) << shift;
      for (const int64_t off : {-1, 0, 1}) values.insert(values.end(), {middle + off, -middle + off});
    }
  }
  const int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  for (const int64_t edge : {int64_t{1} << 53, -(int64_t{1} << 53)}) values.insert(values.end(), {edge - 1, edge, edge + 1});
  values.insert(values.end(), {0, least, least + 1, most, most - 1});
  while (values.size() % 16 != 0) values.push_back(0);
  for (const auto& [as_elsewhere, is_signed] : {std::pair{false, true}, {true, true}, {false, false}, {true, false}}) {
    const Emit emit = [&](auto& b, llvm::Value* value, const auto& target) {
      llvm::Type* const floats = value->getType()->getWithNewType(b.getFloatTy());
      return emit_from_integers(b, value, is_signed, floats,
                                as_elsewhere ? Instructions{.architecture = &targets::aarch64} : target);
    };
    for (const auto& level : runnable_levels()) {
      std::vector<float> floats(values.size());
      VectorJit(level).compile(emit, stored(DataType::s64), element<float>(), 16)(values.data(), floats.data(),
                                                                                  static_cast<int64_t>(values.size()));
      for (size_t i = 0; i < values.size(); ++i) {
        const float expected = is_signed ? static_cast<float>(values[i]) : static_cast<float>(static_cast<uint64_t>(values[i]));
        ASSERT_EQ(floats[i], expected) << values[i] << " on " << level;
      }
    }
  }
}

// Converts every f16 and every bf16 value to every type, through f32 as in kernels.
TEST_P(VectorConvert, TakesEverySixteenBitValue) {
  const DataType to = GetParam();
  const size_t size = size_of(to);
  for (const DataType from : {DataType::f16, DataType::bf16}) {
    std::vector<uint16_t> codes(65536);
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint16_t>(i);
    const Emit emit = [from, to](auto& b, llvm::Value* raw, const auto& target) {
      return emit_from_f32(b, to, emit_to_f32(b, from, raw, target), target);
    };
    for (const auto& level : runnable_levels()) {
      VectorJit jit(level);
      std::vector<uint8_t> bytes(codes.size() * size);
      jit.compile(emit, stored(from), stored(to), 16)(codes.data(), bytes.data(), static_cast<int64_t>(codes.size()));
      for (size_t i = 0; i < codes.size(); ++i) {
        const double value = load_as_double(from, &codes[i], 0);
        if (std::isnan(value) &&
            is_floating(to)) {  // the NaN depends on the sign and payload, which a double does not preserve
          ASSERT_TRUE(std::isnan(load_as_double(to, &bytes[i * size], 0)))
              << name_of(from) << " code " << i << " to " << name_of(to);
          continue;
        }
        const auto expected = expected_bytes(to, value);
        ASSERT_EQ(std::memcmp(&bytes[i * size], expected.data(), size), 0)
            << name_of(from) << " code " << i << " to " << name_of(to) << " on " << level;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, VectorConvert, ::testing::ValuesIn(kTypes),
                         [](const auto& test) { return std::string(name_of(test.param)); });

// LLVM drops the nontemporal hint from stores of some types: a conversion must return a type that keeps it.
TEST(VectorConvert, LeavesSmallFloatsThatCanBeStoredPastTheCaches) {
  for (const auto& level : runnable_levels()) {
    if (level == "sve") continue;  // LLVM 19 drops the hint from all of its stores
    for (const DataType type : {DataType::bf16, DataType::f16}) {
      const Emit emit = [type](auto& b, llvm::Value* value, const auto& target) {
        llvm::Value* const codes = emit_from_f32(b, type, value, target);
        llvm::Value* const line = b.CreateShl(b.CreateZExt(b.CreateExtractElement(codes, uint64_t{0}), b.getInt64Ty()), 6);
        llvm::Value* const there = b.CreateIntToPtr(line, b.getPtrTy());  // differs between iterations
        auto* const one = llvm::ConstantAsMetadata::get(b.getInt32(1));
        b.CreateAlignedStore(codes, there, llvm::Align(64))
            ->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(b.getContext(), {one}));
        return codes;
      };
      const std::string code = VectorJit(level).assembly(emit, element<float>(), stored(type), 32);
      EXPECT_NE(code.find(is_x86() ? "movnt" : "stnp"), std::string::npos) << name_of(type) << " on " << level << "\n" << code;
    }
  }
}

TEST(VectorConvert, PacksFourVectorsAsOneByOneStoresThem) {
  const auto levels = runnable_levels();
  const auto values = values_to_store<float>();
  int tried = 0;
  for (const auto& [level, width] : {std::pair("x86-64-v3", 8), std::pair("x86-64-v4", 16)}) {
    if (std::find(levels.begin(), levels.end(), level) == levels.end()) continue;
    ++tried;
    for (const DataType type : {DataType::s8, DataType::u8}) {
      const Emit emit = [type, width = width](auto& b, llvm::Value* value, const auto& target) {
        std::vector<llvm::Value*> vectors;
        for (int first = 0; first < 4 * width; first += width) {
          std::vector<int> lanes(static_cast<size_t>(width));
          std::iota(lanes.begin(), lanes.end(), first);
          vectors.push_back(b.CreateShuffleVector(value, lanes));
        }
        return emit_bytes_from_f32(b, type, vectors, KnownValues{}, target);
      };
      VectorJit jit(level);
      std::vector<uint8_t> bytes(values.size());
      jit.compile(emit, element<float>(), stored(type), 4 * width)(values.data(), bytes.data(),
                                                                   static_cast<int64_t>(values.size()));
      for (size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(bytes[i], expected_bytes(type, static_cast<double>(values[i]))[0])
            << name_of(type) << " on " << level << ": " << std::hexfloat << values[i];
    }
  }
  if (tried == 0) GTEST_SKIP() << "this machine has neither AVX2 nor AVX-512";
}

TEST(VectorConvert, RefusesAnUndefinedType) {
  llvm::LLVMContext context;
  EXPECT_THROW(storage_type(context, DataType::undef), Error);
}

}  // namespace
}  // namespace lamina::cpu::testing
