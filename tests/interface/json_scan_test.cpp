// The scanner's grammar: what it tells, what it takes although JSON forbids it, and what it refuses where.
#include "interface/json_scan.h"

#include <gtest/gtest.h>

#include <cmath>

#include "interface/status.h"

namespace lamina::json {
namespace {

// Everything that was told, as text.
class Record : public Listener {
 public:
  void start_object() override { told += "{ "; }
  void start_array() override { told += "[ "; }
  void end() override { told += "end "; }
  void key(std::string_view name) override { told += join(name, ": "); }
  void scalar(const Scalar& value) override {
    if (const auto* flag = std::get_if<bool>(&value)) told += *flag ? "true " : "false ";
    else told += join(show(value), " ");
    last = number_of(value);
  }
  std::string told;
  std::optional<Number> last;
};

std::string told_of(const std::string& text) {
  Record record;
  try {
    Scanner(text).run(record);
  } catch (const SyntaxError& error) {
    return join(error.position, ": ", error.what);
  }
  return record.told;
}

Number number(const std::string& text) {
  Record record;
  Scanner(text).run(record);
  return record.last.value();
}

TEST(JsonScanner, TellsTokensInTheirOrder) {
  EXPECT_EQ(told_of(R"( {"a" : [1, -2.5, "x", true, false, null, [], {}], "b":{"c":3}} )"),
            "{ a: [ 1 -2.5 \"x\" true false null [ end { end end b: { c: 3 end end ");
  EXPECT_EQ(told_of("\xEF\xBB\xBF[]"), "[ end ");
  EXPECT_EQ(told_of("7"), "7 ");
}

TEST(JsonScanner, UnescapesStrings) {
  EXPECT_EQ(told_of(R"("a\"b\\c\/\b\f\n\r\t")"), "\"a\"b\\c/\b\f\n\r\t\" ");
  EXPECT_EQ(told_of(R"("\u0041\u00e4\u20AC\ud83d\ude00 ä")"), "\"Aä€😀 ä\" ");
  EXPECT_EQ(told_of(R"({"k\u0065y": 1})"), "{ key: 1 end ");
  EXPECT_EQ(told_of("\"raw\ttab\nand line\""), "\"raw\ttab\nand line\" ");
}

TEST(JsonScanner, KeepsIntegersOf64Bits) {
  EXPECT_EQ(number("-9223372036854775808").as_signed(), INT64_MIN);
  EXPECT_EQ(number("18446744073709551615").as_unsigned(), UINT64_MAX);
  EXPECT_EQ(number("18446744073709551616").as_unsigned(), std::nullopt);
  EXPECT_EQ(number("1e3").as_signed(), 1000);
  EXPECT_EQ(number("2.50").real, 2.5);
}

TEST(JsonScanner, RoundsToF32OnceFromTheText) {
  // Halfway between two f32 but for the last digit, which an f64 loses.
  EXPECT_EQ(number("1.00000005960464477540").single, std::nextafter(1.0F, 2.0F));
  EXPECT_EQ(number("1e-60").single, 0.0F);
  EXPECT_EQ(number("1e300").as_single(), std::nullopt);
}

TEST(JsonScanner, TakesBareInfinitiesAndNaN) {
  for (const char* word : {"inf", "Inf", "infinity", "Infinity", "+inf"}) EXPECT_EQ(number(word).real, INFINITY) << word;
  for (const char* word : {"-inf", "-Infinity"}) EXPECT_EQ(number(word).single, -INFINITY) << word;
  for (const char* word : {"nan", "NaN", "-nan"}) EXPECT_TRUE(std::isnan(number(word).real)) << word;
}

struct Bad {
  const char *text, *told;
};

TEST(JsonScanner, SaysWhatStandsWhereWhatIsExpected) {
  for (const Bad& bad : std::initializer_list<Bad>{
           {"", "0: the text ends where a value is expected"},
           {"[1", "2: the text ends where , or ] is expected"},
           {"[1 2]", "3: '2' stands where , or ] is expected"},
           {"[1,]", "3: ']' stands where a value is expected"},
           {"[}", "1: '}' stands where a value or ] is expected"},
           {"{]", "1: ']' stands where a key in quotes or } is expected"},
           {"{\"a\" 1}", "5: a key stands without the : that follows it"},
           {"{\"a\":1,}", "7: '}' stands where a key in quotes is expected"},
           {"{\"a\":1]", "6: ']' stands where , or } is expected"},
           {"[] x", "3: 'x' stands where the end is expected"},
           {"[\x01]", "1: byte 1 stands where a value or ] is expected"},
           {"tru", "0: 't' stands where a value is expected"},
           {"'a'", "0: ''' stands where a value is expected"},
           {"01", "2: a number begins with a 0 that means nothing"},
           {"-", "1: a number lacks a digit here"},
           {"1.", "2: a number lacks a digit here"},
           {"1e+", "3: a number lacks a digit here"},
           {"+1", "0: '+' stands where a value is expected"},
           {"1e999", "5: the number 1e999 is out of the range of f64"},
           {"\"ab", "3: the text ends inside a string"},
           {"\"a\\", "3: a \\ in a string begins no escape that JSON knows"},
           {"\"\\x\"", "2: a \\ in a string begins no escape that JSON knows"},
           {"\"\\u12\"", "3: \\u lacks its four hexadecimal digits"},
           {"\"\\udc00\"", "7: a \\u escape is the second half of a pair without the first"},
           {"\"\\ud800\"", "7: a \\u escape is the first half of a pair without the second"},
       })
    EXPECT_EQ(told_of(bad.text), bad.told) << bad.text;
}

TEST(JsonScanner, RefusesBytesThatAreNotUtf8) {
  for (const char* bytes : {"\xFF", "\x80", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xC3", "\\n\xC3"})
    EXPECT_NE(told_of(join('"', bytes, '"')).find("a string holds bytes that are not UTF-8"), std::string::npos) << bytes;
  for (const char* bytes : {"\xC2\x80", "\xED\x9F\xBF", "\xEF\xBF\xBF", "\xF4\x8F\xBF\xBF"})
    EXPECT_EQ(told_of(join('"', bytes, '"')), join('"', bytes, "\" "));
}

}  // namespace
}  // namespace lamina::json
