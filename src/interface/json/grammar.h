// The grammar of dumps: which brackets and keys have a meaning, and what they contain. Everything else is skipped.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace lamina::json {

// The contents of a frame. A frame is an open bracket.
enum class At { root, ops, op, attributes, attribute, ports, tensor, list, constants, constant, skip };

// The form of a value. A member may allow two forms.
enum Form : unsigned { kScalar = 1, kObject = 2, kArray = 4 };

// A key that has a meaning in dumps, and what its bracket contains. Other keys are skipped with their contents.
struct Member {
  At in;
  std::string_view key;
  unsigned forms;
  At holds = At::skip;
};
inline constexpr Member kMembers[] = {
    {At::root, "version", kScalar},
    {At::root, "engine_kind", kScalar},
    {At::root, "fpmath_mode", kScalar},
    {At::root, "fpmath_mode_apply_to_int", kScalar},
    {At::root, "input_ports", kArray, At::list},
    {At::root, "output_ports", kArray, At::list},
    {At::root, "graph", kArray, At::ops},
    {At::root, "constants", kArray, At::constants},
    {At::op, "id", kScalar},
    {At::op, "name", kScalar},
    {At::op, "kind", kScalar},
    {At::op, "attrs", kObject, At::attributes},
    {At::op, "inputs", kArray, At::ports},
    {At::op, "outputs", kArray, At::ports},
    {At::attribute, "type", kScalar},
    {At::attribute, "value", kScalar | kArray, At::list},
    {At::tensor, "id", kScalar},
    {At::tensor, "dtype", kScalar},
    {At::tensor, "shape", kArray, At::list},
    {At::tensor, "stride", kArray, At::list},
    {At::tensor, "layout_type", kScalar},
    {At::tensor, "property_type", kScalar},
    {At::constant, "id", kScalar},
    {At::constant, "value", kScalar},
};

inline const Member* known_member(At in, std::string_view key) {
  const auto found =
      std::find_if(std::begin(kMembers), std::end(kMembers), [&](const Member& m) { return m.in == in && m.key == key; });
  return found == std::end(kMembers) ? nullptr : found;
}

// Brackets whose entries are objects of one kind, and the error sentence for an entry of another form.
struct Entries {
  At in;
  At holds;
  const char* what;
  const char* allowed;
};
inline constexpr Entries kEntries[] = {
    {At::ops, At::op, "\"graph\" holds ", "op objects"},
    {At::ports, At::tensor, "a port is ", "a tensor object"},
    {At::constants, At::constant, "\"constants\" holds ", "objects with id and value"},
};

inline const Entries* entries_of(At in) {
  const auto found = std::find_if(std::begin(kEntries), std::end(kEntries), [&](const Entries& e) { return e.in == in; });
  return found == std::end(kEntries) ? nullptr : found;
}

}  // namespace lamina::json
