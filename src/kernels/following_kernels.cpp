#include "kernels/following_kernels.h"

#include <algorithm>

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

}  // namespace

void mark_following_kernels(std::vector<PlanStep>& steps) {
  for (size_t s = 1; s < steps.size(); ++s) {
    const auto* const library = std::get_if<LibraryStep>(&steps[s - 1]);
    auto* const kernel = std::get_if<KernelStep>(&steps[s]);
    if (library != nullptr && kernel != nullptr) kernel->follows_parts = follows(*library, *kernel);
  }
}

}  // namespace lamina::kernel
