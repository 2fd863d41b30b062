// A graph as data: what random graphs are made as, and made smaller as when one of them shows a fault.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "interface/graph.h"

namespace lamina::testing {

struct Step {
  OpKind kind = OpKind::Wildcard;
  Attributes attributes;
  std::vector<uint64_t> inputs, outputs;  // tensor ids in port order, kNoTensor: left out
};

struct Recipe {
  std::map<uint64_t, LogicalTensor> tensors;  // all of known shape
  std::vector<Step> steps;                    // each reads what graph inputs or earlier steps give
  std::set<uint64_t> kept;                    // outputs of the graph that some step reads as well

  // Finalized. Throws Error where a step is not legal.
  Graph build() const;

  // Without step `step`, whose outputs become graph inputs where they are read; tensors without a reader or producer are gone.
  Recipe without(size_t step) const;
  // A step's optional output is left out, or tensor `id` is no longer kept.
  Recipe without_kept(uint64_t id) const;

 private:
  void forget_unused();
};

}  // namespace lamina::testing
