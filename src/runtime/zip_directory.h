// The members of a zip archive that are stored, not compressed: where their data are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lamina::runtime {

struct ZipMember {
  std::string name;
  std::string_view data;
};

// Throws Error(invalid_arguments): the bytes are no such archive, or a member exceeds it.
std::vector<ZipMember> read_zip_directory(std::string_view file);

}  // namespace lamina::runtime
