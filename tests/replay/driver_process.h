// Runs the driver as a user does, in a separate folder.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/emulator.h"

namespace lamina::driver::testing {

struct Outcome {
  int code = -1;
  std::string out, err;
};

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Workspace {
 public:
  explicit Workspace(const std::string& name)
      : folder_(std::filesystem::temp_directory_path() / ("lamina_" + name + "_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Workspace() { std::filesystem::remove_all(folder_); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  // Runs `ENVIRONMENT lamina ARGUMENTS` through the shell.
  Outcome run(const std::string& arguments, const std::string& environment = "") const {
    const std::string command =
        environment + " " LAMINA_EMULATOR LAMINA_DRIVER " " + arguments + " >" + path("out.txt") + " 2>" + path("err.txt");
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_text(path("out.txt")),
            read_text(path("err.txt"))};
  }
  size_t file_count() const {
    size_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) count += entry.is_regular_file() ? 1 : 0;
    return count;
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace lamina::driver::testing
