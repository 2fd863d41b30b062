#include "kernels/wide_copies.h"

#include <algorithm>

namespace lamina::kernel {

namespace {

constexpr int kWordBits = 32;

bool only_copies(const Kernel& kernel) {
  return kernel.nodes.size() == 2 && kernel.nodes[0].kind == NodeKind::load && kernel.nodes[1].kind == NodeKind::store &&
         kernel.args.size() == 2 && kernel.args[0].dtype == kernel.args[1].dtype && kernel.args[0].table.empty();
}

}  // namespace

void copy_in_words(LoweredKernel& lowered) {
  Kernel& kernel = lowered.kernel;
  if (!only_copies(kernel)) return;
  const int bits = bits_of(kernel.args[0].dtype);
  if (bits != 8 && bits != 16) return;
  const int64_t elements = kWordBits / bits;
  const auto is_whole = [elements](int64_t count) { return count % elements == 0; };
  const auto has_words = [&](const Arg& arg) {
    return arg.strides.back() == 1 && std::all_of(arg.strides.begin(), arg.strides.end() - 1, is_whole);
  };
  if (!is_whole(kernel.extents.back()) || !std::all_of(kernel.args.begin(), kernel.args.end(), has_words) ||
      !std::all_of(lowered.offsets.begin(), lowered.offsets.end(), is_whole))
    return;
  kernel.extents.back() /= elements;
  for (int64_t& offset : lowered.offsets) offset /= elements;
  for (Arg& arg : kernel.args) {
    arg.dtype = DataType::s32;
    std::for_each(arg.strides.begin(), arg.strides.end() - 1, [elements](int64_t& stride) { stride /= elements; });
  }
  for (Node& node : kernel.nodes) node.type = Type::s32;
}

}  // namespace lamina::kernel
