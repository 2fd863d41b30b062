#include "runtime/model_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "interface/status.h"

namespace lamina::runtime {

namespace {

std::string reason() { return std::strerror(errno); }

Mapping owned(void* memory, size_t bytes) {
  return {memory, [bytes](const void* mapped) { munmap(const_cast<void*>(mapped), bytes); }};
}

}  // namespace

ModelFile::ModelFile(const std::string& path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  const auto fail = [&](const std::string& why) {
    if (file_ >= 0) close(file_);
    throw Error(Status::invalid_arguments, join("it cannot be read: ", why));
  };
  struct stat status;
  if (file_ < 0 || fstat(file_, &status) != 0) fail(reason());
  if (!S_ISREG(status.st_mode)) fail("it is not a regular file");
  if (status.st_size == 0) fail("it is empty");
  const auto bytes = static_cast<size_t>(status.st_size);
  void* const memory = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file_, 0);
  if (memory == MAP_FAILED) fail(reason());
  bytes_ = {static_cast<const char*>(memory), bytes};
}

ModelFile::~ModelFile() {
  if (file_ < 0) return;
  munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  close(file_);
}

Mapping ModelFile::map_code(std::string_view code) const {
  if (code.empty()) return nullptr;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto at = static_cast<size_t>(code.data() - bytes_.data());
  if (file_ >= 0 && at % page == 0) {
    void* const mapped = mmap(nullptr, code.size(), PROT_READ | PROT_EXEC, MAP_PRIVATE, file_, static_cast<off_t>(at));
    if (mapped != MAP_FAILED) return owned(mapped, code.size());
  }
  void* const copy = mmap(nullptr, code.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) throw std::bad_alloc();
  Mapping owner = owned(copy, code.size());
  std::memcpy(copy, code.data(), code.size());
  if (mprotect(copy, code.size(), PROT_READ | PROT_EXEC) != 0)
    throw Error(Status::runtime_error, join("the system allows no executable memory: ", reason()));
  __builtin___clear_cache(static_cast<char*>(copy), static_cast<char*>(copy) + code.size());
  return owner;
}

}  // namespace lamina::runtime
