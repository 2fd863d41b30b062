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

bool writes(const PlanStep& step, size_t arg) {
  if (const auto* const kernel = std::get_if<KernelStep>(&step)) return kernel->kernel.args[arg].output;
  if (const auto* const library = std::get_if<LibraryStep>(&step))
    return arg >= library->inputs.size() && arg < library->inputs.size() + library->outputs.size();
  return arg >= std::get<TiledStep>(step).inputs.size();
}

// Whether a step from `first` on reads the block before another value is written there.
bool is_read_from(const std::vector<PlanStep>& steps, size_t first, const Binding& block) {
  for (size_t s = first; s < steps.size(); ++s) {
    const std::vector<Binding>& args = args_of(steps[s]);
    bool is_written = false;
    for (size_t a = 0; a < args.size(); ++a) {
      if (!is_in_block(args[a], block)) continue;
      if (!writes(steps[s], a)) return true;
      is_written = true;
    }
    if (is_written) return false;
  }
  return false;
}

// The strides of a tensor's elements where the kernel writes them. `read`, `written`: its args, the first of which is the
// tensor. Nothing: a dim of the tensor is several dims of the kernel.
std::optional<Dims> written_strides(const Kernel& kernel, const Arg& read, const Arg& written, const LogicalTensor& tensor) {
  Dims strides = tensor.strides;
  for (size_t d = 0; d < strides.size(); ++d) {
    const int64_t extent = (*tensor.shape)[d], stride = tensor.strides[d];
    if (extent == 1) continue;
    const auto contains = [&](size_t dim) {
      const int64_t step = read.strides[dim];
      return kernel.extents[dim] > 1 && stride % step == 0 && stride * extent <= step * kernel.extents[dim];
    };
    size_t dim = 0;
    while (dim < kernel.extents.size() && !contains(dim)) ++dim;
    if (dim == kernel.extents.size()) return std::nullopt;
    strides[d] = stride / read.strides[dim] * written.strides[dim];
  }
  return strides;
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

std::optional<LibraryStep> with_result_of_kernel(const std::vector<PlanStep>& steps, size_t s) {
  const auto* const library = std::get_if<LibraryStep>(&steps[s]);
  const auto* const next = s + 1 < steps.size() ? std::get_if<KernelStep>(&steps[s + 1]) : nullptr;
  if (library == nullptr || next == nullptr || !next->follows_parts || next->args.size() != 2) return std::nullopt;
  const size_t result = library->inputs.size(), read = next->kernel.args[0].output ? 1 : 0;
  const Arg &from = next->kernel.args[read], &to = next->kernel.args[1 - read];
  const bool has_memory = library->args[result].source == Binding::Source::arena && to.output && to.dtype == from.dtype;
  if (!has_memory || is_in_block(next->args[0], next->args[1]) || is_read_from(steps, s + 2, library->args[result]))
    return std::nullopt;
  const auto strides = written_strides(next->kernel, from, to, library->outputs[0]);
  if (!strides) return std::nullopt;
  LibraryStep moved = *library;
  moved.outputs[0].strides = *strides;
  moved.args[result] = next->args[1 - read];
  return moved;
}

void mark_following_kernels(std::vector<PlanStep>& steps) {
  for (size_t s = 1; s < steps.size(); ++s) {
    const auto* const library = std::get_if<LibraryStep>(&steps[s - 1]);
    auto* const kernel = std::get_if<KernelStep>(&steps[s]);
    if (library != nullptr && kernel != nullptr) kernel->follows_parts = follows(*library, *kernel);
  }
}

}  // namespace lamina::kernel
