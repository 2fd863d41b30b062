#include "backends/gpu/cuda/blas_lt.h"

#include <cstdlib>
#include <limits>
#include <string_view>

#include "backends/gpu/cuda/context.h"
#include "backends/gpu/shared_object.h"
#include "interface/status.h"

namespace lamina::gpu::cuda {

namespace {

constexpr int kReal32 = 0, kReal16 = 2, kBrain16 = 14;                  // cudaDataType
constexpr int kCompute32 = 68, kCompute32Pedantic = 69;                 // cublasComputeType_t
constexpr int kBatchCount = 5, kBatchOffset = 6;                        // cublasLtMatrixLayoutAttribute_t
constexpr int kTransposeA = 3, kTransposeB = 4;                         // cublasLtMatmulDescAttributes_t
constexpr int kReductionSchemes = 3, kAlignmentA = 5, kAlignmentD = 8;  // cublasLtMatmulPreferenceAttributes_t
constexpr uintptr_t kAlignment = 16;

void check(const LtApi& api, LtStatus status, const char* function) {
  if (status != 0) throw Error(Status::runtime_error, join("cuBLASLt: ", function, " failed with ", api.status_name(status)));
}

std::optional<int> type_of(DataType dtype) {
  switch (dtype) {
    case DataType::f32: return kReal32;
    case DataType::f16: return kReal16;
    case DataType::bf16: return kBrain16;
    default: return std::nullopt;
  }
}

// Describes a row-major matrix as its transpose in column-major order. The stride of an axis with one entry is ignored.
std::optional<LtMatrix> in_columns(const kernel::MatrixStack& stack, int64_t rows, int64_t columns) {
  const std::optional<int> type = type_of(stack.dtype);
  if (!type) return std::nullopt;
  const int64_t batch_stride = stack.batch_strides.empty() ? 0 : stack.batch_strides[0];
  if ((columns == 1 || stack.column_stride == 1) && (rows == 1 || stack.row_stride >= columns))
    return LtMatrix{*type, columns, rows, rows == 1 ? columns : stack.row_stride, batch_stride, false};
  if ((rows == 1 || stack.row_stride == 1) && (columns == 1 || stack.column_stride >= rows))
    return LtMatrix{*type, rows, columns, columns == 1 ? rows : stack.column_stride, batch_stride, true};
  return std::nullopt;
}

// A descriptor that is destroyed at the end of the scope.
template <typename T>
class Owned {
 public:
  explicit Owned(LtStatus (*destroy)(T)) : destroy_(destroy) {}
  ~Owned() {
    if (value_ != nullptr) destroy_(value_);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  T get() const { return value_; }
  T* place() { return &value_; }

 private:
  LtStatus (*destroy_)(T);
  T value_ = nullptr;
};

class BlasLtRunner final : public StepRunner {
 public:
  BlasLtRunner(std::shared_ptr<const BlasLt> library, const LtProblem& problem, std::unique_ptr<StepRunner> generated)
      : library_(std::move(library)),
        generated_(std::move(generated)),
        description_(library_->api().destroy_description),
        a_(library_->api().destroy_layout),
        b_(library_->api().destroy_layout),
        d_(library_->api().destroy_layout) {
    const LtApi& api = library_->api();
    check(api, api.create_description(description_.place(), problem.compute, kReal32), "cublasLtMatmulDescCreate");
    set_transposed(kTransposeA, problem.a);
    set_transposed(kTransposeB, problem.b);
    make_layout(a_, problem.a, problem.batch);
    make_layout(b_, problem.b, problem.batch);
    make_layout(d_, problem.d, problem.batch);
  }

