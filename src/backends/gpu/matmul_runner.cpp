#include "backends/gpu/matmul_runner.h"

#include <array>

#include "interface/status.h"

namespace lamina::gpu {

MatmulRunner::MatmulRunner(const std::shared_ptr<Device>& device, kernel::MatmulStack stack, const std::string& op)
    : device_(device),
      stack_(std::move(stack)),
      form_(choose_form(stack_, device->limits())),
      words_(words_of(stack_)),
      source_(emit_matmul(form_, device->language())),
      text_(join(op, ": ", stack_.products(), " products of [", stack_.m, ", ", stack_.k, "] and [", stack_.k, ", ", stack_.n,
                 "], work-groups make tiles of ", form_.tile_rows(), " x ", form_.tile_columns(), "\n")) {
  if (const int64_t batch = stack_.products(); batch > 0 && stack_.m > 0 && stack_.n > 0) {
    const int64_t across = groups_for(stack_.n, form_.tile_columns()), down = groups_for(stack_.m, form_.tile_rows());
    groups_ = groups_for(across * down, 1);
    groups_ = groups_for(groups_ * groups_for(batch, 1), 1);
  }
}

const Module& MatmulRunner::module() const {
  loads_.call([&] { loaded_ = device_->load(source_); });
  return *loaded_.module;
}

std::string MatmulRunner::schedule_name() const { return join("tiles of ", form_.tile_rows(), " x ", form_.tile_columns()); }

void MatmulRunner::run(void* stream, std::span<const BufferView> buffers, BufferView) const {
  LAMINA_CHECK(buffers.size() >= 3, "src, weights, perhaps a bias, and dst");
  if (groups_ == 0) return;
  const std::array<BufferView, 4> views = {buffers[0], buffers[1], stack_.has_bias ? buffers[2] : buffers.back(),
                                           buffers.back()};
  module().launch(stream, 0, groups_, form_.group_size(), std::span(views).first(stack_.has_bias ? 4 : 3), words_);
}

std::string GeneratedProducts::why_unsupported(const Graph& graph, const Op& op) const {
  if (op.kind == OpKind::MatMul)
    return graph.tensor(op.inputs[0]).dtype == DataType::f64
               ? "the gpu backend multiplies no matrices of f64; the cpu backend does"
               : "";
  return join("the gpu backend multiplies matrices and has no kernel for ", name_of(op.kind), "; the cpu backend may have one");
}

std::unique_ptr<StepRunner> GeneratedProducts::compile(const kernel::LibraryStep& step, const Use&) const {
  if (step.op.kind != OpKind::MatMul || step.quantized) return nullptr;
  return std::make_unique<MatmulRunner>(device_, kernel::collapsed(kernel::matmul_stack(step)), describe(step.op));
}

}  // namespace lamina::gpu
