// Layer normalisation by descriptor: builds a graph, compiles it once, and executes it with the caller's workspace.
#include <array>
#include <cstddef>
#include <cstring>

#include "api/boundary.h"
#include "api/convert.h"
#include "api/layer_norm_graph.h"
#include "api/objects.h"
#include "compiler/compile.h"
#include "handles/handle_table.h"
#include "interface/shared_elements.h"

namespace lamina::api {
namespace {

constexpr size_t kAlignment = 64;

class LayerNorm {
 public:
  LayerNorm(const lamina_layer_norm_desc_t& desc, const Backend& backend) : problem_(checked_problem(desc)) {
    const Partition partition = layer_norm_partition(problem_, backend);
    compiled_ = compiler::compile_partition(partition, tensors_of(partition, partition.inputs),
                                            tensors_of(partition, partition.outputs), backend);
    for (const LogicalTensor& input : compiled_->inputs()) {
      if (is_constant(input.id))
        store_from_double(input.dtype, &constants_[input.id - kLayerNormArgs], 0, constant_value(input.id));
    }
  }

  // The executable's workspace plus the bytes to align it.
  size_t workspace_size() const {
    const size_t needed = compiled_->info().workspace_bytes;
    return needed == 0 ? 0 : needed + kAlignment - 1;
  }
  const LayerNormProblem& problem() const { return problem_; }

  bool may_share(lamina_layer_norm_arg_t input, lamina_layer_norm_arg_t output) const {
    return compiled_->may_share(static_cast<uint64_t>(input), static_cast<uint64_t>(output));
  }

  void execute(const lamina_stream& stream, void* const* memory, void* workspace, size_t workspace_size) const {
    ExecutionContext context;
    context.allocator = &stream.allocator;
    if (stream.pool) context.pool = &*stream.pool;
    context.workspace = aligned_workspace(workspace, workspace_size);
    if (stream.device != nullptr)
      throw Error(Status::invalid_arguments, "layer norm: the stream is for a GPU, the layer norm was created for the CPU");
    refuse_forbidden_sharing(memory);
    BoundTensors<kLayerNormArgs + kLayerNormConstants> inputs(compiled_->inputs(),
                                                              [&](uint64_t id) { return memory_of(id, memory); });
    BoundTensors<kLayerNormArgs> outputs(compiled_->outputs(), [&](uint64_t id) { return memory_of(id, memory); });
    compiled_->execute(context, inputs.span(), outputs.span());
  }

 private:
  template <size_t Capacity>
  class BoundTensors {
   public:
    template <typename MemoryOf>
    BoundTensors(const std::vector<LogicalTensor>& tensors, MemoryOf memory_of) : count_(tensors.size()) {
      for (size_t i = 0; i < count_; ++i) bound_[i] = {&tensors[i], memory_of(tensors[i].id)};
    }
    std::span<const compiler::BoundTensor> span() const { return {bound_.data(), count_}; }

   private:
    std::array<compiler::BoundTensor, Capacity> bound_;
    size_t count_;
  };

  static std::vector<LogicalTensor> tensors_of(const Partition& partition, const std::vector<ValueIndex>& values) {
    std::vector<LogicalTensor> tensors;
    for (const ValueIndex value : values) tensors.push_back(partition.graph->tensor(value));
    return tensors;
  }

  void* aligned_workspace(void* workspace, size_t given) const {
    if (workspace == nullptr || workspace_size() == 0) return nullptr;
    if (given < workspace_size()) {
      throw Error(Status::invalid_arguments,
                  join("layer norm: the workspace has ", given, " bytes, ", workspace_size(), " are needed"));
    }
    const auto address = reinterpret_cast<uintptr_t>(workspace);
    return static_cast<std::byte*>(workspace) + ((address + kAlignment - 1) / kAlignment * kAlignment - address);
  }

  void* memory_of(uint64_t id, void* const* memory) const {
    if (is_constant(id)) return const_cast<double*>(&constants_[id - kLayerNormArgs]);
    const LogicalTensor& tensor = *problem_.tensors[id];
    if (memory[id] == nullptr && tensor.span() > 0) {
      throw Error(Status::invalid_arguments,
                  join("layer norm: the memory of argument ", name_of(static_cast<lamina_layer_norm_arg_t>(id)),
                       " is null, but it is ", describe(tensor)));
    }
    return memory[id];
  }

  void refuse_forbidden_sharing(void* const* memory) const {
    const auto& outputs = compiled_->outputs();
    for (size_t o = 0; o < outputs.size(); ++o) {
      const LogicalTensor& output = outputs[o];
      for (const LogicalTensor& input : compiled_->inputs()) {
        if (is_constant(input.id) || (memory[input.id] == memory[output.id] && compiled_->may_share(input.id, output.id)))
          continue;
        if (overlap(input, output, memory)) fail_overlap(input, output, memory);
      }
      for (size_t other = 0; other < o; ++other)
        if (overlap(outputs[other], output, memory)) fail_overlap(outputs[other], output, memory);
    }
  }

  static bool overlap(const LogicalTensor& a, const LogicalTensor& b, void* const* memory) {
    const auto *const start_a = static_cast<const std::byte*>(memory[a.id]), *const start_b =
                                                                                 static_cast<const std::byte*>(memory[b.id]);
    if (start_a == nullptr || start_b == nullptr) return false;
    const auto distance = reinterpret_cast<intptr_t>(start_b) - reinterpret_cast<intptr_t>(start_a);
    if (distance >= a.byte_size() || -distance >= b.byte_size()) return false;  // the common case: disjoint byte ranges
    return tensors_may_overlap(a, start_a, b, start_b);
  }

