// lamina, C++ interface, shared part: errors, engines and streams. graph/lamina.hpp includes this file; start there.
#pragma once

#include <array>
#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/lamina.h"

namespace lamina {

enum class status : int {
  success = lamina_success,
  out_of_memory = lamina_out_of_memory,
  invalid_arguments = lamina_invalid_arguments,
  unimplemented = lamina_unimplemented,
  last_impl_reached = lamina_last_impl_reached,
  runtime_error = lamina_runtime_error,
  not_required = lamina_not_required,
  invalid_graph = lamina_invalid_graph,
  invalid_graph_op = lamina_invalid_graph_op,
  invalid_shape = lamina_invalid_shape,
  invalid_data_type = lamina_invalid_data_type,
  index_out_of_range = lamina_index_out_of_range,
};

// `status` is the C interface's code; what() returns one sentence.
struct error : public std::exception {
  lamina_status_t status;

  error(lamina_status_t code, std::string text) : status(code), message_(std::move(text)) {}
  const char* what() const noexcept override { return message_.c_str(); }

  static void wrap_c_api(lamina_status_t code) {
    if (code != lamina_success) throw error(code, lamina_last_error());
  }
  // `message` describes the attempted operation.
  static void wrap_c_api(lamina_status_t code, const char* message) {
    if (code != lamina_success) throw error(code, std::string(message) + ": " + lamina_last_error());
  }

 private:
  std::string message_;
};

enum class fpmath_mode : int {
  strict = lamina_fpmath_mode_strict,
  bf16 = lamina_fpmath_mode_bf16,
  f16 = lamina_fpmath_mode_f16,
  any = lamina_fpmath_mode_any,
  tf32 = lamina_fpmath_mode_tf32,
};

inline const lamina_version_t* version() { return lamina_version(); }

// Sets what is printed to stdout: 0 nothing, 1 compiles and executions, 2 also passes.
inline status set_verbose(int level) { return static_cast<status>(lamina_set_verbose(level)); }

// The mode of graphs that are created from now on without an explicit mode.
inline void set_default_fpmath_mode(fpmath_mode mode) {
  error::wrap_c_api(lamina_set_default_fpmath_mode(static_cast<lamina_fpmath_mode_t>(mode)));
}
inline fpmath_mode get_default_fpmath_mode() {
  lamina_fpmath_mode_t mode = lamina_fpmath_mode_strict;
  error::wrap_c_api(lamina_get_default_fpmath_mode(&mode));
  return static_cast<fpmath_mode>(mode);
}

namespace detail {

// Shared ownership of a C object.
template <typename Object, lamina_status_t (*destroy)(Object*)>
class handle {
 public:
  handle() = default;
  explicit handle(Object* object, bool weak = false) { reset(object, weak); }
  // Weak: the object belongs to another owner, and is not destroyed.
  void reset(Object* object, bool weak = false) {
    if (weak)
      object_.reset(object, [](Object*) {});
    else
      object_.reset(object, [](Object* owned) { destroy(owned); });
  }
  Object* get(bool allow_empty = false) const {
    if (object_ == nullptr && !allow_empty) throw error(lamina_invalid_arguments, "the object is empty: it was never created");
    return object_.get();
  }
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(const handle& other) const { return object_ == other.object_; }
  bool operator!=(const handle& other) const { return object_ != other.object_; }

 private:
  std::shared_ptr<Object> object_;
};

// An array whose length is known at run time, which uses no heap memory up to `Inline` elements.
template <typename T, std::size_t Inline = 24>
class small_array {
 public:
  explicit small_array(std::size_t size) {
    if (size > Inline) heap_.resize(size);
  }
  T* data() { return heap_.empty() ? inline_.data() : heap_.data(); }

 private:
  std::array<T, Inline> inline_{};
  std::vector<T> heap_;
};

}  // namespace detail

class engine : public detail::handle<lamina_engine, lamina_engine_destroy> {
 public:
  enum class kind : int { any = lamina_any_engine, cpu = lamina_cpu, gpu = lamina_gpu };

  engine() = default;
  engine(kind akind, std::size_t index) {
    lamina_engine_t created = nullptr;
    error::wrap_c_api(lamina_engine_create(&created, static_cast<lamina_engine_kind_t>(akind), index));
    reset(created);
  }
  explicit engine(lamina_engine_t object, bool weak = false) : handle(object, weak) {}

  kind get_kind() const {
    lamina_engine_kind_t result = lamina_any_engine;
    error::wrap_c_api(lamina_engine_get_kind(get(), &result));
    return static_cast<kind>(result);
  }
  static std::size_t get_count(kind akind) { return lamina_engine_get_count(static_cast<lamina_engine_kind_t>(akind)); }
};

class stream : public detail::handle<lamina_stream, lamina_stream_destroy> {
 public:
  enum class flags : unsigned {
    in_order = lamina_stream_in_order,
    out_of_order = lamina_stream_out_of_order,
    default_flags = lamina_stream_default_flags,
    profiling = lamina_stream_profiling,
  };

  stream() = default;
  explicit stream(const engine& aengine, flags aflags = flags::default_flags) {
    lamina_stream_t created = nullptr;
    error::wrap_c_api(lamina_stream_create(&created, aengine.get(), static_cast<unsigned>(aflags)));
    reset(created);
  }
  explicit stream(lamina_stream_t object, bool weak = false) : handle(object, weak) {}

  // Not a copy: valid as long as the engine that the stream was created with.
  engine get_engine() const {
    lamina_engine_t result = nullptr;
    error::wrap_c_api(lamina_stream_get_engine(get(), &result));
    return engine(result, true);
  }
  stream& wait() {
    error::wrap_c_api(lamina_stream_wait(get()));
    return *this;
  }
};

}  // namespace lamina
