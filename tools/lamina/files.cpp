#include "lamina/files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "interface/status.h"

namespace lamina::driver {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw Error(Status::invalid_arguments, join(path, ": ", why));
}

}  // namespace

OutputFiles::~OutputFiles() {
  std::error_code ignored;
  for (const Pending& file : pending_) std::filesystem::remove(file.temporary, ignored);
}

std::ofstream OutputFiles::open(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty()) fs::create_directories(folder, error);
  if (error) fail(path, join("its folder cannot be made: ", error.message()));
  if (fs::is_directory(path, error)) fail(path, "is a directory, allowed is a file name");
  const std::string temporary = join(path, ".", ::getpid(), ".tmp");
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  if (!file) fail(path, join("cannot be written: ", std::strerror(errno)));
  pending_.push_back({temporary, path});
  return file;
}

void OutputFiles::close(std::ofstream& file, const std::string& path) {
  file.close();
  if (!file) fail(path, "cannot be written to its end");
}

void OutputFiles::commit() {
  for (const Pending& file : pending_) {
    std::error_code error;
    std::filesystem::rename(file.temporary, file.path, error);
    if (error) fail(file.path, join("cannot be put in place: ", error.message()));
  }
  pending_.clear();
}

}  // namespace lamina::driver
