// Memory that Python objects share, seen without a copy: torch's tensors by DLPack's C exchange table where their type has one,
// by their attributes where it has none; everything else by DLPack or the buffer protocol, through nanobind.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "graph/lamina.hpp"

namespace lamina::python {

namespace nb = nanobind;

// What one Python object shares, for as long as the object lives.
struct View {
  void* memory = nullptr;
  lamina_data_type_t type = lamina_data_type_undef;
  bool raw = false;  // unsigned integers of `bits` bits, which may stand for the bits of another type
  int bits = 0;
  int rank = 0;
  std::array<int64_t, LAMINA_MAX_NDIMS> dims{};
  std::array<int64_t, LAMINA_MAX_NDIMS> strides{};  // in elements
};

// `writable`: it is going to be written. Throws lamina::error naming `what` ("input 1 'gamma'") where the object shares no
// memory of the host, or read-only memory, or has a type that lamina does not know.
View view_of(nb::handle object, bool writable, std::string_view what);

// What arrays are, but for their memory: type, shape and strides of each (None: none), for a look-up. Equal where these are.
nb::bytes signature(nb::handle arrays);

// Whether the view may be given for the tensor: type (or raw bits of as many), shape and strides. What does not fit, as a
// sentence; empty: it fits.
std::string misfit(const View& view, const lamina_graph_logical_tensor_t& tensor);

const char* name_of(lamina_data_type_t type);
int bits_of(lamina_data_type_t type);
lamina_data_type_t type_from_name(const std::string& name);  // throws lamina::error with the names there are

}  // namespace lamina::python
