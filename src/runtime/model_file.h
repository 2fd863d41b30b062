// The memory of a model: the file, mapped or the caller's, and machine code.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace lamina::runtime {

// Memory that is mapped, and unmapped with its last owner.
using Mapping = std::shared_ptr<const void>;

class ModelFile {
 public:
  // Throws Error(invalid_arguments) for a file that cannot be read.
  explicit ModelFile(const std::string& path);
  // The caller's memory.
  explicit ModelFile(std::string_view bytes) : bytes_(bytes) {}
  ~ModelFile();
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  std::string_view bytes() const { return bytes_; }
  // A part of the file as executable memory, never writable: mapped from the file if that begins at a page and the file system
  // allows it, else a copy. Throws Error(runtime_error) if the system allows no executable memory.
  Mapping map_code(std::string_view code) const;

 private:
  int file_ = -1;
  std::string_view bytes_;
};

}  // namespace lamina::runtime
