// Finds files of the repository and of the optional folder shared/ beside it.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace lamina::testing {

inline const std::filesystem::path kTree = LAMINA_SOURCE_DIR;
inline const std::filesystem::path kShared = kTree.parent_path() / "shared";
inline const std::filesystem::path kOneDnnDumps = kShared / "graphs" / "onednn";

inline std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// Returns the .json files below a folder, sorted; the list is empty if the folder does not exist.
inline std::vector<std::filesystem::path> dumps_below(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::exists(folder)) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace lamina::testing
