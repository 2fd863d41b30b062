// A compiled program as data: the fields of its steps as bytes, and the machine code that they call, by number. Number 0 is no
// code.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/program/bytes.h"

namespace lamina::cpu {

class ProgramWriter : public ByteWriter {
 public:
  struct Code {
    std::string symbol;
    std::shared_ptr<const std::string> object;  // an ELF object that defines the symbol
  };

  // The same symbol is the same code.
  void write_code(const std::string& symbol, const std::shared_ptr<const std::string>& object) {
    const auto [found, is_new] = numbers_.emplace(symbol, codes_.size() + 1);
    if (is_new) codes_.push_back({symbol, object});
    write(found->second);
  }
  void write_no_code() { write(size_t{0}); }

  const std::vector<Code>& codes() const { return codes_; }

 private:
  std::map<std::string, size_t> numbers_;
  std::vector<Code> codes_;
};

class ProgramReader : public ByteReader {
 public:
  using ByteReader::ByteReader;

  // The addresses by number, from 1, for what follows.
  void set_code(std::vector<const void*> code) { code_ = std::move(code); }

  // Null for number 0.
  const void* read_code() {
    const auto number = get<size_t>();
    if (number > code_.size()) fail("the number of a function");
    return number == 0 ? nullptr : code_[number - 1];
  }
  const void* read_some_code() {
    const void* const code = read_code();
    if (code == nullptr) fail("a function");
    return code;
  }

 private:
  std::vector<const void*> code_;
};

}  // namespace lamina::cpu
