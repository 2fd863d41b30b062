// `lamina show`: draws graphs as pictures, with their ops by partition, kernels, tiles, and the times of a replay.
#pragma once

#include <string>
#include <vector>

#include "lamina/explain.h"

namespace lamina::driver {

struct ShowOptions {
  std::vector<std::string> files;
  std::string out;     // .html, .dot, or .svg if Graphviz' dot is found; "" or a folder: NAME.html for each file
  std::string report;  // a report of `lamina replay --report`; "" for none
  bool compile = true;
  GraphChoice choice;  // all members except the file
};

int show(const ShowOptions& options);

}  // namespace lamina::driver
