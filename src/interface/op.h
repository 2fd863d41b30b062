// An operation of a graph: its kind, attributes and ports. The enumerators are generated from include/graph/op_kinds.def.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interface/status.h"
#include "interface/variant.h"

namespace lamina {

enum class OpKind : int {
#define LAMINA_OP(kind, value) kind = value,
#include "graph/op_kinds.def"
};

std::string_view name_of(OpKind kind);
std::optional<OpKind> op_kind_from_name(std::string_view name);  // also accepts names of earlier versions (older_names.h)
const std::vector<OpKind>& all_op_kinds();                       // in the order of op_kinds.def

// The alternative's index is the attribute's type; see name_of_type. Schemas declare no f64: a number of f32 is f64 where its
// op has f64 tensors and f32 does not hold the number (number_attribute).
using Attribute = Variant<bool, int64_t, std::vector<int64_t>, float, std::vector<float>, std::string, double>;
enum class AttributeType : int { boolean = 0, s64 = 1, s64_list = 2, f32 = 3, f32_list = 4, string = 5, f64 = 6 };
std::string_view name_of(AttributeType type);  // "bool", "s64", "s64[]", "f32", "f32[]", "string", "f64"
std::string to_string(const Attribute& value);

// The value of a number attribute: all digits if a tensor of the op is f64 and f32 cannot hold them, else rounded to f32.
Attribute number_attribute(double value, bool has_f64_tensor);
// The number that a value of type f32 or f64 is; nothing for other types.
std::optional<double> number_of(const Attribute& value);

using Attributes = std::map<std::string, Attribute, std::less<>>;

using ValueIndex = int;                     // position in Graph::values()
inline constexpr ValueIndex kNoValue = -1;  // an omitted port

// An op of the user's graph that a pass has merged into another.
struct Origin {
  uint64_t id = 0;
  OpKind kind = OpKind::Wildcard;
  std::string name;
};

struct Op {
  uint64_t id = 0;
  OpKind kind = OpKind::Wildcard;
  std::string name;
  Attributes attributes;            // defaults filled in once the op is part of a graph
  std::vector<ValueIndex> inputs;   // in port order
  std::vector<ValueIndex> outputs;  // in port order
  // The user's ops that this op replaces, except the one whose id it has; passes fill it.
  std::vector<Origin> origins = {};
  std::string raised_by = {};  // the pattern that raised this op from smaller ones (passes/raise_decomposed); empty: none
  std::string given_up = {};   // the first pattern whose search at this op was aborted; empty: none

  // The attribute's value. LAMINA_CHECKs that it is present with that type, which the schema check guarantees.
  template <typename T>
  const T& attribute(std::string_view attribute_name) const;
  // Of type f32 or f64.
  double number(std::string_view attribute_name) const;
  bool has_attribute(std::string_view attribute_name) const;
};

// `LayerNorm "ln0"`: how messages name an op.
std::string describe(const Op& op);
std::string describe(const Origin& origin);

// The place for errors about the op, or about one port or attribute (`part`) of it.
OpPlace place_of(const Op& op, std::string part = {});

[[noreturn]] void fail_attribute_access(const Op& op, std::string_view attribute_name);

template <typename T>
const T& Op::attribute(std::string_view attribute_name) const {
  const auto found = attributes.find(attribute_name);
  if (found == attributes.end() || !std::holds_alternative<T>(found->second)) fail_attribute_access(*this, attribute_name);
  return std::get<T>(found->second);
}

}  // namespace lamina
