// How one op looks as a loop nest of its own: its iteration dims, and through which of them each of its ports varies. Fusion
// joins such views (grow_group.h); nothing else there knows what an op means.
//
// Dims of extent 1 never become iteration dims: nothing varies along them (the maps say count 0 there). An op that reduces or
// normalises only such dims keeps one inner dim of extent 1, which no port runs along, so that a row always has an inner dim.
#pragma once

#include <string>
#include <vector>

#include "interface/graph.h"
#include "passes/fusion/fuse.h"

namespace lamina {

struct IterationView {
  Dims extents;                         // of the iteration dims; kUnknownDim where unknown
  std::vector<bool> inner;              // normalised or reduced by the op
  std::vector<DimMap> inputs, outputs;  // per port; empty for a port that is left out
  std::vector<bool> column_outputs;     // per output: summed over all dims that its map does not have (diff_gamma, diff_beta)
  std::vector<bool> reads_a_part;       // per input: in steps of its own, so that all of it must lie in memory before
  bool opaque_copy = false;             // a reshape without common dims: elements in order, inputs[0] means nothing
  std::string why_not;                  // not empty: the op has no loop nest, one phrase

  bool has_inner() const;
  bool has_columns() const;
};

IterationView iteration_view(const Graph& graph, const Op& op);

}  // namespace lamina
