// `lamina replay`: runs dumps on an engine, and compares, times and writes results as requested.
#pragma once

#include <string>
#include <vector>

#include "lamina/overrides.h"

namespace lamina::driver {

struct ReplayOptions {
  std::vector<std::string> files;
  std::string engine;  // "": the file's engine
  std::string device;  // selects a GPU
  std::string policy = "fusion";
  bool check = false;
  bool bench = false;
  bool wide = false;  // the table
  bool allow_reference = false;
  std::string in_folder, out_folder, report_file, source_folder;
  int threads = 0;  // 0: OpenMP's default
  uint64_t seed = 0;
  double repeat_seconds = 0.5;
  Overrides overrides;
};

// Returns the exit code 0 or 1; throws Error for bad input, before anything is written.
int replay(const ReplayOptions& options);

}  // namespace lamina::driver
