// `lamina show`: the graph as a picture, its ops coloured by partition.
#pragma once

#include <string>
#include <vector>

#include "interface/partition.h"
#include "lamina/overrides.h"

namespace lamina::driver {

struct ShowOptions {
  std::string file;
  std::string picture;  // .dot, or .svg where Graphviz' dot is found
  std::string engine, device;
  std::string policy = "fusion";
  Overrides overrides;
};

// The picture in Graphviz' language, of one partition or more. `title` stands above it.
std::string dot_picture(const std::string& title, const std::vector<Partition>& partitions);

int show(const ShowOptions& options);

}  // namespace lamina::driver
