// An attribute of a dump while its object is read: {"type": ..., "value": ...}, in any order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "interface/json/tokens.h"
#include "interface/op.h"

namespace lamina::json {

// Attributes that writers add for their own bookkeeping and that no schema has.
bool is_bookkeeping(std::string_view attribute);

class PendingAttribute {
 public:
  void set_type(std::string type) { type_ = std::move(type); }
  void set_value(Scalar value);
  void set_value(std::vector<Number> list);

  // Converts the value to `type`. Throws Error(invalid_graph) with `attribute NAME ...`, without the position in the file.
  Attribute finish(const std::string& name) const;

 private:
  bool to_bool(const std::string& name) const;
  const std::string& to_string(const std::string& name) const;
  template <typename T>
  T take(const std::string& name, std::optional<T> (Number::*as)() const, const char* allowed) const;
  template <typename T>
  std::vector<T> take_list(const std::string& name, std::optional<T> (Number::*as)() const, const char* allowed) const;
  [[noreturn]] void refuse(const std::string& name, const char* allowed) const;

  std::string type_;
  bool has_value_ = false;
  bool is_list_ = false;
  Scalar scalar_;
  std::vector<Number> list_;
};

}  // namespace lamina::json
