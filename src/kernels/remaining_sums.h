// Column outputs of a group that are no column sums of its kernel, because they also sum over inner dims. There are two ways
// to compute them:
//   - in segments: the group's kernel sums each segment of its rows (kernel_ir.h), and a small kernel adds those of all rows;
//   - in a second walk: another kernel reads the op's tensors again, in a loop nest with other inner dims.
#pragma once

#include <optional>
#include <vector>

#include "interface/graph.h"
#include "passes/fusion/fuse.h"

namespace lamina::kernel {

// Outputs of one op that sum over the same dims. The group's kernel runs first. For a second walk it stores the op's operands,
// and the values that the op carries over, in memory.
struct Sums {
  int op;
  std::vector<int> ports;
  FusionGroup group;     // the op alone, in the dims of its group, with other inner dims
  bool by_rows = false;  // the summed dims are the inner ones (a sum per row), else the outer ones (column sums)
  bool in_segments = false;
  // In segments. Per dim of the group: whether it numbers the segments of a row; and the strides of the sums of all segments,
  // which are dense.
  std::vector<bool> numbers_segments = {};
  Dims strides = {};
  bool has_several_segments() const;  // in a row
  bool adds_rows() const;             // each result is a sum of several rows' segments
};

// `sums_segments`: the backend runs segment sums.
std::vector<Sums> remaining_sums(const Graph& graph, const FusionGroup& group, bool sums_segments);

// The outer dims that number the entries of the kernel's column sums: what the first column output keeps that keeps any.
std::vector<bool> entry_dims(const Graph& graph, const FusionGroup& group);

}  // namespace lamina::kernel
