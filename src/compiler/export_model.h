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
#include <string>
#include <string_view>
#include <vector>

#include "interface/graph.h"

namespace lamina::compiler {

struct ExportOptions {
  std::vector<std::string> isas;  // names as in LAMINA_MAX_ISA, the best first
  int threads = 16;               // the most that the model uses
  // Memory of graph inputs, by id, in their strides. They become part of the file; all others are inputs of the model.
  std::map<uint64_t, std::string_view> weights = {};
};

// Throws Error: an op that cannot be exported, with its reason; an unknown instruction set; data of the wrong size. The graph
// is finalized and has all shapes.
void export_model(const Graph& graph, const ExportOptions& options, std::ostream& out);

}  // namespace lamina::compiler
