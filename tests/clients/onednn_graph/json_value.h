// A minimal JSON reader for the client of dumps: values as a tree, numbers as text. Throws std::runtime_error for invalid JSON.
#pragma once

#include <cctype>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

class JsonValue {
 public:
  static JsonValue of(const std::string& text) {
    const char* at = text.c_str();
    return read(at);
  }

  bool has(const std::string& name) const { return members_.count(name) != 0; }
  // Returns an empty value if the name is missing.
  const JsonValue& operator[](const std::string& name) const {
    static const JsonValue none;
    const auto found = members_.find(name);
    return found == members_.end() ? none : found->second;
  }
  const std::map<std::string, JsonValue>& members() const { return members_; }
  const std::vector<JsonValue>& items() const { return items_; }
  const std::string& text() const { return text_; }
  long long integer() const { return std::strtoll(text_.c_str(), nullptr, 10); }
  float real() const { return std::strtof(text_.c_str(), nullptr); }

 private:
  static void expect(const char*& at, char sign) {
    skip(at);
    if (*at != sign) throw std::runtime_error(std::string("no JSON: '") + sign + "' is missing");
    ++at;
  }
  static void skip(const char*& at) {
    while (std::isspace(static_cast<unsigned char>(*at)) != 0) ++at;
  }
  static bool is_next(const char*& at, char sign) {
    skip(at);
    if (*at != sign) return false;
    ++at;
    return true;
  }
  static std::string quoted(const char*& at) {
    expect(at, '"');
    std::string text;
    for (; *at != '"'; ++at) {
      if (*at == '\\') ++at;
      if (*at == '\0') throw std::runtime_error("no JSON: a string does not end");
      text += *at;
    }
    ++at;
    return text;
  }
  static JsonValue read(const char*& at) {
    JsonValue value;
    skip(at);
    if (is_next(at, '{')) {
      while (!is_next(at, '}')) {
        const std::string name = quoted(at);
        expect(at, ':');
        value.members_[name] = read(at);
        is_next(at, ',');
      }
    } else if (is_next(at, '[')) {
      while (!is_next(at, ']')) {
        value.items_.push_back(read(at));
        is_next(at, ',');
      }
    } else if (*at == '"') {
      value.text_ = quoted(at);
    } else {
      while (*at != '\0' && std::isspace(static_cast<unsigned char>(*at)) == 0 && *at != ',' && *at != '}' && *at != ']')
        value.text_ += *at++;
      if (value.text_.empty()) throw std::runtime_error("no JSON: a value is missing");
    }
    return value;
  }

  std::map<std::string, JsonValue> members_;
  std::vector<JsonValue> items_;
  std::string text_;
};
