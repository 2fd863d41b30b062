#include "kernels/wide_copies.h"

#include <algorithm>
#include <array>

namespace lamina::kernel {

namespace {

constexpr int kWordBits = 32;

// The node that loads what a kernel only copies, in which all else is per row; -1 for other kernels.
NodeIndex copied_node(const Kernel& kernel) {
  if (kernel.nodes.empty() || kernel.nodes.back().kind != NodeKind::store) return -1;
  const Node& store = kernel.nodes.back();
  const NodeIndex from = store.operands[0];
  if (!is_load(kernel.node(from))) return -1;
  const Arg& source = kernel.arg(kernel.node(from).arg);
  const auto per_element = std::count_if(kernel.nodes.begin(), kernel.nodes.end(), [](const Node& n) { return n.per_element; });
  return source.dtype == kernel.arg(store.arg).dtype && source.table.empty() && per_element == 2 ? from : -1;
}

}  // namespace

void copy_in_words(LoweredKernel& lowered) {
  Kernel& kernel = lowered.kernel;
  const NodeIndex copied = copied_node(kernel);
  if (copied < 0) return;
  const std::array<int, 2> args = {kernel.node(copied).arg, kernel.nodes.back().arg};
  const int bits = bits_of(kernel.arg(args[0]).dtype);
  if (bits != 8 && bits != 16) return;
  const int64_t elements = kWordBits / bits;
  const auto is_whole = [elements](int64_t count) { return count % elements == 0; };
  const auto has_words = [&](int a) {
    const Arg& arg = kernel.arg(a);
    const bool steps_by_words = std::all_of(arg.strides.begin(), arg.strides.end() - 1, is_whole);
    return arg.strides.back() == 1 && steps_by_words && is_whole(arg.entry_stride);
  };
  const auto begins_at_word = [&](int a) {
    return lowered.offsets.empty() || is_whole(lowered.offsets[static_cast<size_t>(a)]);
  };
  if (!is_whole(kernel.extents.back()) || !std::all_of(args.begin(), args.end(), has_words) ||
      !std::all_of(args.begin(), args.end(), begins_at_word))
    return;
  kernel.extents.back() /= elements;
  for (const int a : args) {
    Arg& arg = kernel.args[static_cast<size_t>(a)];
    arg.dtype = DataType::s32;
    arg.entry_stride /= elements;
    std::for_each(arg.strides.begin(), arg.strides.end() - 1, [elements](int64_t& stride) { stride /= elements; });
    if (!lowered.offsets.empty()) lowered.offsets[static_cast<size_t>(a)] /= elements;
  }
  for (const NodeIndex node : {copied, static_cast<NodeIndex>(kernel.nodes.size()) - 1})
    kernel.nodes[static_cast<size_t>(node)].type = Type::s32;
}

}  // namespace lamina::kernel
