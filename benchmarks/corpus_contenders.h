// The graph of a dump as lamina and as oneDNN run it: partitioned, compiled, and bound to memory. Both read the same inputs.
// Each has separate tensors between its partitions and for its results.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "interface/json/json.h"
#include "lamina/fill.h"

namespace bench {

struct GraphContender {
  std::function<void()> run;  // runs the whole graph once and returns when it is finished
  size_t partitions = 0;
  double compile_ms = 0;            // of all partitions
  lamina::driver::Buffers tensors;  // by id: the inputs, and all results of partitions
  std::string remark;               // differences from the dump; usually empty
};

// They throw an exception with the reason if the library does not run the graph. `inputs` contains every input of the graph.
GraphContender lamina_graph(const lamina::Graph& graph, const lamina::driver::Buffers& inputs);
GraphContender onednn_graph(const lamina::GraphDump& dump, const lamina::driver::Buffers& inputs);

}  // namespace bench
