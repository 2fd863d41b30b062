// `lamina explain`: each op, its partition, its kernel, and why it is or is not fused with its neighbours.
#pragma once

#include <string>

#include "lamina/overrides.h"

namespace lamina::driver {

struct ExplainOptions {
  std::string file;
  std::string engine, device;
  std::string policy = "fusion";
  bool kernel_texts = false;
  Overrides overrides;
};

int explain(const ExplainOptions& options);

}  // namespace lamina::driver
