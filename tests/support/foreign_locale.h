// Sets locales that format numbers differently while a test runs: lamina's output must not depend on the locale.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <locale>
#include <string>

namespace lamina::testing {

// While an object of this class exists, new C++ streams write 16384 as 16.384 and 1.5 as 1,5.
class GroupedNumbers {
 public:
  GroupedNumbers() : before_(std::locale::global(std::locale(std::locale(), new Punctuation))) {}
  ~GroupedNumbers() { std::locale::global(before_); }
  GroupedNumbers(const GroupedNumbers&) = delete;
  GroupedNumbers& operator=(const GroupedNumbers&) = delete;

 private:
  struct Punctuation : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  std::locale before_;
};

// While an object of this class exists, C functions (printf, strtod) use a comma as the decimal point. is_there() is false if
// this machine has no such locale and cannot compile one.
class DecimalComma {
 public:
  DecimalComma() : before_(std::setlocale(LC_NUMERIC, nullptr)) {
    for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8"})
      if (take(name)) return;
    // Many machines have the sources of the locales but not the compiled locales, so the test compiles one.
    const std::string folder = ::testing::TempDir() + "lamina_locales_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder);
    const std::string command = "localedef --no-archive -i de_DE -f UTF-8 " + folder + "/de_DE.UTF-8 >" + folder + "/log 2>&1";
    if (std::system(command.c_str()) == -1) return;
    ::setenv("LOCPATH", folder.c_str(), 1);
    take("de_DE.UTF-8");
    ::unsetenv("LOCPATH");
    std::filesystem::remove_all(folder);
  }
  ~DecimalComma() { std::setlocale(LC_NUMERIC, before_.c_str()); }
  DecimalComma(const DecimalComma&) = delete;
  DecimalComma& operator=(const DecimalComma&) = delete;

  bool is_there() const { return is_there_; }

 private:
  bool take(const char* name) {
    is_there_ = std::setlocale(LC_NUMERIC, name) != nullptr && std::localeconv()->decimal_point[0] == ',';
    return is_there_;
  }
  std::string before_;
  bool is_there_ = false;
};

#define LAMINA_NEEDS_DECIMAL_COMMA(locale) \
  if (!(locale).is_there()) GTEST_SKIP() << "no locale with a decimal comma is here, nor localedef to make one"

}  // namespace lamina::testing
