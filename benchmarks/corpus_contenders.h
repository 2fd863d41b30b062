// The graph of a dump as lamina and as oneDNN run it: partitioned, compiled, and bound to memory. Both read the same inputs;
// each has tensors of its own between its partitions and behind them.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "interface/json/json.h"
#include "lamina/fill.h"

namespace bench {

struct GraphContender {
  std::function<void()> run;  // the whole graph once; returns when it is done
  size_t partitions = 0;
  double compile_ms = 0;            // of all partitions
  lamina::driver::Buffers tensors;  // by id: the inputs, and all that partitions make
  std::string remark;               // on what it does otherwise than the dump says; mostly empty
};

// They throw what std::exception::what() gives the reason of where the library does not run the graph. `inputs` holds every
// input of the graph.
GraphContender lamina_graph(const lamina::Graph& graph, const lamina::driver::Buffers& inputs);
GraphContender onednn_graph(const lamina::GraphDump& dump, const lamina::driver::Buffers& inputs);

}  // namespace bench
