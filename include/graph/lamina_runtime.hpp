// C++ over lamina_runtime.h: a model that frees itself, tensors over the caller's memory, exceptions instead of statuses.
// Header only; needs C++17.
#ifndef GRAPH_LAMINA_RUNTIME_HPP
#define GRAPH_LAMINA_RUNTIME_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/lamina_runtime.h"

namespace lamina {
namespace runtime {

class error : public std::exception {
 public:
  error(lamina_runtime_status_t status, std::string sentence) : status_(status), sentence_(std::move(sentence)) {}
  const char* what() const noexcept override { return sentence_.c_str(); }
  lamina_runtime_status_t status() const noexcept { return status_; }

 private:
  lamina_runtime_status_t status_;
  std::string sentence_;
};

inline void check(lamina_runtime_status_t status) {
  if (status != lamina_runtime_success) throw error(status, lamina_runtime_last_error());
}

using data_type = lamina_runtime_data_type_t;
using dims = std::vector<std::int64_t>;

// A tensor over memory of the caller. Without strides it is dense. An extent of a model with several variants may be
// LAMINA_RUNTIME_DYNAMIC.
struct tensor {
  std::string name;
  data_type dtype = lamina_runtime_undef;
  dims shape;
  dims strides;
  void* data = nullptr;

  // The number of elements.
  std::int64_t size() const {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    return count;
  }
  tensor with(void* memory) const {
    tensor bound = *this;
    bound.data = memory;
    return bound;
  }
};

struct load_options {
  bool verify_weights = false;
};

struct run_options {
  int threads = 0;
  const lamina_runtime_threadpool_t* pool = nullptr;
};

class model {
 public:
  explicit model(const std::string& path, const load_options& options = {}) {
    const lamina_model_options_t given = of(options);
    lamina_model_t loaded = nullptr;
    check(lamina_model_load(&loaded, path.c_str(), &given));
    model_.reset(loaded);
  }
  // A file in memory, aligned to 64 bytes, which must outlive the model.
  model(const void* file, std::size_t size, const load_options& options = {}) {
    const lamina_model_options_t given = of(options);
    lamina_model_t loaded = nullptr;
    check(lamina_model_load_memory(&loaded, file, size, &given));
    model_.reset(loaded);
  }

  std::vector<tensor> inputs() const { return described(lamina_model_input_count(model_.get()), lamina_model_input); }
  std::vector<tensor> outputs() const { return described(lamina_model_output_count(model_.get()), lamina_model_output); }
  // For each list of input shapes that the model was exported for.
  std::size_t variant_count() const { return lamina_model_variant_count(model_.get()); }
  std::vector<tensor> inputs(std::size_t variant) const {
    return described(lamina_model_input_count(model_.get()),
                     [&](const_lamina_model_t of, std::size_t i, lamina_runtime_tensor_t* to) {
                       return lamina_model_variant_input(of, variant, i, to);
                     });
  }
  std::vector<tensor> outputs(std::size_t variant) const {
    return described(lamina_model_output_count(model_.get()),
                     [&](const_lamina_model_t of, std::size_t i, lamina_runtime_tensor_t* to) {
                       return lamina_model_variant_output(of, variant, i, to);
                     });
  }
  std::string isa() const { return lamina_model_isa(model_.get()); }

  // Tensors in the order of inputs() and outputs(), with data.
  void run(const std::vector<tensor>& inputs, const std::vector<tensor>& outputs, const run_options& options = {}) const {
    const std::vector<lamina_runtime_tensor_t> sources = raw(inputs), destinations = raw(outputs);
    const lamina_run_options_t given = {sizeof(lamina_run_options_t), options.threads, options.pool};
    check(lamina_model_run(model_.get(), sources.data(), sources.size(), destinations.data(), destinations.size(), &given));
  }

 private:
  static lamina_model_options_t of(const load_options& options) {
    return {sizeof(lamina_model_options_t), options.verify_weights ? 1 : 0};
  }
  template <typename Describe>
  std::vector<tensor> described(std::size_t count, const Describe& describe) const {
    std::vector<tensor> tensors;
    for (std::size_t i = 0; i < count; ++i) {
      lamina_runtime_tensor_t raw;
      check(describe(model_.get(), i, &raw));
      tensors.push_back(
          {raw.name, raw.dtype, dims(raw.dims, raw.dims + raw.ndims), dims(raw.strides, raw.strides + raw.ndims)});
    }
    return tensors;
  }
  static std::vector<lamina_runtime_tensor_t> raw(const std::vector<tensor>& tensors) {
    std::vector<lamina_runtime_tensor_t> all;
    for (const tensor& each : tensors)
      all.push_back({each.name.c_str(), each.dtype, static_cast<int>(each.shape.size()), each.shape.data(),
                     each.strides.empty() ? nullptr : each.strides.data(), each.data});
    return all;
  }

  struct release {
    void operator()(lamina_model_t model) const { lamina_model_destroy(model); }
  };
  std::unique_ptr<lamina_model, release> model_;
};

}  // namespace runtime
}  // namespace lamina

#endif
