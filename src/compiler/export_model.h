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
  std::vector<std::string> isas;  // names as in LAMINA_MAX_ISA, the best first
  int threads = 16;               // the most that the model uses
  PartitionPolicy policy = PartitionPolicy::fusion;
  // Memory of graph inputs, by id, in their strides. They become part of the file; all others are inputs of the model.
  std::map<uint64_t, std::string_view> weights = {};
};

// `graphs`: one for each list of input shapes that the model has; they differ in shapes alone, and weights have the same shape
// in all of them. They are finalized and have all shapes. Throws Error: an op that cannot be exported, with its reason; an
// unknown instruction set; data of the wrong size.
void export_model(std::span<const Graph> graphs, const ExportOptions& options, std::ostream& out);

}  // namespace lamina::compiler
