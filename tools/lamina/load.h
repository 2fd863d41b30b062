// Loads a file from the command line into a finalized graph and its partitions.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "lamina/overrides.h"
#include "passes/pipeline.h"

namespace lamina::driver {

// Reads, overrides, builds, checks. Throws Error with one sentence that starts with the file name.
Graph load_graph(const std::string& file, const Overrides& overrides);

// The values of --engine: the backends in this build.
const std::vector<std::string>& engine_names();

// The backend for `--engine`; the CPU's if it is empty. `device` selects a GPU: "cuda" or "opencl", optionally followed by a
// colon and a number, or "" for the first GPU. Throws Error(unimplemented) if there is no GPU.
const Backend& backend_for(const std::string& engine, const std::string& device);

// The rule of all subcommands: `engine` if it is given, else the dump's engine_kind. A dump for a GPU runs on the CPU if
// there is no GPU. If the dump selects the engine, a line on stderr, prefixed with the file, reports it.
const Backend& backend_of(const Graph& graph, const std::string& file, const std::string& engine, const std::string& device);

// `LayerNorm "ln0" + GELU "gelu"`.
std::string describe_ops(const Partition& partition);

// `FILE: op 3 (MatMul "mm"): ` for the first op of a partition, which represents the partition.
std::string place_of(const std::string& file, const Partition& partition);

}  // namespace lamina::driver
