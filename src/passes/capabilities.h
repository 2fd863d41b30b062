// The contract between passes and a backend, whoever it is: what it can run.
#pragma once

#include <string>

#include "interface/graph.h"

namespace lamina {

class Capabilities {
 public:
  virtual ~Capabilities() = default;
  // "" when the op can run (dtypes included), else why not, one sentence without the op's name.
  virtual std::string why_unsupported(const Graph& graph, const Op& op) const = 0;
  // Whether a partition may hold several groups, where heavy ops stand between them.
  virtual bool runs_several_groups() const { return false; }
};

}  // namespace lamina
