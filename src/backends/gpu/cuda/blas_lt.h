// Matrix products by cuBLASLt, which is opened at run time if LAMINA_CUBLASLT=1. It is off by default, because it selects
// another kernel, with another order of summation, for another number of rows; a row's bits would depend on its batch. The
// generated program runs the products that it does not support.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "backends/gpu/cuda/api.h"
#include "backends/gpu/step_runner.h"
#include "kernels/matmul_stack.h"

namespace lamina::gpu::cuda {

class Context;

// The parts of cublasLt.h that lamina calls. Names, values and semantics are NVIDIA's. Descriptors are opaque.
using LtStatus = int;
using LtHandle = struct LtHandleOpaque*;
using LtLayout = struct LtLayoutOpaque*;
using LtDescription = struct LtDescriptionOpaque*;
using LtPreference = struct LtPreferenceOpaque*;
struct LtAlgorithm {
  uint64_t data[8];
};
struct LtHeuristic {
  LtAlgorithm algorithm;
  size_t workspace_bytes;
  LtStatus state;
  float waves;
  int reserved[4];
};

#define LAMINA_CUBLASLT_FUNCTIONS(F)                                                                                         \
  F(LtStatus, cublasLtCreate, create, (LtHandle*))                                                                           \
  F(LtStatus, cublasLtDestroy, destroy, (LtHandle))                                                                          \
  F(const char*, cublasLtGetStatusName, status_name, (LtStatus))                                                             \
  F(LtStatus, cublasLtMatrixLayoutCreate, create_layout, (LtLayout*, int, uint64_t, uint64_t, int64_t))                      \
  F(LtStatus, cublasLtMatrixLayoutDestroy, destroy_layout, (LtLayout))                                                       \
  F(LtStatus, cublasLtMatrixLayoutSetAttribute, set_layout, (LtLayout, int, const void*, size_t))                            \
  F(LtStatus, cublasLtMatmulDescCreate, create_description, (LtDescription*, int, int))                                      \
  F(LtStatus, cublasLtMatmulDescDestroy, destroy_description, (LtDescription))                                               \
  F(LtStatus, cublasLtMatmulDescSetAttribute, set_description, (LtDescription, int, const void*, size_t))                    \
  F(LtStatus, cublasLtMatmulPreferenceCreate, create_preference, (LtPreference*))                                            \
  F(LtStatus, cublasLtMatmulPreferenceDestroy, destroy_preference, (LtPreference))                                           \
  F(LtStatus, cublasLtMatmulPreferenceSetAttribute, set_preference, (LtPreference, int, const void*, size_t))                \
  F(LtStatus, cublasLtMatmulAlgoGetHeuristic, heuristic,                                                                     \
    (LtHandle, LtDescription, LtLayout, LtLayout, LtLayout, LtLayout, LtPreference, int, LtHeuristic*, int*))                \
  F(LtStatus, cublasLtMatmul, multiply,                                                                                      \
    (LtHandle, LtDescription, const void*, const void*, LtLayout, const void*, LtLayout, const void*, const void*, LtLayout, \
     void*, LtLayout, const LtAlgorithm*, void*, size_t, CUstream))

#define LAMINA_MEMBER(result, symbol, member, parameters) result(*member) parameters = nullptr;
struct LtApi {
  LAMINA_CUBLASLT_FUNCTIONS(LAMINA_MEMBER)
};
#undef LAMINA_MEMBER

bool asks_for_blas_lt();  // read at each call, so that a program can enable it for some graphs

// The process's library, opened once. Null if there is none or a function is missing; `why` then says what was tried.
const LtApi* lt_api(std::string& why);

// A column-major matrix as stored, in elements. If `transposed`, its transpose is the factor.
struct LtMatrix {
  int type = 0;  // a cudaDataType
  int64_t rows = 0, columns = 0, leading = 0, batch_stride = 0;
  bool transposed = false;
  bool operator==(const LtMatrix&) const = default;
};

// d = a x b in column-major order. A row-major matrix is the transpose of a column-major one, so dst = src x weights becomes
// dst^T = weights^T x src^T: `a` is the weights, `b` is src.
struct LtProblem {
  LtMatrix a, b, d;
  int batch = 1;
  int compute = 0;  // a cublasComputeType_t
  bool operator==(const LtProblem&) const = default;
};

// Nothing for products that the generated program runs: with a bias, more than one batch dim, matrices that are dense along
// neither axis, empty sums, or types other than f32, f16 and bf16 with dst of the same type or f32.
std::optional<LtProblem> lt_problem(const kernel::MatmulStack& stack);

// The library's handle for a context. Thread-safe.
class BlasLt {
 public:
  BlasLt(const LtApi& api, const DriverApi& driver, std::shared_ptr<const Context> context);
  ~BlasLt();
  BlasLt(const BlasLt&) = delete;
  BlasLt& operator=(const BlasLt&) = delete;

  const LtApi& api() const { return api_; }
  const DriverApi& driver() const { return driver_; }
  const Context& context() const { return *context_; }
  LtHandle handle() const { return handle_; }

 private:
  const LtApi& api_;
  const DriverApi& driver_;
  std::shared_ptr<const Context> context_;
  LtHandle handle_ = nullptr;
};

// Runs the product by the library. Returns `generated` if the library does not support it. The runner also uses `generated`
// for calls with a buffer that is not aligned to 16 bytes.
std::unique_ptr<StepRunner> blas_lt_runner(std::shared_ptr<const BlasLt> library, const kernel::MatmulStack& stack,
                                           std::unique_ptr<StepRunner> generated);

// The seam to it. `open` is called for every product.
class BlasLtProducts final : public StepLibrary {
 public:
  BlasLtProducts(std::function<std::shared_ptr<const BlasLt>()> open, std::shared_ptr<const StepLibrary> generated)
      : open_(std::move(open)), generated_(std::move(generated)) {}
  std::string why_unsupported(const Graph& graph, const Op& op) const override;
  std::unique_ptr<StepRunner> compile(const kernel::LibraryStep& step, const Use& use) const override;

 private:
  std::function<std::shared_ptr<const BlasLt>()> open_;
  std::shared_ptr<const StepLibrary> generated_;
};

}  // namespace lamina::gpu::cuda
