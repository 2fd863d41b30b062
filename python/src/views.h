// Views of memory that Python objects share, without copies: torch's tensors through DLPack's C exchange table if their type
// has one, else through their attributes; other objects through DLPack or the buffer protocol, by nanobind.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/lamina.hpp"

namespace lamina::python {

namespace nb = nanobind;

// The memory that one Python object shares; valid as long as the object.
struct View {
  void* memory = nullptr;
  lamina_data_type_t type = lamina_data_type_undef;
  bool raw = false;  // unsigned integers of `bits` bits, which may be the raw bits of another type
  int bits = 0;
  int rank = 0;
  std::array<int64_t, LAMINA_MAX_NDIMS> dims{};
  std::array<int64_t, LAMINA_MAX_NDIMS> strides{};  // in elements
};

// `writable`: the caller will write to the memory. Throws lamina::error, with `what` ("input 1 'gamma'") in the sentence, if
// the object shares no host memory, only read-only memory, or has an unknown type.
View view_of(nb::handle object, bool writable, std::string_view what);

// A look-up key of arrays: type, shape and strides of each (entries may be None). Keys are equal if and only if these are
// equal.
nb::bytes signature(nb::handle arrays);

// Checks whether the view matches the tensor in type (or is raw bits of the same size), shape and strides. Returns the
// mismatch as a sentence, or "".
std::string misfit(const View& view, const lamina_graph_logical_tensor_t& tensor);

std::vector<std::string> type_names();
std::map<std::string, std::string> type_kinds();  // by the name of the type

// By the name of the type: numpy's type string (raw bits where numpy lacks the type), and torch's name.
std::map<std::string, std::pair<std::string, std::string>> array_types();

const char* name_of(lamina_data_type_t type);
int bits_of(lamina_data_type_t type);
lamina_data_type_t type_from_name(const std::string& name);  // throws lamina::error with the existing names

}  // namespace lamina::python
