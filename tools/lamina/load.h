// From a file on the command line to a finalized graph and its partitions.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "lamina/overrides.h"
#include "passes/pipeline.h"

namespace lamina::driver {

// Reads, overrides, builds, checks. Throws Error with one sentence that begins with the file.
Graph load_graph(const std::string& file, const Overrides& overrides);

// What --engine may name: the backends that were built.
const std::vector<std::string>& engine_names();

// The backend that `--engine` names, the CPU's without one. `device` chooses among GPUs: "cuda", "opencl", either with a number
// behind a colon, "" for the first there is. Throws Error(unimplemented) where there is no GPU.
const Backend& backend_for(const std::string& engine, const std::string& device);

// The one rule of all subcommands: `engine`, if it is given; else what the dump's engine_kind says. A dump for a GPU runs on
// the CPU where there is no GPU. What the dump chose is told on stderr, with the file in front.
const Backend& backend_of(const Graph& graph, const std::string& file, const std::string& engine, const std::string& device);

// `LayerNorm "ln0" + GELU "gelu"`.
std::string describe_ops(const Partition& partition);

// `FILE: op 3 (MatMul "mm"): ` for the first op of a partition, which stands for all of it.
std::string place_of(const std::string& file, const Partition& partition);

}  // namespace lamina::driver
