// The functions of graph/lamina_runtime.h. No exception leaves them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/thread_pool.h"
#include "graph/lamina_runtime.h"
#include "interface/call_status.h"
#include "interface/per_thread.h"
#include "interface/status.h"
#include "runtime/model.h"

using lamina::Dims;
using lamina::Error;
using lamina::ExportedModel;
using lamina::join;
using lamina::Status;
using lamina::status_of_call;
using lamina::runtime::Model;
using lamina::runtime::ModelFile;

struct lamina_model {
  std::unique_ptr<const Model> model;
};

namespace {

// A fixed buffer: recording that memory ran out must not allocate memory.
struct LastError {
  char text[4096];
};
thread_local LastError last_error{};

// Names in a sentence may come from a damaged file: control characters become question marks.
void remember(std::string_view sentence) noexcept {
  const size_t length = std::min(sentence.size(), sizeof last_error.text - 1);
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  std::replace_copy_if(sentence.begin(), sentence.begin() + static_cast<std::ptrdiff_t>(length), last_error.text, is_control,
                       '?');
  last_error.text[length] = '\0';
}

template <typename Body>
lamina_runtime_status_t guarded(Body&& body) noexcept {
  return static_cast<lamina_runtime_status_t>(status_of_call(std::forward<Body>(body), remember));
}

[[noreturn]] void refuse(const std::string& why) { throw Error(Status::invalid_arguments, why); }

void require(bool holds, const char* function, const char* what) {
  if (!holds) refuse(join(function, ": ", what));
}

bool verifies_weights(const lamina_model_options_t* options, const char* function) {
  require(options == nullptr || options->size == sizeof(lamina_model_options_t), function,
          "options.size is not that of lamina_model_options_t");
  return options != nullptr && options->verify_weights != 0;
}

void load(lamina_model_t* model, const std::string& name, const lamina_model_options_t* options, const char* function,
          const std::function<std::unique_ptr<const ModelFile>()>& open) {
  require(model != nullptr, function, "argument model is null");
  const bool verifies = verifies_weights(options, function);
  try {
    *model = new lamina_model{std::make_unique<const Model>(open(), verifies)};
  } catch (const Error& error) {
    throw Error(error.status(), join(name, ": ", error.what()));
  }
}

void describe(const std::vector<ExportedModel::Tensor>& tensors, size_t index, lamina_runtime_tensor_t* to,
              const char* function) {
  require(to != nullptr, function, "argument tensor is null");
  if (index >= tensors.size()) refuse(join(function, ": index is ", index, ", the model has ", tensors.size()));
  const ExportedModel::Tensor& tensor = tensors[index];
  *to = {tensor.name.c_str(),
         static_cast<lamina_runtime_data_type_t>(tensor.dtype),
         static_cast<int>(tensor.shape.size()),
         tensor.shape.data(),
         tensor.strides.data(),
         nullptr};
}

const ExportedModel::Variant& variant_of(const_lamina_model_t model, size_t variant, const char* function) {
  require(model != nullptr, function, "argument model is null");
  const std::vector<ExportedModel::Variant>& variants = model->model->variants();
  if (variant >= variants.size()) refuse(join(function, ": variant is ", variant, ", the model has ", variants.size()));
  return variants[variant];
}

std::string text_of(const lamina_runtime_tensor_t& tensor) {
  const auto dtype = static_cast<lamina::DataType>(tensor.dtype);
  std::string text = lamina::is_data_type(dtype) ? std::string(name_of(dtype)) : join("type ", static_cast<int>(dtype));
  if (tensor.ndims < 0 || tensor.ndims > lamina::kMaxRank || (tensor.ndims > 0 && tensor.dims == nullptr))
    return join(text, " of rank ", tensor.ndims);
  return text + lamina::describe(Dims(tensor.dims, tensor.dims + tensor.ndims));
}

// Whether a given tensor has the strides of the model's. Those of dims with one entry do not matter.
bool has_strides(const lamina_runtime_tensor_t& given, const ExportedModel::Tensor& tensor) {
  const Dims dense = given.strides == nullptr ? lamina::dense_strides(tensor.shape) : Dims();
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    const int64_t stride = given.strides == nullptr ? dense[d] : given.strides[d];
    if (tensor.shape[d] != 1 && stride != tensor.strides[d]) return false;
  }
  return true;
}

