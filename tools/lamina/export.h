// `lamina export`: a graph dump, its weights and its machine code as one file for the runtime (docs/export.md).
#pragma once

#include <string>
#include <vector>

#include "lamina/overrides.h"

namespace lamina::driver {

struct ExportCommand {
  std::string file, out;
  std::vector<std::string> isas;    // empty: the best of this machine
  std::string weights_folder;       // ID.npy for inputs that become part of the file
  int threads = 16;                 // the most that the model uses
  bool packed = false;              // the file has packed weights
  std::vector<std::string> shapes;  // "ID:1..8x64,ID:1..8": variants, with ranges that vary together; empty: the graph's shapes
  Overrides overrides;
};

// Returns the exit code: 1 if an op cannot be exported.
int export_graph(const ExportCommand& command);

}  // namespace lamina::driver
