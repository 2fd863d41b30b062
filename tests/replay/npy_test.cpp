// .npy files of every type, strided tensors, and errors.
#include "lamina/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "interface/status.h"
#include "support/foreign_locale.h"

namespace lamina::driver {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

LogicalTensor tensor(DataType dtype, Dims shape, Dims strides = {}) {
  LogicalTensor result;
  result.id = 5;
  result.dtype = dtype;
  result.strides = strides.empty() ? dense_strides(shape) : strides;
  result.shape = std::move(shape);
  result.layout = LayoutType::strided;
  return result;
}

class NpyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = (std::filesystem::temp_directory_path() / (std::string("lamina_npy_") + info->name() + ".npy")).string();
  }
  void TearDown() override { std::filesystem::remove(path_); }

  void save(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }
  static std::string header(const std::string& dict, char version = 1) {
    std::string text = "\x93NUMPY";
    text += {version, 0, static_cast<char>(dict.size()), 0};
    if (version > 1) text += std::string(2, '\0');
    return text + dict;
  }
  std::string error(Buffer& buffer) {
    try {
      read_npy(path_, buffer);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  std::string path_;
};

TEST_F(NpyTest, KnowsNoLocale) {
  const testing::GroupedNumbers grouped;
  Buffer buffer(tensor(DataType::u8, {1, 16384}));
  std::ostringstream out;
  write_npy(out, buffer);
  EXPECT_THAT(out.str(), HasSubstr("'shape': (1, 16384), }"));
  save(out.str());
  EXPECT_EQ(error(buffer), "no error");
}

TEST_F(NpyTest, WritesTheHeaderThatNumpyWrites) {
  Buffer buffer(tensor(DataType::f32, {2, 3}));
  std::ostringstream out;
  write_npy(out, buffer);
  const std::string text = out.str();
  EXPECT_EQ(text.size(), 128U + 24U);
  EXPECT_THAT(text.substr(10), StartsWith("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"));
  EXPECT_EQ(text[127], '\n');
}

TEST_F(NpyTest, EveryTypeComesBack) {
  for (const DataType type :
       {DataType::f32, DataType::f64, DataType::f16, DataType::bf16, DataType::s32, DataType::s64, DataType::s8, DataType::u8,
        DataType::boolean, DataType::f8_e4m3, DataType::f8_e5m2, DataType::s4, DataType::u4}) {
    Buffer buffer(tensor(type, {2, 3}));
    for (int64_t i = 0; i < 6; ++i) buffer.store(i, static_cast<double>(i % 4));
    {
      std::ofstream file(path_, std::ios::binary);
      write_npy(file, buffer);
    }
    Buffer back(tensor(type, {2, 3}));
    read_npy(path_, back);
    for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(back.load(i), buffer.load(i)) << name_of(type);
  }
}

TEST_F(NpyTest, ScalarsVectorsAndEmptyTensorsHaveTheirShapes) {
  for (const auto& [shape, text] : std::vector<std::pair<Dims, std::string>>{{{}, "()"}, {{4}, "(4,)"}, {{0, 3}, "(0, 3)"}}) {
    Buffer buffer(tensor(DataType::s32, shape));
    {
      std::ofstream file(path_, std::ios::binary);
      write_npy(file, buffer);
    }
    std::ifstream file(path_, std::ios::binary);
    const std::string written{std::istreambuf_iterator<char>(file), {}};
    EXPECT_THAT(written, HasSubstr("'shape': " + text + ","));
    read_npy(path_, buffer);
  }
}

TEST_F(NpyTest, StridedTensorsAreWrittenInCOrder) {
  Buffer columns(tensor(DataType::f32, {2, 3}, {1, 2}));
  for_each_element(columns.tensor(), 0, 6, [&](int64_t i, int64_t offset) { columns.store(offset, static_cast<double>(i)); });
  {
    std::ofstream file(path_, std::ios::binary);
    write_npy(file, columns);
  }
  Buffer rows(tensor(DataType::f32, {2, 3}));
  read_npy(path_, rows);
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(rows.load(i), static_cast<double>(i));
}

TEST_F(NpyTest, ReadsFormatsTwoAndThreeAndNumpysBool) {
  Buffer buffer(tensor(DataType::boolean, {2}));
  for (const char version : {char{2}, char{3}}) {
    save(header("{'shape': (2,), 'fortran_order': False, 'descr': '|b1'}\n", version) + std::string("\x00\x01", 2));
    read_npy(path_, buffer);
    EXPECT_EQ(buffer.load(1), 1);
  }
}

TEST_F(NpyTest, NamesTheTensorTheGivenAndTheExpected) {
  Buffer buffer(tensor(DataType::f32, {2, 3}));
  save(header("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }\n"));
  EXPECT_EQ(error(buffer), path_ + ": tensor 5, f32[2, 3]: descr is '<f8', allowed is '<f4' for f32");
  save(header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }\n"));
  EXPECT_EQ(error(buffer), path_ + ": tensor 5, f32[2, 3]: shape is (3, 2), allowed is (2, 3)");
  save(header("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n"));
  EXPECT_THAT(error(buffer), HasSubstr("fortran_order is True"));
  save(header("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }\n"));
  EXPECT_THAT(error(buffer), HasSubstr("descr is '>f4'"));
}

TEST_F(NpyTest, RefusesBrokenFiles) {
  Buffer buffer(tensor(DataType::f32, {2, 3}));
  const std::string good = header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n");
  save("");
  EXPECT_THAT(error(buffer), HasSubstr("is not a .npy file"));
  save("PK\x03\x04 something else");
  EXPECT_THAT(error(buffer), HasSubstr("is not a .npy file"));
  for (size_t size = 0; size < good.size(); ++size) {
    save(good.substr(0, size));
    EXPECT_THAT(error(buffer), StartsWith(path_ + ": "));
  }
  save(good + std::string(20, 'x'));
  EXPECT_THAT(error(buffer), HasSubstr("ends too early"));
  save(good + std::string(28, 'x'));
  EXPECT_THAT(error(buffer), HasSubstr("has more data than the tensor"));
  save(header("{'descr': '<f4', 'shape': (99999999999999999999, 3)}\n"));
  EXPECT_THAT(error(buffer), HasSubstr("larger than 64 bits"));
}

}  // namespace
}  // namespace lamina::driver
