// `lamina tune`: finds by measuring how the kernels of graph dumps run best on this machine, and keeps it for later runs.
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
  double milliseconds = TuningRequest::kDefaultMilliseconds;  // of each kernel
  bool again = false;
  int threads = 0;
  Overrides overrides;
};

int tune(const TuneOptions& options);

}  // namespace lamina::driver
