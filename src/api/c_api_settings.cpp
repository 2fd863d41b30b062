// Process-wide settings: verbose output, dumps, caches, and the mode of new graphs.
#include <atomic>
#include <limits>

#include "api/boundary.h"
#include "api/convert.h"
#include "compiler/compile_cache.h"
#include "compiler/constant_cache.h"
#include "compiler/verbose.h"

namespace lamina::api {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;

std::atomic<FpMathMode> default_mode{FpMathMode::strict};

void require_cpu(const char* function_name, lamina_engine_kind_t kind) {
  if (checked(kind) != EngineKind::cpu)
    throw Error(Status::invalid_arguments, join(function_name, ": kind is ", kind == lamina_gpu ? "gpu" : "any",
                                                ", allowed is cpu: only CPU engines cache constants"));
}

}  // namespace
}  // namespace lamina::api

using namespace lamina::api;
using lamina::Error;
using lamina::join;
using lamina::Status;

extern "C" {

lamina_status_t lamina_set_verbose(int level) {
  return guarded([&, function_name = __func__] {
    constexpr int kMost = lamina::compiler::kMaxVerbose;
    if (level < 0 || level > kMost)
      throw Error(Status::invalid_arguments, join(function_name, ": level is ", level, ", allowed is 0 to ", kMost));
    lamina::compiler::set_verbosity(level);
  });
}

lamina_status_t lamina_set_default_fpmath_mode(lamina_fpmath_mode_t mode) {
  return guarded([&] { default_mode = checked(mode); });
}

lamina_status_t lamina_get_default_fpmath_mode(lamina_fpmath_mode_t* mode) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(mode);
    *mode = static_cast<lamina_fpmath_mode_t>(default_mode.load());
  });
}

lamina_status_t lamina_graph_set_dump_mode(lamina_graph_dump_mode_t modes) {
  return guarded([&, function_name = __func__] {
    const auto bits = static_cast<unsigned>(modes);
    constexpr unsigned kGraph = lamina_graph_dump_mode_graph, kSubgraph = lamina_graph_dump_mode_subgraph;
    if ((bits & ~(kGraph | kSubgraph)) != 0)
      throw Error(Status::invalid_arguments,
                  join(function_name, ": modes is ", bits, ", allowed is none, graph, subgraph or both of these"));
    lamina::compiler::set_dumps((bits & kGraph) != 0, (bits & kSubgraph) != 0);
  });
}

lamina_status_t lamina_graph_set_compiled_partition_cache_capacity(int capacity) {
  return guarded([&, function_name = __func__] {
    if (capacity < 0)
      throw Error(Status::invalid_arguments, join(function_name, ": capacity is ", capacity, ", allowed is 0 or more"));
    lamina::compiler::CompileCache::instance().set_capacity(static_cast<size_t>(capacity));
  });
}

lamina_status_t lamina_graph_get_compiled_partition_cache_capacity(int* capacity) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(capacity);
    *capacity = static_cast<int>(lamina::compiler::CompileCache::instance().capacity());
  });
}

lamina_status_t lamina_graph_set_constant_tensor_cache(int flag) {
  return guarded([&, function_name = __func__] {
    if (flag < 0) throw Error(Status::invalid_arguments, join(function_name, ": flag is ", flag, ", allowed is 0 or more"));
    lamina::compiler::set_constant_cache(flag > 0);
  });
}

lamina_status_t lamina_graph_get_constant_tensor_cache(int* flag) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(flag);
    *flag = lamina::compiler::has_constant_cache() ? 1 : 0;
  });
}

lamina_status_t lamina_graph_set_constant_tensor_cache_capacity(lamina_engine_kind_t kind, size_t mebibytes) {
  return guarded([&, function_name = __func__] {
    require_cpu(function_name, kind);
    const bool is_limit = mebibytes <= lamina::compiler::kNoLimit / kMebibyte;
    lamina::compiler::set_constant_cache_capacity(is_limit ? mebibytes * kMebibyte : lamina::compiler::kNoLimit);
  });
}

lamina_status_t lamina_graph_get_constant_tensor_cache_capacity(lamina_engine_kind_t kind, size_t* mebibytes) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(mebibytes);
    require_cpu(function_name, kind);
    const size_t bytes = lamina::compiler::constant_cache_capacity();
    *mebibytes = bytes == lamina::compiler::kNoLimit ? SIZE_MAX : bytes / kMebibyte;
  });
}

}  // extern "C"
