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

int64_t group_count(const Launch& launch) {
  if (std::find(launch.groups.begin(), launch.groups.end(), 0) != launch.groups.end()) return 0;
  int64_t count = 1;
  for (const int64_t factor : launch.groups) count = groups_for(count * groups_for(factor, 1), 1);
  return count;
}

ProgramRunner::ProgramRunner(const std::shared_ptr<Device>& device, LibraryProgram program, const std::string& op)
    : device_(device), program_(std::move(program)) {
  program_.text = join(op, ": ", program_.text, "\n");
  if (program_.needs_f64 && !device_->limits().has_f64)
    throw Error(Status::unimplemented, join("gpu backend: ", op, " needs f64, which ", device_->name(), " does not have"));
  for (const Launch& launch : program_.launches) groups_.push_back(group_count(launch));
}

const Module& ProgramRunner::module() const {
  loads_.call([&] { loaded_ = device_->load(program_.source); });
  return *loaded_.module;
}

void ProgramRunner::run(void* stream, std::span<const BufferView> buffers, BufferView scratch) const {
  if (std::all_of(groups_.begin(), groups_.end(), [](int64_t groups) { return groups == 0; })) return;
  auto& views = PerThread<ProgramRunner, std::vector<BufferView>>::get();  // only a thread's first call allocates
  views.clear();
  for (const size_t arg : program_.args) views.push_back(buffers[arg]);
  if (program_.scratch_bytes != 0) views.push_back(scratch);
  for (size_t f = 0; f < groups_.size(); ++f)
    if (groups_[f] != 0) module().launch(stream, f, groups_[f], program_.launches[f].group_size, views, program_.words);
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
