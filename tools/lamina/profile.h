// `lamina profile`: the time of each step of a graph, compared with what the machine can do.
#pragma once

#include <string>

#include "lamina/overrides.h"

namespace lamina::driver {

struct ProfileOptions {
  std::string file;
  std::string engine, device;
  std::string policy = "fusion";
  std::string json_file, trace_file;  // "": not written
  int threads = 0;                    // 0: OpenMP's default
  uint64_t seed = 0;
  double repeat_seconds = 1;
  Overrides overrides;
};

// Prints the table. Returns the exit code 0; throws Error for bad input, and for a partition that cannot run.
int profile(const ProfileOptions& options);

}  // namespace lamina::driver
