// Output files that appear whole or not at all: each is written under a temporary name in the folder of its place, and all are
// renamed at the end. What is there and is not a regular file (a device, a pipe, standard output) is written, never replaced.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace lamina::driver {

// False for a path that cannot be examined as well.
bool is_directory(const std::string& path);

// From now on SIGINT, SIGTERM and SIGHUP remove the temporary files before they end the process, and a file that grows beyond
// the limit of the process is an error of writing, not a signal.
void handle_signals_of_files();

class OutputFiles {
 public:
  OutputFiles() = default;
  OutputFiles(const OutputFiles&) = delete;
  OutputFiles& operator=(const OutputFiles&) = delete;
  ~OutputFiles();  // removes what was not committed

  // Makes the folder of `path` where it is missing, lets `write` fill the file, and throws Error(invalid_arguments) naming
  // the path when that fails. What goes to a special file is kept in memory until commit().
  void add(const std::string& path, const std::function<void(std::ostream&)>& write);

  void commit();

 private:
  struct TemporaryName;
  struct Pending {
    std::string path;
    TemporaryName* temporary = nullptr;  // null for a special file
    std::string text = {};               // of a special file
  };
  void add_regular(const std::string& path, const std::string& target, const std::function<void(std::ostream&)>& write);
  void make_folder_of(const std::string& path);
  static void write_special(const Pending& file);
  static void remove_temporaries_and_raise(int signal);
  friend void handle_signals_of_files();

  std::vector<Pending> pending_;
  std::vector<std::string> new_folders_;  // outer ones first
};

}  // namespace lamina::driver
