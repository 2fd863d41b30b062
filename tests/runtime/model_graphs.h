// The graphs of the tests of exported models.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "interface/graph.h"

namespace lamina::testing {

struct NamedGraph {
  std::string name;
  std::function<Graph()> make;
  friend void PrintTo(const NamedGraph& named, std::ostream* out) { *out << named.name; }
};

std::vector<NamedGraph> model_graphs();

// Windows in groups, with pads, read as rows, by pointers, and in place.
Graph convolution(int64_t channels, int64_t groups, int64_t window);
Graph column_sums();

}  // namespace lamina::testing
