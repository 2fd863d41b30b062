// Whether elements may share memory, checked against counting the bits of every element.
#include "interface/shared_elements.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace lamina {
namespace {

LogicalTensor strided(DataType dtype, Dims shape, Dims strides) {
  LogicalTensor tensor;
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  tensor.layout = LayoutType::strided;
  tensor.strides = std::move(strides);
  return tensor;
}

std::string text_of(const LogicalTensor& tensor) { return describe(tensor) + " by " + describe(tensor.strides); }

// Returns the first bit of each element, in the order of the indices.
std::vector<int64_t> places_of(const LogicalTensor& tensor, int64_t start) {
  std::vector<int64_t> places{start * 8};
  for (size_t axis = 0; axis < tensor.strides.size(); ++axis) {
    std::vector<int64_t> wider;
    for (const int64_t place : places)
      for (int64_t i = 0; i < (*tensor.shape)[axis]; ++i)
        wider.push_back(place + i * tensor.strides[axis] * bits_of(tensor.dtype));
    places = std::move(wider);
  }
  return places;
}

bool has_equal_places(const LogicalTensor& tensor) {
  const std::vector<int64_t> places = places_of(tensor, 0);
  return std::set<int64_t>(places.begin(), places.end()).size() != places.size();
}

bool have_common_bits(const LogicalTensor& a, int64_t start_a, const LogicalTensor& b, int64_t start_b) {
  std::set<int64_t> bits;
  for (const int64_t place : places_of(a, start_a))
    for (int64_t bit = 0; bit < bits_of(a.dtype); ++bit) bits.insert(place + bit);
  for (const int64_t place : places_of(b, start_b))
    for (int64_t bit = 0; bit < bits_of(b.dtype); ++bit)
      if (bits.count(place + bit) != 0) return true;
  return false;
}

class RandomTensors {
 public:
  int64_t number(int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(engine_); }
  LogicalTensor tensor(int64_t largest_stride) {
    static constexpr DataType kTypes[] = {DataType::f32, DataType::bf16, DataType::u8, DataType::s4};
    Dims shape, strides;
    for (int64_t rank = number(0, 4); rank > 0; --rank) {
      shape.push_back(number(0, 8) == 0 ? number(0, 1) : number(1, 5));
      strides.push_back(number(0, largest_stride));
    }
    return strided(kTypes[number(0, 3)], shape, strides);
  }

 private:
  std::mt19937 engine_{17};
};

TEST(SharedElements, OfATensorAreFoundExactly) {
  RandomTensors random;
  int shared = 0, apart = 0;
  for (int round = 0; round < 40000; ++round) {
    const LogicalTensor tensor = random.tensor(random.number(3, 60));
    const bool expected = has_equal_places(tensor);
    ++(expected ? shared : apart);
    ASSERT_EQ(elements_may_overlap(tensor), expected) << text_of(tensor);
  }
  EXPECT_GT(shared, 5000);
  EXPECT_GT(apart, 5000);
}

TEST(SharedElements, OfTwoTensorsAreFoundExactly) {
  RandomTensors random;
  int shared = 0, apart = 0;
  for (int round = 0; round < 20000; ++round) {
    const LogicalTensor a = random.tensor(random.number(3, 40)), b = random.tensor(random.number(3, 40));
    const int64_t start_a = random.number(1000, 1100), start_b = random.number(1000, 1100);
    const bool expected = have_common_bits(a, start_a, b, start_b);
    ++(expected ? shared : apart);
    ASSERT_EQ(tensors_may_overlap(a, reinterpret_cast<void*>(start_a), b, reinterpret_cast<void*>(start_b)), expected)
        << text_of(a) << " from " << start_a << ", " << text_of(b) << " from " << start_b;
  }
  EXPECT_GT(shared, 3000);
  EXPECT_GT(apart, 3000);
}

TEST(SharedElements, OfLargeTensorsAreFoundAtOnce) {
  const int64_t large = int64_t{1} << 30;
  EXPECT_FALSE(elements_may_overlap(strided(DataType::f32, {large, 768}, {768, 1})));
  EXPECT_FALSE(elements_may_overlap(strided(DataType::f32, {768, large}, {1, 768})));
  EXPECT_TRUE(elements_may_overlap(strided(DataType::f32, {large, 768}, {767, 1})));
  EXPECT_TRUE(elements_may_overlap(strided(DataType::f32, {large, 768}, {1, 1})));
  EXPECT_TRUE(elements_may_overlap(strided(DataType::f32, {512, 768}, {0, 1})));
  EXPECT_FALSE(elements_may_overlap(strided(DataType::f32, {2, 2}, {3, 2})));
}

TEST(SharedElements, ColumnsOfOneBufferAreApart) {
  const LogicalTensor half = strided(DataType::f32, {512, 768}, {1536, 1});
  const auto at = [](int64_t address) { return reinterpret_cast<void*>(address); };
  EXPECT_FALSE(tensors_may_overlap(half, at(4096), half, at(4096 + 768 * 4)));
  EXPECT_TRUE(tensors_may_overlap(half, at(4096), half, at(4096 + 767 * 4)));
  EXPECT_TRUE(tensors_may_overlap(half, at(4096), half, at(4096 + 768 * 4 - 1)));
  EXPECT_FALSE(tensors_may_overlap(half, at(4096 + 512 * 1536 * 4), half, at(4096)));
}

// Twelve axes with coprime strides: the search still ends and may answer "may".
TEST(SharedElements, ASearchThatIsTooLongEnds) {
  const Dims primes = {1000003, 999983, 999979, 999961, 999959, 999953, 999931, 999917, 999907, 999883, 999863, 999853};
  const LogicalTensor tensor = strided(DataType::f32, Dims(12, 3), primes);
  elements_may_overlap(tensor);
  tensors_may_overlap(tensor, reinterpret_cast<void*>(4096), tensor, reinterpret_cast<void*>(4098));
}

}  // namespace
}  // namespace lamina
