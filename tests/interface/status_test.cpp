// Messages and errors: the same text in every locale, and errors with the op that they concern.
#include "interface/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <regex>
#include <sstream>

#include "interface/number_text.h"
#include "interface/op.h"
#include "support/files.h"
#include "support/foreign_locale.h"

namespace lamina {
namespace {

using testing::DecimalComma;
using testing::GroupedNumbers;

constexpr double kReals[] = {0.0,  -0.0,      1.5,     -2.25,    1e-5,   123456.0, 1234567.0,
                             1e21, 0x1p-1074, 65504.0, 1.0F / 3, -1e300, 0.1,      std::numeric_limits<double>::infinity()};

template <typename T>
std::string streamed(const T& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

template <typename... T>
std::string printed(const char* form, T... values) {
  char text[512];
  std::snprintf(text, sizeof text, form, values...);
  return text;
}

TEST(Join, WritesWhatAStreamOfTheClassicLocaleWrites) {
  EXPECT_EQ(join("axis is ", 3, ", allowed is ", std::string("-2"), "..", 1U, '!', std::string_view(" ok")),
            "axis is 3, allowed is -2..1! ok");
  EXPECT_EQ(join(INT64_MIN, ' ', UINT64_MAX, ' ', short{-7}, ' ', true, false),
            "-9223372036854775808 18446744073709551615 -7 10");
  for (const double value : kReals) {
    EXPECT_EQ(join(value), streamed(value));
    EXPECT_EQ(join(static_cast<float>(value)), streamed(static_cast<float>(value)));
  }
}

TEST(Join, KnowsNoLocale) {
  const GroupedNumbers grouped;
  ASSERT_EQ(streamed(16384), "16.384");  // the stream uses this locale's separator
  EXPECT_EQ(join("base < ", 16384), "base < 16384");
  EXPECT_EQ(join(1.5, ' ', 1234567.0F, ' ', int64_t{-1000000}), "1.5 1.23457e+06 -1000000");
}

TEST(NumberText, IsWhatPrintfWritesInTheCLocale) {
  for (const double value : kReals) {
    EXPECT_EQ(fixed_text(value, 3), printed("%.3f", value));
    EXPECT_EQ(general_text(value, 9), printed("%.9g", value));
    // C libraries differ in the first digit of a subnormal; the number is the same.
    const std::string exact = exact_text(value);
    if (value == 0 || std::isnormal(value) || !std::isfinite(value)) {
      EXPECT_EQ(exact, printed("%a", value));
    } else {
      EXPECT_EQ(std::strtod(exact.c_str(), nullptr), value) << exact;
    }
  }
}

TEST(NumberText, KnowsNoLocale) {
  const DecimalComma comma;
  LAMINA_NEEDS_DECIMAL_COMMA(comma);
  ASSERT_EQ(printed("%a", 1.5), "0x1,8p+0");  // printf uses this locale's decimal point
  EXPECT_EQ(exact_text(1.5), "0x1.8p+0");
  EXPECT_EQ(general_text(1.5, 6), "1.5");
  EXPECT_EQ(fixed_text(1234.5, 2), "1234.50");
  EXPECT_EQ(join(1.5), "1.5");
}

TEST(Error, TellsTheOpInFrontAndTheFileBeforeIt) {
  const Error plain(Status::invalid_graph, "the graph has a cycle");
  EXPECT_FALSE(plain.place().has_value());
  EXPECT_STREQ(plain.in_file("a.json").what(), "a.json: the graph has a cycle");

  Op op;
  op.id = 3;
  op.kind = OpKind::LayerNorm;
  op.name = "ln";
  const Error placed(Status::invalid_graph_op, place_of(op, "attribute epsilon"), "attribute epsilon is 0");
  EXPECT_STREQ(placed.what(), "LayerNorm \"ln\": attribute epsilon is 0");
  EXPECT_EQ(placed.message(), "attribute epsilon is 0");
  const Error told = placed.in_file("a.json");
  EXPECT_STREQ(told.what(), "a.json: op 3 (LayerNorm \"ln\"): attribute epsilon is 0");
  EXPECT_EQ(told.status(), Status::invalid_graph_op);
  EXPECT_EQ(told.message(), "attribute epsilon is 0");
  ASSERT_TRUE(told.place().has_value());
  EXPECT_EQ(told.place()->id, 3U);
  EXPECT_EQ(told.place()->part, "attribute epsilon");
}

// Streams, printf and strtod depend on the process's locale. join and number_text.h format numbers, and std::from_chars parses
// them.
TEST(Sources, FormatNoNumbersByTheLocale) {
  const std::regex by_locale(
      "\\b([iow]?stringstream|v?s?n?printf_l|snprintf|sprintf|setprecision|strto[dfl]d?|sto[dfl]d?|atof|sscanf)\\b|std::"
      "format\\b|"
      "printf\\([^;]*%[-+ #0-9.*]*[aefgAEFG']");
  const std::regex comment("//[^\n]*");
  int files = 0;
  for (const char* folder : {"src", "tools", "compat"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(testing::kTree / folder)) {
      const std::string ending = entry.path().extension().string();
      if (ending != ".cpp" && ending != ".h" && ending != ".hpp" && ending != ".inl") continue;
      ++files;
      const std::string code = std::regex_replace(testing::text_of(entry.path()), comment, "");
      std::smatch found;
      EXPECT_FALSE(std::regex_search(code, found, by_locale)) << entry.path() << " uses " << found.str();
    }
  }
  EXPECT_GT(files, 200);
}

}  // namespace
}  // namespace lamina
