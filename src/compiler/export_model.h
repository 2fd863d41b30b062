// A graph as one file that the runtime loads (docs/export.md): a zip archive of
//
//   program/ISA            steps and machine code, one for each instruction set
//   weights.safetensors    the data of constant inputs
//   graph.json             the graph as a dump
//   meta.json              names, types and shapes of inputs and outputs, versions, digests
#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "interface/graph.h"
#include "interface/partition.h"

namespace lamina::compiler {

struct ExportOptions {
  struct Port {
    uint64_t id;
    std::string name;
  };

  std::vector<std::string> isas;  // names as in LAMINA_MAX_ISA, the best first
  int threads = 16;               // the most that the model uses
  bool packs_weights = false;     // in the file, for each instruction set, instead of in the first run
  PartitionPolicy policy = PartitionPolicy::fusion;
  // Memory of graph inputs, by id, in their strides. They become part of the file; all others are inputs of the model.
  std::map<uint64_t, std::string_view> weights = {};
  // The inputs and outputs of the model in its order. Empty: all inputs but weights, and all outputs, of the first graph in its
  // order; their names are their ids. Outputs of the graph that are not listed are not outputs of the model.
  std::vector<Port> inputs = {}, outputs = {};
};

// `graphs`: one for each list of input shapes that the model has, finalized and with all shapes. They have the same inputs and
// outputs but for shapes; a constant has the same shape in all graphs that have it. Throws Error: an op that cannot be
// exported, with its reason; an unknown instruction set; data of the wrong size. `out` then has a part of the file.
void export_model(std::span<const Graph> graphs, const ExportOptions& options, std::ostream& out);

}  // namespace lamina::compiler
