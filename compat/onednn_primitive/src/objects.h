// The objects behind the handles of oneapi/dnnl/dnnl.hpp, and the conversion of lamina's errors to dnnl::error.
#pragma once

#include <array>
#include <functional>
#include <string>

#include "graph/layer_norm.hpp"
#include "oneapi/dnnl/dnnl.hpp"

namespace dnnl {

// Throws dnnl::error and sets lamina_last_error() to the sentence.
[[noreturn]] void fail(dnnl_status_t status, const std::string& sentence);

// Runs `body` and converts lamina's errors to dnnl::error: mismatching shapes become invalid_arguments, unsupported types
// unimplemented.
template <typename Body>
auto translated(Body&& body) -> decltype(body());
[[noreturn]] void fail_as(const lamina::error& error);

namespace detail {

struct engine_object {
  lamina::engine engine;
};

struct stream_object {
  dnnl::engine engine;
  lamina::stream stream;
};

struct memory_object {
  memory::desc desc;
  dnnl::engine engine;
  void* handle = nullptr;
  std::shared_ptr<void> owned;
};

// A tensor of the primitive: the argument's index, its name in messages, and the required memory layout.
struct port {
  int index;
  const char* name;
  lamina::layer_norm::arg arg;
  memory::desc desc;
};

// Immutable: shared by the primitive descriptor and its primitives.
struct layer_norm_object {
  dnnl::engine engine;
  prop_kind kind = prop_kind::undef;
  normalization_flags flags = normalization_flags::none;
  float epsilon = 0;
  primitive_attr attr;
  std::vector<port> ports;
  memory::desc stat_desc, scale_desc;
  lamina::layer_norm norm;
  std::size_t workspace_size = 0;

  bool is_backward() const { return kind == prop_kind::backward || kind == prop_kind::backward_data; }
  bool has(normalization_flags flag) const { return (flags & flag) != normalization_flags::none; }
  memory::desc desc_of(int index) const;  // empty if the primitive has no such argument
};

}  // namespace detail

template <typename Body>
auto translated(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const lamina::error& error) {
    fail_as(error);
  }
}

}  // namespace dnnl
