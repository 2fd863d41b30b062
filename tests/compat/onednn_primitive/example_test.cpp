// Runs the documentation's example as a program and compares its output with the formulas in double.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>

#include "support/emulator.h"
#include "support/layer_norm_case.h"

namespace primitive_test {
namespace {

using lamina::testing::LayerNormNumbers;

constexpr int kRows = 36, kColumns = 227;

std::string output_of(const std::string& command, int& exit_code) {
  std::string text;
  FILE* const pipe = popen((LAMINA_EMULATOR + command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return "cannot be started";
  std::array<char, 256> buffer;
  while (std::fgets(buffer.data(), static_cast<int>(buffer.size()), pipe) != nullptr) text += buffer.data();
  exit_code = pclose(pipe);
  return text;
}

LayerNormNumbers expected_numbers() {
  LayerNormNumbers numbers;
  numbers.size = kColumns;
  numbers.epsilon = 1e-10;
  for (int i = 0; i < kRows * kColumns; ++i) numbers.src.push_back(std::cos(static_cast<float>(i) / 10.0f));
  for (int i = 0; i < kColumns; ++i) numbers.scale.push_back(std::sin(static_cast<float>(i) * 2.0f));
  for (int i = 0; i < kColumns; ++i) numbers.shift.push_back(std::tan(static_cast<float>(i)));
  numbers.compute_statistics();
  return numbers;
}

struct Printed {
  double mean, variance, first;
};

Printed row_of(const std::string& text, const std::string& what, int row) {
  Printed printed{NAN, NAN, NAN};
  const std::string start = what + " row " + std::to_string(row) + ": ";
  const size_t at = text.find(start);
  if (at != std::string::npos)
    std::sscanf(text.c_str() + at + start.size(), "mean %lf, variance %lf, first %lf", &printed.mean, &printed.variance,
                &printed.first);
  return printed;
}

Printed statistics_of(const lamina::testing::Values& values, int row) {
  LayerNormNumbers numbers;
  numbers.size = kColumns;
  numbers.src = {values.begin() + row * kColumns, values.begin() + (row + 1) * kColumns};
  numbers.compute_statistics();
  return {numbers.mean[0], numbers.variance[0], numbers.src[0]};
}

// The program prints six digits.
void expect_printed(const Printed& printed, const Printed& expected) {
  EXPECT_NEAR(printed.mean, expected.mean, 2e-5 * std::max(1.0, std::abs(expected.mean)));
  EXPECT_NEAR(printed.variance, expected.variance, 2e-5 * std::max(1.0, expected.variance));
  if (!std::isnan(expected.first)) {
    EXPECT_NEAR(printed.first, expected.first, 2e-5 * std::max(1.0, std::abs(expected.first)));
  }
}

TEST(LayerNormalizationExample, PrintsWhatTheFormulasGive) {
  int exit_code = -1;
  const std::string text = output_of(LAMINA_PRIMITIVE_EXAMPLE, exit_code);
  SCOPED_TRACE(text);
  EXPECT_EQ(exit_code, 0);
  EXPECT_NE(text.find("Example passed on CPU."), std::string::npos);
  const LayerNormNumbers numbers = expected_numbers();
  expect_printed(row_of(text, "src", 0), statistics_of(numbers.src, 0));
  expect_printed(row_of(text, "primitive", 0), {numbers.mean[0], numbers.variance[0], NAN});
  for (const int row : {0, kRows / 2, kRows - 1}) expect_printed(row_of(text, "dst", row), statistics_of(numbers.dst(), row));
}

TEST(LayerNormalizationExample, SaysWhyItCannotRunOnAGpu) {
  int exit_code = 0;
  const std::string text = output_of(LAMINA_PRIMITIVE_EXAMPLE " gpu", exit_code);
  EXPECT_NE(exit_code, 0);
  EXPECT_NE(text.find("status 3, engine kind gpu"), std::string::npos) << text;
}

// One source for two libraries: the front end has oneDNN's names and signatures.
TEST(LayerNormalizationExample, PrintsTheSameBuiltAgainstOneDnnItself) {
#ifdef LAMINA_ONEDNN_EXAMPLE
  int ours_code = -1, theirs_code = -1;
  const std::string ours = output_of(LAMINA_PRIMITIVE_EXAMPLE, ours_code),
                    theirs = output_of(LAMINA_ONEDNN_EXAMPLE, theirs_code);
  EXPECT_EQ(ours_code, 0);
  EXPECT_EQ(theirs_code, 0) << theirs;
  for (const int row : {0, kRows / 2, kRows - 1}) expect_printed(row_of(ours, "dst", row), row_of(theirs, "dst", row));
  expect_printed(row_of(ours, "primitive", 0),
                 {row_of(theirs, "primitive", 0).mean, row_of(theirs, "primitive", 0).variance, NAN});
#else
  GTEST_SKIP() << "oneDNN was not found when the tests were configured";
#endif
}

}  // namespace
}  // namespace primitive_test
