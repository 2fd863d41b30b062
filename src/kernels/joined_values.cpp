#include "kernels/joined_values.h"

#include <algorithm>

#include "interface/data_type.h"
#include "interface/op_schema.h"

namespace lamina::kernel {

namespace {

// Whether both traverse memory with the same steps. Along axes of extent 1 there are none.
bool has_strides_of(const LogicalTensor& part, const LogicalTensor& result) {
  for (size_t axis = 0; axis < part.strides.size(); ++axis)
    if ((*part.shape)[axis] > 1 && part.strides[axis] != result.strides[axis]) return false;
  return true;
}

bool is_joinable(const LogicalTensor& part) {
  return bits_of(part.dtype) >= 8 && part.element_count() > 0 && part.strides.size() == part.shape->size();
}

}  // namespace

std::map<ValueIndex, PlaceInResult> joined_values(const Graph& graph, std::span<const ValueIndex> ports) {
  std::map<ValueIndex, PlaceInResult> places;
  for (const Op& op : graph.ops()) {
    if (schema_of(op.kind).nest != LoopNest::concatenated) continue;
    const LogicalTensor& result = graph.tensor(op.outputs[0]);
    const auto axis = static_cast<size_t>(wrap_axis(op.attribute<int64_t>("axis"), result.rank()));
    int64_t position = 0;
    for (const ValueIndex part : op.inputs) {
      const LogicalTensor& tensor = graph.tensor(part);
      const bool is_port = std::find(ports.begin(), ports.end(), part) != ports.end();
      if (!is_port && graph.value(part).producer.op >= 0 && is_joinable(tensor) && has_strides_of(tensor, result))
        places.try_emplace(part, PlaceInResult{op.outputs[0], bytes_of(result.dtype, position * result.strides[axis])});
      position += (*tensor.shape)[axis];
    }
  }
  return places;
}

}  // namespace lamina::kernel
