// Output files that appear completely or not at all: each is written under a temporary name in its final folder, and all are
// renamed at the end. Existing special files (a device, a pipe, standard output) are written to, never replaced.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace lamina::driver {

// Also returns false for a path that cannot be examined.
bool is_directory(const std::string& path);

// Installs handlers: SIGINT, SIGTERM and SIGHUP remove the temporary files before they terminate the process, and exceeding
// the process's file size limit is a write error instead of a signal.
void handle_signals_of_files();

class OutputFiles {
 public:
  OutputFiles() = default;
  OutputFiles(const OutputFiles&) = delete;
  OutputFiles& operator=(const OutputFiles&) = delete;
  ~OutputFiles();  // removes files that were not committed

  // Creates the folder of `path` if it is missing and calls `write` to fill the file. Throws Error(invalid_arguments) with
  // the path if that fails. Output to a special file is kept in memory until commit().
  void add(const std::string& path, const std::function<void(std::ostream&)>& write);

  void commit();

 private:
  struct TemporaryName;
  struct Pending {
    std::string path;
    TemporaryName* temporary = nullptr;  // null for a special file
    std::string text = {};               // contents for a special file
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
