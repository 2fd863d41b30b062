#include "kernels/following_kernels.h"

#include <algorithm>
#include <utility>

namespace lamina::kernel {

namespace {

bool is_elementwise(const Kernel& kernel) {
  return std::all_of(kernel.nodes.begin(), kernel.nodes.end(), [](const Node& node) {
    return node.kind == NodeKind::load || node.kind == NodeKind::constant || node.kind == NodeKind::map ||
           node.kind == NodeKind::store;
  });
}

// Whether the kernel visits the elements of a tensor one after the other, in the order in which they are in memory.
bool is_in_order(const Kernel& kernel, const Arg& arg) {
  int64_t next = 1;
  for (size_t d = kernel.extents.size(); d-- > 0; next *= kernel.extents[d])
    if (kernel.extents[d] != 1 && arg.strides[d] != next) return false;
  return true;
}

bool is_in_block(const Binding& a, const Binding& b) { return a.source == b.source && a.index == b.index; }

// Each element of the kernel needs the element of the library's only result that has the same number.
bool follows(const LibraryStep& library, const KernelStep& step) {
  if (library.adds || library.outputs.size() != 1 || !step.indices.empty() || !is_elementwise(step.kernel)) return false;
  const LogicalTensor& result = library.outputs.front();
  if (result.is_empty_port() || result.span() != result.element_count()) return false;
  const Binding& written = library.args[library.inputs.size()];
  bool reads = false;
  for (size_t a = 0; a < step.args.size(); ++a) {
    if (!is_in_block(step.args[a], written)) continue;
    const Arg& arg = step.kernel.args[a];
    const bool is_result = step.args[a].bytes == written.bytes && arg.dtype == result.dtype;
    if (arg.output || !is_result || !is_in_order(step.kernel, arg)) return false;
    reads = true;
  }
  return reads && step.kernel.row_count() * step.kernel.row_size() == result.element_count();
}

bool has_block(const std::vector<Binding>& args, const Binding& block) {
  return std::any_of(args.begin(), args.end(), [&](const Binding& arg) { return is_in_block(arg, block); });
}

// Neither step writes what the other one reads or writes.
bool are_independent(const LibraryStep& library, const KernelStep& step) {
  for (size_t a = 0; a < step.args.size(); ++a)
    if (step.kernel.args[a].output && has_block(library.args, step.args[a])) return false;
  for (size_t a = library.inputs.size(); a < library.inputs.size() + library.outputs.size(); ++a)
    if (has_block(step.args, library.args[a])) return false;
  return step.indices.empty();
}

}  // namespace

void move_kernels_ahead(std::vector<PlanStep>& steps, ArenaBuilder& arena) {
  for (size_t s = 1; s + 1 < steps.size(); ++s) {
    const auto* const library = std::get_if<LibraryStep>(&steps[s - 1]);
    const auto* const kernel = std::get_if<KernelStep>(&steps[s]);
    const auto* const next = std::get_if<KernelStep>(&steps[s + 1]);
    if (library == nullptr || kernel == nullptr || next == nullptr) continue;
    if (!follows(*library, *next) || !are_independent(*library, *kernel)) continue;
    for (const Binding& arg : kernel->args)
      if (arg.source == Binding::Source::arena) arena.begin_at(arg, s - 1);
    for (const Binding& arg : library->args)
      if (arg.source == Binding::Source::arena && arena.block(arg.index).last_step < s) arena.use(arg, s);
    std::swap(steps[s - 1], steps[s]);
  }
}

void keep_results_apart(const std::vector<PlanStep>& steps, ArenaBuilder& arena) {
  for (size_t s = 0; s < steps.size(); ++s) {
    const auto* const step = std::get_if<KernelStep>(&steps[s]);
    if (step == nullptr || !step->follows_parts) continue;
    for (size_t a = 0; a < step->args.size(); ++a)
      if (step->kernel.args[a].output && step->args[a].source == Binding::Source::arena) arena.begin_at(step->args[a], s - 1);
  }
}

bool is_read_by_followed_step(const std::vector<PlanStep>& steps, size_t s, const Binding& memory) {
  const auto* const kernel = std::get_if<KernelStep>(&steps[s]);
  if (kernel == nullptr || !kernel->follows_parts) return false;
  const auto& library = std::get<LibraryStep>(steps[s - 1]);
  for (size_t a = 0; a < library.args.size(); ++a) {
    const bool is_result = a >= library.inputs.size() && a < library.inputs.size() + library.outputs.size();
    if (!is_result && is_in_block(library.args[a], memory)) return true;
  }
  return false;
}

bool changes_in_place(const LibraryStep& step, const KernelStep& kernel) {
  if (!kernel.follows_parts || kernel.args.size() != 2 || step.outputs.size() != 1) return false;
  const Binding& result = step.args[step.inputs.size()];
  return std::all_of(kernel.args.begin(), kernel.args.end(),
                     [&](const Binding& arg) { return is_in_block(arg, result) && arg.bytes == result.bytes; });
}

void mark_following_kernels(std::vector<PlanStep>& steps) {
  for (size_t s = 1; s < steps.size(); ++s) {
    const auto* const library = std::get_if<LibraryStep>(&steps[s - 1]);
    auto* const kernel = std::get_if<KernelStep>(&steps[s]);
    if (library != nullptr && kernel != nullptr) kernel->follows_parts = follows(*library, *kernel);
  }
}

}  // namespace lamina::kernel
