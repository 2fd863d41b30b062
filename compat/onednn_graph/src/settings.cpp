// Process-wide settings. Caches and dumps are lamina's; the default floating-point math mode, verbosity and version are the
// real library's, if it is loaded.
#include <graph/lamina.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "boundary.h"
#include "onednn.h"
#include "real_library.h"
#include "refusals.h"
#include "vocabulary.h"

namespace {

// The largest cache capacity that oneDNN reports, in MiB: the size of the address space.
constexpr size_t kMaxMebibytes = SIZE_MAX >> 20;

// Values for the case that no real library is loaded.
std::atomic<int> default_mode{dnnl_fpmath_mode_strict};
std::atomic<size_t> gpu_capacity{0};

}  // namespace

using namespace onednn_graph;

extern "C" {

dnnl_status_t dnnl_graph_get_compiled_partition_cache_capacity(int* capacity) {
  return any_null(capacity) ? dnnl_invalid_arguments : status_of(lamina_graph_get_compiled_partition_cache_capacity(capacity));
}

dnnl_status_t dnnl_graph_set_compiled_partition_cache_capacity(int capacity) {
  return status_of(lamina_graph_set_compiled_partition_cache_capacity(capacity));
}

dnnl_status_t dnnl_graph_set_constant_tensor_cache(int flag) {
  if (flag < 0) return dnnl_invalid_arguments;
  const lamina_status_t status = lamina_graph_set_constant_tensor_cache_capacity(lamina_cpu, SIZE_MAX);
  return status_of(status == lamina_success ? lamina_graph_set_constant_tensor_cache(flag) : status);
}

dnnl_status_t dnnl_graph_get_constant_tensor_cache(int* flag) {
  return any_null(flag) ? dnnl_invalid_arguments : status_of(lamina_graph_get_constant_tensor_cache(flag));
}

// A capacity of 0 disables the cache. On a GPU nothing is kept, for any capacity.
dnnl_status_t dnnl_graph_set_constant_tensor_cache_capacity(dnnl_engine_kind_t eng_kind, size_t size) {
  if (number_of(eng_kind) == dnnl_gpu) {
    gpu_capacity = size;
    return dnnl_success;
  }
  if (number_of(eng_kind) != dnnl_cpu) return dnnl_invalid_arguments;
  const lamina_status_t status = lamina_graph_set_constant_tensor_cache_capacity(lamina_cpu, size);
  return status_of(status == lamina_success ? lamina_graph_set_constant_tensor_cache(size > 0 ? 1 : 0) : status);
}

dnnl_status_t dnnl_graph_get_constant_tensor_cache_capacity(dnnl_engine_kind_t eng_kind, size_t* size) {
  const int kind = number_of(eng_kind);
  if (any_null(size) || (kind != dnnl_cpu && kind != dnnl_gpu)) return dnnl_invalid_arguments;
  *size = std::min<size_t>(gpu_capacity, kMaxMebibytes);
  if (kind == dnnl_gpu) return dnnl_success;
  int is_on = 0;
  lamina_graph_get_constant_tensor_cache(&is_on);
  *size = 0;
  if (is_on == 0) return dnnl_success;
  const lamina_status_t status = lamina_graph_get_constant_tensor_cache_capacity(lamina_cpu, size);
  *size = std::min(*size, kMaxMebibytes);
  return status_of(status);
}

dnnl_status_t dnnl_graph_set_dump_mode(unsigned modes) {
  if ((modes & ~kDumpModes) != 0) return dnnl_invalid_arguments;
  return status_of(lamina_graph_set_dump_mode(static_cast<lamina_graph_dump_mode_t>(modes)));
}

dnnl_status_t dnnl_get_default_fpmath_mode(dnnl_fpmath_mode_t* mode) {
  if (any_null(mode)) return dnnl_invalid_arguments;
  if (const RealLibrary* const real = real_library()) return real->get_default_fpmath_mode(mode);
  set_number(*mode, default_mode);
  return dnnl_success;
}

dnnl_status_t dnnl_set_default_fpmath_mode(dnnl_fpmath_mode_t mode) {
  const int number = number_of(mode);
  if (number < dnnl_fpmath_mode_strict || number > kFpmathTf32) return dnnl_invalid_arguments;
  if (const RealLibrary* const real = real_library()) return real->set_default_fpmath_mode(mode);
  default_mode = number;
  return dnnl_success;
}

dnnl_status_t dnnl_set_verbose(int level) {
  if (const RealLibrary* const real = real_library()) {
    if (const dnnl_status_t status = real->set_verbose(level); status != dnnl_success) return status;
  }
  set_refusals_told(level > 0);
  return status_of(lamina_set_verbose(level));
}

const dnnl_version_t* dnnl_version(void) {
  if (const RealLibrary* const real = real_library()) return real->version();
  static const dnnl_version_t version = {kMajor, kMinor, 0, "lamina", DNNL_RUNTIME_OMP, DNNL_RUNTIME_NONE};
  return &version;
}

}  // extern "C"
