// One op as a separate loop nest: its iteration dims, and the dims along which each of its ports varies. Fusion joins such
// views (grow_group.h), and needs no other knowledge about ops.
//
// Dims of extent 1 never become iteration dims, because nothing varies along them (the maps have count 0 there). An op that
// reduces or normalises only such dims keeps one inner dim of extent 1, along which no port varies, so that a row always has
// an inner dim.
#pragma once

#include <string>
#include <vector>

#include "interface/graph.h"
#include "interface/windows.h"
#include "passes/fusion/fuse.h"

namespace lamina {

struct IterationView {
  Dims extents;                         // of the iteration dims; kUnknownDim where unknown
  std::vector<bool> inner;              // normalised or reduced by the op
  std::vector<DimMap> inputs, outputs;  // per port; empty for an absent port
  // per output: whether it sums over all dims that its map does not have (diff_gamma, diff_beta)
  std::vector<bool> column_outputs;
  // per input: whether it is read with other steps or by index, so that all of it must be in memory before
  std::vector<bool> reads_a_part;
  bool opaque_copy = false;  // a reshape without common dims: elements in row-major order, inputs[0] is unused
  std::string why_not;       // if not empty, the op has no loop nest, and this phrase says why

  bool has_inner() const;
  bool has_columns() const;
};

IterationView iteration_view(const Graph& graph, const Op& op);

// Another loop nest for an op of LoopNest::windows: over `positions`, a shape of its images, with these windows.
IterationView view_of_windows(const Graph& graph, const Op& op, const Dims& positions, const Windows& windows);

}  // namespace lamina
