// A graph as data: the form in which random graphs are generated and reduced.
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
  std::vector<uint64_t> inputs, outputs;  // tensor ids in port order; kNoTensor: omitted
};

struct Recipe {
  std::map<uint64_t, LogicalTensor> tensors;  // all shapes are known
  std::vector<Step> steps;                    // each reads graph inputs or outputs of earlier steps
  std::set<uint64_t> kept;                    // graph outputs that a step also reads

  // Returns the finalized graph. Throws Error if a step is invalid.
  Graph build() const;

  // Removes step `step`. Its outputs become graph inputs if they are read; unused tensors are removed.
  Recipe without(size_t step) const;
  // Omits a step's optional output, or removes tensor `id` from `kept`.
  Recipe without_kept(uint64_t id) const;

 private:
  void forget_unused();
};

}  // namespace lamina::testing
