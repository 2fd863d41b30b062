// `lamina replay`: runs dumps through an engine, and compares, times and writes what is asked for.
#pragma once

#include <string>
#include <vector>

#include "lamina/overrides.h"

namespace lamina::driver {

struct ReplayOptions {
  std::vector<std::string> files;
  std::string engine;  // "": what the file says
  std::string device;  // among GPUs
  std::string policy = "fusion";
  bool check = false;
  bool bench = false;
  bool allow_reference = false;
  std::string in_folder, out_folder, report_file, source_folder;
  int threads = 0;  // 0: as many as OpenMP takes
  uint64_t seed = 0;
  double repeat_seconds = 0.5;
  Overrides overrides;
};

// Returns the exit code 0 or 1; throws Error for bad input, before anything is written.
int replay(const ReplayOptions& options);

}  // namespace lamina::driver
