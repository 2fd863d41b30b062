#include "backends/gpu/generated_library.h"

#include <algorithm>
#include <optional>

#include "interface/per_thread.h"
#include "interface/status.h"

namespace lamina::gpu {

namespace {

std::optional<LibraryOp> library_op(OpKind kind) {
  switch (kind) {
#define LAMINA_LIBRARY_PROGRAM(kind, name) \
  case OpKind::kind: return name##_op();
#include "backends/gpu/emit/library_programs.def"
    default: return std::nullopt;
  }
}

}  // namespace

ProgramRunner::ProgramRunner(const std::shared_ptr<Device>& device, LibraryProgram program, const std::string& op)
    : device_(device), program_(std::move(program)) {
  program_.text = join(op, ": ", program_.text, "\n");
  if (program_.needs_f64 && !device_->limits().has_f64)
    throw Error(Status::unimplemented, join("gpu backend: ", op, " needs f64, which ", device_->name(), " does not have"));
  if (std::find(program_.groups.begin(), program_.groups.end(), 0) != program_.groups.end()) groups_ = 0;
  for (const int64_t factor : program_.groups) groups_ = groups_for(groups_ * groups_for(factor, 1), 1);
}

const Module& ProgramRunner::module() const {
  loads_.call([&] { loaded_ = device_->load(program_.source); });
  return *loaded_.module;
}

void ProgramRunner::run(void* stream, std::span<const BufferView> buffers, BufferView partials) const {
  if (groups_ == 0) return;
  auto& views = PerThread<ProgramRunner, std::vector<BufferView>>::get();  // only a thread's first call allocates
  views.clear();
  for (const size_t arg : program_.args) views.push_back(buffers[arg]);
  if (program_.joining) views.push_back(partials);
  module().launch(stream, 0, groups_, program_.group_size, views, program_.words);
  if (!program_.joining) return;
  const auto& [items, group_size, bytes] = *program_.joining;
  module().launch(stream, 1, groups_for(items, group_size), group_size, views, program_.words);
}

std::string GeneratedLibrary::why_unsupported(const Graph& graph, const Op& op) const {
  if (const std::optional<LibraryOp> found = library_op(op.kind))
    return found->why_unsupported == nullptr ? "" : found->why_unsupported(graph, op);
  return join("the gpu backend has no program for ", name_of(op.kind), "; the cpu backend may have one");
}

std::unique_ptr<StepRunner> GeneratedLibrary::compile(const kernel::LibraryStep& step, const Use&) const {
  const std::optional<LibraryOp> found = library_op(step.op.kind);
  if (!found || step.quantized) return nullptr;
  return std::make_unique<ProgramRunner>(device_, found->program(step, device_->limits(), device_->language()),
                                         describe(step.op));
}

}  // namespace lamina::gpu
