#include "kernels/finish_sums.h"

#include <string>

namespace lamina::kernel {

namespace {

LogicalTensor numbered(uint64_t id, LogicalTensor tensor) {
  tensor.id = id;
  tensor.property = PropertyType::undef;
  tensor.layout = LayoutType::strided;
  return tensor;
}

LogicalTensor with_copies(LogicalTensor sum, int64_t copies) {
  sum.shape->insert(sum.shape->begin(), copies);
  sum.strides = dense_strides(*sum.shape);
  return sum;
}

}  // namespace

Graph graph_that_finishes(const std::vector<SumToFinish>& sums) {
  Graph graph;
  uint64_t tensors = 0, ops = 0;
  const auto add = [&](OpKind kind, Attributes attributes, const LogicalTensor& from, const LogicalTensor& to) {
    const uint64_t id = ops++;
    graph.add_op(id, kind, join("finish_", id), std::move(attributes), {{from}}, {{to}});
  };
  for (const SumToFinish& sum : sums) {
    const LogicalTensor result = numbered(tensors++, sum.result);
    const bool is_cast = result.dtype != sum.sum.dtype;
    LogicalTensor total = numbered(tensors++, sum.sum);
    if (sum.copies > 1 || !is_cast) {
      const LogicalTensor copies = numbered(tensors++, with_copies(sum.sum, sum.copies));
      if (!is_cast) total = result;
      add(OpKind::ReduceSum, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", false}}, copies, total);
    }
    if (is_cast) add(OpKind::TypeCast, {}, total, result);
  }
  graph.finalize();
  return graph;
}

bool have_same_layout(const LogicalTensor& a, const LogicalTensor& b) {
  for (size_t axis = 0; axis < a.shape->size(); ++axis) {
    if ((*a.shape)[axis] > 1 && a.strides[axis] != b.strides[axis]) return false;
  }
  return true;
}

}  // namespace lamina::kernel