  [[noreturn]] static void fail_overlap(const LogicalTensor& one, const LogicalTensor& output, void* const* memory) {
    throw Error(Status::invalid_arguments,
                join("layer norm: ", name_of(static_cast<lamina_layer_norm_arg_t>(output.id)),
                     memory[one.id] == memory[output.id] ? " uses the memory of " : " uses memory that overlaps the memory of ",
                     name_of(static_cast<lamina_layer_norm_arg_t>(one.id)), "; allowed is separate memory, or all of src for",
                     " dst and all of diff_dst for diff_src, with the same type and strides"));
  }

  LayerNormProblem problem_;
  std::unique_ptr<const compiler::CompiledPartition> compiled_;
  std::array<double, kLayerNormConstants> constants_{};  // one element each, wide enough for every floating type
};

}  // namespace
}  // namespace lamina::api

struct lamina_layer_norm : lamina::HandleSlot<const lamina::api::LayerNorm> {};

namespace lamina::api {
namespace {

using Handles = HandleTable<lamina_layer_norm>;

const LayerNorm& alive(const char* function_name, const_lamina_layer_norm_t layer_norm) {
  LAMINA_REQUIRE(layer_norm);
  if (!Handles::is_alive(layer_norm)) {
    throw Error(Status::invalid_arguments, join(function_name, ": the layer norm is already destroyed"));
  }
  return *layer_norm->content;
}

void require_argument(const char* function_name, lamina_layer_norm_arg_t arg) {
  const int position = static_cast<int>(arg);
  if (position >= 0 && position < lamina_layer_norm_arg_count) return;
  throw Error(Status::invalid_arguments, join(function_name, ": argument ", position, " does not exist; allowed is 0..",
                                              static_cast<int>(lamina_layer_norm_arg_count) - 1));
}

}  // namespace
}  // namespace lamina::api

using namespace lamina::api;

extern "C" {

lamina_status_t lamina_layer_norm_desc_init_sized(lamina_layer_norm_desc_t* desc, size_t struct_size,
                                                  lamina_layer_norm_pass_t pass) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(desc);
    check_struct_size(struct_size);
    std::memset(static_cast<void*>(desc), 0, struct_size);  // the caller's descriptor may be smaller than this library's
    desc->struct_size = struct_size;
    desc->pass = pass;
    desc->flags = lamina_layer_norm_use_scale | lamina_layer_norm_use_shift;
    if (pass == lamina_layer_norm_backward) desc->flags |= lamina_layer_norm_use_stats;
    desc->epsilon = 1e-5F;
    desc->begin_norm_axis = -1;
  });
}

lamina_status_t lamina_layer_norm_create(lamina_layer_norm_t* layer_norm, const lamina_layer_norm_desc_t* desc,
                                         const_lamina_engine_t engine) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(layer_norm);
    LAMINA_REQUIRE(desc);
    LAMINA_REQUIRE(engine);
    if (engine->kind == lamina::EngineKind::gpu)
      throw lamina::Error(lamina::Status::unimplemented,
                          "layer norm: the engine is a GPU, allowed is the CPU; on a GPU use the ops of the graph interface");
    *layer_norm = Handles::instance().put(std::make_unique<const LayerNorm>(*desc, *engine->backend));
  });
}

lamina_status_t lamina_layer_norm_destroy(lamina_layer_norm_t layer_norm) {
  return guarded([&, function_name = __func__] {
    if (layer_norm == nullptr || Handles::instance().destroy(layer_norm)) return;
    throw lamina::Error(lamina::Status::invalid_arguments,
                        lamina::join(function_name, ": the layer norm is already destroyed"));
  });
}

lamina_status_t lamina_layer_norm_get_workspace_size(const_lamina_layer_norm_t layer_norm, size_t* size) {
  return guarded([&, function_name = __func__] {
    const LayerNorm& norm = alive(function_name, layer_norm);
    LAMINA_REQUIRE(size);
    *size = norm.workspace_size();
  });
}

lamina_status_t lamina_layer_norm_query(const_lamina_layer_norm_t layer_norm, lamina_layer_norm_arg_t arg,
                                        lamina_graph_logical_tensor_t* tensor) {
  return guarded([&, function_name = __func__] {
    const LayerNorm& norm = alive(function_name, layer_norm);
    require_argument(function_name, arg);
    LAMINA_REQUIRE(tensor);
    *tensor = to_c(norm.problem()[arg].value_or(lamina::LogicalTensor{}));
  });
}

lamina_status_t lamina_layer_norm_may_share(const_lamina_layer_norm_t layer_norm, lamina_layer_norm_arg_t input,
                                            lamina_layer_norm_arg_t output, uint8_t* may_share) {
  return guarded([&, function_name = __func__] {
    const LayerNorm& norm = alive(function_name, layer_norm);
    require_argument(function_name, input);
    require_argument(function_name, output);
    LAMINA_REQUIRE(may_share);
    *may_share = norm.may_share(input, output) ? 1 : 0;
  });
}

lamina_status_t lamina_layer_norm_execute(const_lamina_layer_norm_t layer_norm, lamina_stream_t stream, void* const* memory,
                                          void* workspace, size_t workspace_size) {
  return guarded([&, function_name = __func__] {
    const LayerNorm& norm = alive(function_name, layer_norm);
    LAMINA_REQUIRE(stream);
    LAMINA_REQUIRE(memory);
    norm.execute(*stream, memory, workspace, workspace_size);
  });
}

}  // extern "C"
