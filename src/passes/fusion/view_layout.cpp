// Views of ops that move elements.
#include <iterator>

#include "interface/indices.h"
#include "interface/op_schema.h"
#include "passes/fusion/common_refinement.h"
#include "passes/fusion/view_builder.h"

namespace lamina {
namespace {

// Maps a shape to pieces of its dims: each dim that is not 1 gets the next number of pieces in `counts`.
DimMap map_of_pieces(const Dims& shape, const std::vector<int>& counts) {
  DimMap map(shape.size(), kNoRun);
  int first = 0;
  size_t next = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    map[i] = {first, counts[next]};
    first += counts[next++];
  }
  return map;
}

Dims without_units(const Dims& shape) {
  Dims dims;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(dims), [](int64_t extent) { return extent != 1; });
  return dims;
}

}  // namespace

void ViewBuilder::transposed() {
  const auto& order = op_.attribute<std::vector<int64_t>>("order");
  const Dims& dst = output_shape(0);
  const size_t rank = dst.size();
  if (order.size() != rank) return refuse(join("order has ", order.size(), " entries for rank ", rank));
  loop_over(dst);
  view_.outputs[0] = identity_map(rank);
  view_.inputs[0].resize(rank, kNoRun);
  for (size_t i = 0; i < rank; ++i) {
    const auto axis = static_cast<size_t>(wrap_axis(order[i], static_cast<int>(rank)));
    view_.inputs[0][axis] = {static_cast<int>(i), 1};
  }
}

void ViewBuilder::reshaped() {
  const Dims& src = input_shape(0);
  const Dims& dst = output_shape(0);
  const auto refined = common_refinement(without_units(src), without_units(dst));
  if (!refined) {
    view_.opaque_copy = true;
    loop_over(dst);
    view_.inputs[0].assign(src.size(), kNoRun);
    view_.outputs[0] = identity_map(dst.size());
    return;
  }
  loop_over(refined->pieces);
  view_.inputs[0] = map_of_pieces(src, refined->a);
  view_.outputs[0] = map_of_pieces(dst, refined->b);
}

// Runs over the elements of the result. Strides and an offset give their positions in src (kernels/lower).
void ViewBuilder::sliced() {
  const size_t rank = output_shape(0).size();
  loop_over(output_shape(0));
  view_.inputs[0] = view_.outputs[0] = identity_map(rank);
  view_.reads_a_part[0] = true;
}

// Runs over the elements of the result. The axis of src that the indices replace is no dim of the loop nest: an element is read
// from the entry that its index names.
void ViewBuilder::gathered() {
  const IndexedAxis at = gathered_axis(OpView(graph_, op_));
  const size_t rank = output_shape(0).size();
  loop_over(output_shape(0));
  view_.outputs[0] = identity_map(rank);
  for (size_t i = 0; i < rank; ++i) {
    const AxisRun run{static_cast<int>(i), 1};
    const bool is_of_indices = i >= at.axis && i < at.axis + at.indices;
    view_.inputs[is_of_indices ? 1 : 0].push_back(run);
  }
  view_.inputs[0].insert(view_.inputs[0].begin() + static_cast<int64_t>(at.axis), kNoRun);
  view_.reads_a_part[0] = view_.reads_a_part[1] = true;
}

// Runs over the elements of the result. The axes of src that have the shape of the indices are no dims of the loop nest: an
// element is a sum over those of their entries that have its index.
void ViewBuilder::scattered() {
  const IndexedAxis at = scattered_axis(OpView(graph_, op_));
  loop_over(output_shape(0));
  view_.outputs[0] = view_.inputs[0] = identity_map(output_shape(0).size());
  const auto axis = view_.inputs[0].begin() + static_cast<int64_t>(at.axis);
  view_.inputs[0].insert(view_.inputs[0].erase(axis), at.indices, kNoRun);
  view_.inputs[1].assign(at.indices, kNoRun);
  view_.reads_a_part[0] = view_.reads_a_part[1] = true;
}

// Runs over the positions of the result, then over the taps of a window if these are loops. The maps of images name those dims
// along which taps run, since a position is read from where its window says.
void ViewBuilder::windows() {
  const OpView view(graph_, op_);
  bool are_known = view.output_at(0)->has_full_shape();
  for (size_t i = 0; i < view.input_count(); ++i)
    are_known = are_known && (view.input_at(i) == nullptr || view.input_at(i)->has_full_shape());
  if (!are_known) return loop_over_windows(output_shape(0), nullptr);
  const Windows windows = windows_of(view);
  loop_over_windows(output_shape(0), &windows);
}

void ViewBuilder::loop_over_windows(const Dims& positions, const Windows* windows) {
  const size_t rank = positions.size(), first = has_channels_last(op_) ? 1 : 2;
  loop_over(positions);
  DimMap image = identity_map(rank);
  const bool are_loops = windows != nullptr && windows->are_loops();
  for (size_t axis = 0; axis + 2 < rank; ++axis) {
    image[first + axis] = kNoRun;
    if (!are_loops) continue;
    image[first + axis] = {static_cast<int>(view_.extents.size()), 1};
    view_.extents.push_back(windows->axes[axis].count);
    view_.inner.push_back(true);
  }
  view_.outputs[0] = identity_map(rank);
  for (size_t i = 0; i < op_.inputs.size(); ++i) {
    if (!has_input(i)) continue;
    view_.inputs[i] = input_shape(i).size() == rank ? image : DimMap(input_shape(i).size(), kNoRun);
    view_.reads_a_part[i] = true;
  }
}

// A kernel converts values when it loads them, so that bits are copied by a kernel of their own.
void ViewBuilder::reinterpreted() {
  view_.opaque_copy = true;
  loop_over(output_shape(0));
  view_.inputs[0].assign(input_shape(0).size(), kNoRun);
  view_.outputs[0] = identity_map(output_shape(0).size());
}

// The inputs are concatenated along `axis`. Each is a separate copy.
void ViewBuilder::concatenated() {
  view_.opaque_copy = true;
  loop_over(output_shape(0));
  for (size_t i = 0; i < op_.inputs.size(); ++i) view_.inputs[i].assign(input_shape(i).size(), kNoRun);
  view_.outputs[0] = identity_map(output_shape(0).size());
}

}  // namespace lamina
