// Output files that appear whole or not at all: each is written under a temporary name beside its place, and all are renamed
// at the end.
#pragma once

#include <fstream>
#include <string>
#include <vector>

namespace lamina::driver {

class OutputFiles {
 public:
  OutputFiles() = default;
  OutputFiles(const OutputFiles&) = delete;
  OutputFiles& operator=(const OutputFiles&) = delete;
  ~OutputFiles();  // removes what was not committed

  // Makes the folder of `path` where it is missing, lets `write` fill the file, and throws Error(invalid_arguments) naming
  // the path when that fails.
  template <typename Write>
  void add(const std::string& path, const Write& write) {
    std::ofstream file = open(path);
    write(file);
    close(file, path);
  }

  void commit();

 private:
  struct Pending {
    std::string temporary;
    std::string path;
  };
  std::ofstream open(const std::string& path);
  static void close(std::ofstream& file, const std::string& path);

  std::vector<Pending> pending_;
};

}  // namespace lamina::driver