bool has_shape(const lamina_runtime_tensor_t& given, const ExportedModel::Tensor& tensor) {
  return static_cast<size_t>(given.ndims) == tensor.shape.size() && (given.ndims == 0 || given.dims != nullptr) &&
         std::equal(tensor.shape.begin(), tensor.shape.end(), given.dims);
}

// The variant with the shapes of the given inputs; if there is one variant alone, that one.
size_t variant_for(const Model& model, const lamina_runtime_tensor_t* inputs) {
  const std::vector<ExportedModel::Variant>& variants = model.variants();
  for (size_t v = 0; v < variants.size(); ++v) {
    size_t same = 0;
    while (same < variants[v].inputs.size() && has_shape(inputs[same], variants[v].inputs[same])) ++same;
    if (same == variants[v].inputs.size()) return v;
  }
  if (variants.size() == 1) return 0;
  std::string given, allowed;
  for (size_t i = 0; i < model.inputs().size(); ++i) given += (i == 0 ? "" : ", ") + text_of(inputs[i]);
  constexpr size_t kMostNamed = 8;
  for (size_t v = 0; v < std::min(variants.size(), kMostNamed); ++v) {
    allowed += v == 0 ? "" : "; ";
    for (const ExportedModel::Tensor& tensor : variants[v].inputs)
      allowed += (&tensor == variants[v].inputs.data() ? "" : ", ") + lamina::describe(tensor.shape);
  }
  refuse(join("the inputs are ", given, ", the model has shapes ", allowed, variants.size() > kMostNamed ? ", ..." : ""));
}

void* memory_of(const lamina_runtime_tensor_t& given, const ExportedModel::Tensor& tensor, const char* role) {
  const auto dtype = static_cast<lamina_runtime_data_type_t>(tensor.dtype);
  if (given.dtype != dtype || !has_shape(given, tensor))
    refuse(join(role, " ", tensor.name, " is ", text_of(given), ", the model has ", name_of(tensor.dtype),
                lamina::describe(tensor.shape)));
  const bool is_empty = std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end();
  if (is_empty) return given.data;
  if (!has_strides(given, tensor))
    refuse(join(role, " ", tensor.name, " has other strides, the model has ", lamina::describe(tensor.strides)));
  if (given.data == nullptr) refuse(join(role, " ", tensor.name, " has null data"));
  return given.data;
}

void check_count(size_t given, size_t count, const char* role) {
  if (given != count) refuse(join("lamina_model_run: ", given, " ", role, " are given, the model has ", count));
}

void run(const Model& model, const lamina_runtime_tensor_t* inputs, size_t input_count, const lamina_runtime_tensor_t* outputs,
         size_t output_count, const lamina_run_options_t* options) {
  constexpr const char* kFunction = "lamina_model_run";
  check_count(input_count, model.inputs().size(), "inputs");
  check_count(output_count, model.outputs().size(), "outputs");
  require((inputs != nullptr || input_count == 0) && (outputs != nullptr || output_count == 0), kFunction,
          "an array of tensors is null");
  require(options == nullptr || options->size == sizeof(lamina_run_options_t), kFunction,
          "options.size is not that of lamina_run_options_t");
  const lamina_runtime_threadpool_t* const given = options == nullptr ? nullptr : options->pool;
  require(given == nullptr || (given->size == sizeof(lamina_runtime_threadpool_t) && given->num_threads != nullptr &&
                               given->in_parallel != nullptr && given->parallel_for != nullptr),
          kFunction, "the pool has another size, or a null function");
  auto& sources = lamina::PerThread<lamina_model, std::vector<const void*>>::get();
  auto& destinations = lamina::PerThread<lamina_model, std::vector<void*>>::get();
  sources.clear();
  destinations.clear();
  const size_t number = variant_for(model, inputs);
  const ExportedModel::Variant& variant = model.variants()[number];
  for (size_t i = 0; i < input_count; ++i) sources.push_back(memory_of(inputs[i], variant.inputs[i], "input"));
  for (size_t o = 0; o < output_count; ++o) destinations.push_back(memory_of(outputs[o], variant.outputs[o], "output"));
  lamina::ThreadPool pool;
  if (given != nullptr) pool = {given->user, given->num_threads, given->in_parallel, given->parallel_for};
  model.run(number, sources, destinations, options == nullptr ? 0 : options->threads, given == nullptr ? nullptr : &pool);
}

}  // namespace

