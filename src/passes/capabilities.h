// The contract between passes and a backend: what the backend can run.
#pragma once

#include <string>

#include "interface/graph.h"

namespace lamina {

class Capabilities {
 public:
  virtual ~Capabilities() = default;
  // Returns "" if the op can run with its dtypes, else one sentence without the op's name that says why not.
  virtual std::string why_unsupported(const Graph& graph, const Op& op) const = 0;
  // Whether a partition may contain several groups that are connected through library ops.
  virtual bool runs_several_groups() const { return false; }
};

}  // namespace lamina
