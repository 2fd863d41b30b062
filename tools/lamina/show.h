// `lamina show`: graphs as pictures, their ops by partition, with kernels and tiles; and the times of a replay.
#pragma once

#include <string>
#include <vector>

#include "lamina/explain.h"

namespace lamina::driver {

struct ShowOptions {
  std::vector<std::string> files;
  std::string out;     // .html, .dot, or .svg where Graphviz' dot is found; "" or a folder: NAME.html of each file
  std::string report;  // of `lamina replay --report`, "" for none
  bool compile = true;
  GraphChoice choice;  // but the file
};

int show(const ShowOptions& options);

}  // namespace lamina::driver
