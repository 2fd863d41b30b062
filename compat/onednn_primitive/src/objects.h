// What stands behind the handles of oneapi/dnnl/dnnl.hpp, and how lamina's errors become dnnl::error.
#pragma once

#include <array>
#include <functional>
#include <string>

#include "graph/layer_norm.hpp"
#include "oneapi/dnnl/dnnl.hpp"

namespace dnnl {

// Throws dnnl::error; lamina_last_error() holds the sentence afterwards.
[[noreturn]] void fail(dnnl_status_t status, const std::string& sentence);

// Runs `body`; what lamina throws becomes a dnnl::error: shapes that do not fit are invalid arguments here, types that lamina
// does not run are unimplemented.
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

// A tensor of the primitive: the argument's index, what it is called in messages, and how memory for it must look.
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
  memory::desc desc_of(int index) const;  // of no memory when the primitive has no such argument
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
