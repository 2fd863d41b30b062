// `lamina tune`: measures schedules of the kernels of graph dumps on this machine, and keeps the fastest for later runs.
#pragma once

#include <string>
#include <vector>

#include "backends/backend.h"
#include "lamina/overrides.h"

namespace lamina::driver {

struct TuneOptions {
  std::vector<std::string> files;
  std::string engine, device;
  std::string policy = "fusion";
  double milliseconds = TuningRequest::kDefaultMilliseconds;  // per kernel
  bool again = false;
  int threads = 0;
  Overrides overrides;
};

int tune(const TuneOptions& options);

}  // namespace lamina::driver