extern "C" {

const char* lamina_runtime_last_error(void) { return last_error.text; }

const char* lamina_runtime_version(void) { return LAMINA_VERSION; }

lamina_runtime_status_t lamina_model_load(lamina_model_t* model, const char* path, const lamina_model_options_t* options) {
  return guarded([&] {
    require(path != nullptr, "lamina_model_load", "argument path is null");
    load(model, path, options, "lamina_model_load", [path] { return std::make_unique<const ModelFile>(std::string(path)); });
  });
}

lamina_runtime_status_t lamina_model_load_memory(lamina_model_t* model, const void* file, size_t size,
                                                 const lamina_model_options_t* options) {
  return guarded([&] {
    constexpr const char* kFunction = "lamina_model_load_memory";
    require(file != nullptr, kFunction, "argument file is null");
    require(reinterpret_cast<uintptr_t>(file) % 64 == 0, kFunction, "the memory of the file is not aligned to 64 bytes");
    const std::string_view bytes(static_cast<const char*>(file), size);
    load(model, "the model in memory", options, kFunction, [bytes] { return std::make_unique<const ModelFile>(bytes); });
  });
}

void lamina_model_destroy(lamina_model_t model) { delete model; }

size_t lamina_model_input_count(const_lamina_model_t model) { return model == nullptr ? 0 : model->model->inputs().size(); }
size_t lamina_model_output_count(const_lamina_model_t model) { return model == nullptr ? 0 : model->model->outputs().size(); }

lamina_runtime_status_t lamina_model_input(const_lamina_model_t model, size_t index, lamina_runtime_tensor_t* tensor) {
  return guarded([&] {
    require(model != nullptr, "lamina_model_input", "argument model is null");
    describe(model->model->inputs(), index, tensor, "lamina_model_input");
  });
}

lamina_runtime_status_t lamina_model_output(const_lamina_model_t model, size_t index, lamina_runtime_tensor_t* tensor) {
  return guarded([&] {
    require(model != nullptr, "lamina_model_output", "argument model is null");
    describe(model->model->outputs(), index, tensor, "lamina_model_output");
  });
}

size_t lamina_model_variant_count(const_lamina_model_t model) { return model == nullptr ? 0 : model->model->variants().size(); }

lamina_runtime_status_t lamina_model_variant_input(const_lamina_model_t model, size_t variant, size_t index,
                                                   lamina_runtime_tensor_t* tensor) {
  return guarded([&] {
    describe(variant_of(model, variant, "lamina_model_variant_input").inputs, index, tensor, "lamina_model_variant_input");
  });
}

lamina_runtime_status_t lamina_model_variant_output(const_lamina_model_t model, size_t variant, size_t index,
                                                    lamina_runtime_tensor_t* tensor) {
  return guarded([&] {
    describe(variant_of(model, variant, "lamina_model_variant_output").outputs, index, tensor, "lamina_model_variant_output");
  });
}

const char* lamina_model_isa(const_lamina_model_t model) { return model == nullptr ? "" : model->model->isa().c_str(); }

lamina_runtime_status_t lamina_model_run(const_lamina_model_t model, const lamina_runtime_tensor_t* inputs, size_t input_count,
                                         const lamina_runtime_tensor_t* outputs, size_t output_count,
                                         const lamina_run_options_t* options) {
  return guarded([&] {
    require(model != nullptr, "lamina_model_run", "argument model is null");
    run(*model->model, inputs, input_count, outputs, output_count, options);
  });
}

}  // extern "C"
