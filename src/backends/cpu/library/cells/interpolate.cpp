// Interpolation and its gradient, by loops of our own: oneDNN's resampling knows neither align_corners nor our choice of the
// later one of two equally near cells, and its gradient is slow.
#include "backends/cpu/library/cells/cell_primitive.h"
#include "backends/cpu/library/cells/op_ports.h"
#include "backends/cpu/library/library_ops.h"

namespace lamina::cpu {

namespace {

// The extents alone say what is read, also where attribute scales gave them.
Reads reads_of(const Op& op, const CellTensor& from, const CellTensor& to) {
  const auto reads = op.attribute<std::string>("mode") == "nearest" ? nearest_reads : linear_reads;
  const Coordinates coordinates = op.attribute<std::string>("coordinate_transformation_mode") == "align_corners"
                                      ? Coordinates::align_corners
                                      : Coordinates::half_pixel;
  Reads result;
  for (size_t axis = 0; axis < 3; ++axis) result[axis] = reads(from.extents[axis], to.extents[axis], coordinates);
  return result;
}

std::unique_ptr<const Primitive> interpolate(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  CellWork work{.kind = CellWork::Kind::weighted_sum, .input = input_port(step, "src"), .output = output_port(step)};
  work.reads = reads_of(step.op, work.input.tensor, work.output.tensor);
  return cell_primitive(std::move(work), use);
}

std::unique_ptr<const Primitive> interpolate_backward(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  CellWork work{.kind = CellWork::Kind::weighted_sum, .input = input_port(step, "diff_dst"), .output = output_port(step)};
  work.reads = reversed(reads_of(step.op, work.output.tensor, work.input.tensor), work.output.tensor.extents);
  return cell_primitive(std::move(work), use);
}

}  // namespace

std::vector<LibraryOp> interpolate_ops() {
  return {{OpKind::Interpolate, interpolate, why_not_cells},
          {OpKind::InterpolateBackward, interpolate_backward, why_not_cells}};
}

}  // namespace lamina::cpu