  // Whether the library has an algorithm that neither splits a sum among work-groups nor needs scratch memory.
  bool find_algorithm() {
    const LtApi& api = library_->api();
    Owned<LtPreference> preference(api.destroy_preference);
    check(api, api.create_preference(preference.place()), "cublasLtMatmulPreferenceCreate");
    const auto prefer = [&](int what, uint32_t value) {
      check(api, api.set_preference(preference.get(), what, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute");
    };
    prefer(kReductionSchemes, 0);
    for (int what = kAlignmentA; what <= kAlignmentD; ++what) prefer(what, kAlignment);
    LtHeuristic found{};
    int count = 0;
    const CurrentContext current(library_->driver(), library_->context().get());
    const LtStatus status = api.heuristic(library_->handle(), description_.get(), a_.get(), b_.get(), d_.get(), d_.get(),
                                          preference.get(), 1, &found, &count);
    algorithm_ = found.algorithm;
    return status == 0 && count == 1 && found.state == 0 && found.workspace_bytes == 0;
  }

  std::unique_ptr<StepRunner> give_back_generated() { return std::move(generated_); }

  // Buffers: src, weights, possibly an absent bias, dst.
  void run(void* stream, std::span<const BufferView> buffers, BufferView scratch) const override {
    const auto address = [](const BufferView& view) {
      return reinterpret_cast<uintptr_t>(view.memory) + static_cast<uintptr_t>(view.offset);
    };
    const uintptr_t src = address(buffers[0]), weights = address(buffers[1]), dst = address(buffers.back());
    if ((src | weights | dst) % kAlignment != 0) return generated_->run(stream, buffers, scratch);
    const auto pointer = [](uintptr_t at) { return reinterpret_cast<void*>(at); };
    const float one = 1, zero = 0;
    const LtApi& api = library_->api();
    const CurrentContext current(library_->driver(), library_->context().get());
    check(api,
          api.multiply(library_->handle(), description_.get(), &one, pointer(weights), a_.get(), pointer(src), b_.get(), &zero,
                       pointer(dst), d_.get(), pointer(dst), d_.get(), &algorithm_, nullptr, 0,
                       library_->context().stream(stream)),
          "cublasLtMatmul");
  }
  size_t scratch_bytes() const override { return generated_->scratch_bytes(); }
  const KernelSource& source() const override { return generated_->source(); }
  std::string schedule_name() const override { return "cuBLASLt"; }
  std::string text() const override { return "by cuBLASLt; where a buffer is not aligned, " + generated_->text(); }
  bool from_cache() const override { return true; }  // the first call that needs the generated program compiles it

 private:
  void set_transposed(int what, const LtMatrix& matrix) {
    const int32_t operation = matrix.transposed ? 1 : 0;
    const LtApi& api = library_->api();
    check(api, api.set_description(description_.get(), what, &operation, sizeof operation), "cublasLtMatmulDescSetAttribute");
  }
  void make_layout(Owned<LtLayout>& layout, const LtMatrix& matrix, int32_t batch) {
    const LtApi& api = library_->api();
    check(api,
          api.create_layout(layout.place(), matrix.type, static_cast<uint64_t>(matrix.rows),
                            static_cast<uint64_t>(matrix.columns), matrix.leading),
          "cublasLtMatrixLayoutCreate");
    check(api, api.set_layout(layout.get(), kBatchCount, &batch, sizeof batch), "cublasLtMatrixLayoutSetAttribute");
    check(api, api.set_layout(layout.get(), kBatchOffset, &matrix.batch_stride, sizeof matrix.batch_stride),
          "cublasLtMatrixLayoutSetAttribute");
  }

  std::shared_ptr<const BlasLt> library_;
  std::unique_ptr<StepRunner> generated_;
  Owned<LtDescription> description_;
  Owned<LtLayout> a_, b_, d_;
  LtAlgorithm algorithm_{};
};

}  // namespace

bool asks_for_blas_lt() {
  const char* const asked = std::getenv("LAMINA_CUBLASLT");
  return asked != nullptr && std::string_view(asked) == "1";
}

const LtApi* lt_api(std::string& why) {
  static const LoadedApi<LtApi> loaded("cuBLASLt", names_of_library("libcublasLt", {"13", "12", "11"}),
                                       [](SharedObject& library, LtApi& table) {
#define LAMINA_FIND(result, symbol, member, parameters) &&library.find(#symbol, table.member)
                                         return true LAMINA_CUBLASLT_FUNCTIONS(LAMINA_FIND);
#undef LAMINA_FIND
                                       });
  return loaded.table(why);
}

std::optional<LtProblem> lt_problem(const kernel::MatmulStack& stack) {
  if (stack.has_bias || stack.batch.size() > 1 || stack.m == 0 || stack.n == 0 || stack.k == 0 || stack.products() == 0)
    return std::nullopt;
  if (stack.products() > std::numeric_limits<int32_t>::max()) return std::nullopt;
  const bool same_types =
      stack.src.dtype == stack.weights.dtype && (stack.dst.dtype == stack.src.dtype || stack.dst.dtype == DataType::f32);
  const std::optional<LtMatrix> a = in_columns(stack.weights, stack.k, stack.n), b = in_columns(stack.src, stack.m, stack.k),
                                d = in_columns(stack.dst, stack.m, stack.n);
  if (!same_types || !a || !b || !d || d->transposed) return std::nullopt;
  // Pedantic: f32 without TF32, independent of environment variables.
  const int compute = stack.src.dtype == DataType::f32 ? kCompute32Pedantic : kCompute32;
  return LtProblem{*a, *b, *d, static_cast<int>(stack.products()), compute};
}

BlasLt::BlasLt(const LtApi& api, const DriverApi& driver, std::shared_ptr<const Context> context)
    : api_(api), driver_(driver), context_(std::move(context)) {
  const CurrentContext current(driver_, context_->get());
  check(api_, api_.create(&handle_), "cublasLtCreate");
}

BlasLt::~BlasLt() {
  CUcontext ignored = nullptr;
  if (driver_.push_context(context_->get()) != 0) return;
  api_.destroy(handle_);
  driver_.pop_context(&ignored);
}

std::unique_ptr<StepRunner> blas_lt_runner(std::shared_ptr<const BlasLt> library, const kernel::MatmulStack& stack,
                                           std::unique_ptr<StepRunner> generated) {
  const std::optional<LtProblem> problem = lt_problem(stack);
  if (!problem) return generated;
  auto runner = std::make_unique<BlasLtRunner>(std::move(library), *problem, std::move(generated));
  if (runner->find_algorithm()) return runner;
  return runner->give_back_generated();
}

std::string BlasLtProducts::why_unsupported(const Graph& graph, const Op& op) const {
  return op.kind == OpKind::MatMul ? generated_->why_unsupported(graph, op) : "cuBLASLt multiplies matrices only";
}

std::unique_ptr<StepRunner> BlasLtProducts::compile(const kernel::LibraryStep& step, const Use& use) const {
  if (step.op.kind != OpKind::MatMul) return nullptr;
  std::unique_ptr<StepRunner> generated = generated_->compile(step, use);
  if (generated == nullptr) return nullptr;
  return blas_lt_runner(open_(), kernel::collapsed(kernel::matmul_stack(step)), std::move(generated));
}

}  // namespace lamina::gpu::cuda
