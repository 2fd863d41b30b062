#include "lamina/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <locale>
#include <sstream>
#include <system_error>

#include "interface/status.h"

namespace lamina::driver {

namespace fs = std::filesystem;

// A list that a signal handler can read at any time: nodes are never freed.
struct OutputFiles::TemporaryName {
  std::string path;
  std::atomic<bool> is_there{true};
  TemporaryName* next = nullptr;

  static std::atomic<TemporaryName*>& first() {
    static std::atomic<TemporaryName*> node{nullptr};
    return node;
  }
  static TemporaryName* add(std::string path) {
    auto* const node = new TemporaryName{.path = std::move(path)};
    node->next = first().load();
    first().store(node);
    return node;
  }
};

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw Error(Status::invalid_arguments, join(path, ": ", why));
}
[[noreturn]] void fail_with_errno(const std::string& path, const char* what, int error) {
  fail(path, join(what, std::generic_category().message(error)));
}

// STDOUT_FILENO or STDERR_FILENO if that stream is the same file, else -1.
int standard_stream_of(const struct stat& file) {
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat other{};
    if (::fstat(stream, &other) == 0 && other.st_dev == file.st_dev && other.st_ino == file.st_ino) return stream;
  }
  return -1;
}

bool write_all(int file, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(file, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

}  // namespace

bool is_directory(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

void OutputFiles::remove_temporaries_and_raise(int signal) {
  for (const TemporaryName* name = TemporaryName::first().load(); name != nullptr; name = name->next)
    if (name->is_there) ::unlink(name->path.c_str());
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void handle_signals_of_files() {
  OutputFiles::TemporaryName::first();  // initialises the list here, because the handler must not
  ::signal(SIGXFSZ, SIG_IGN);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    if (::signal(signal, OutputFiles::remove_temporaries_and_raise) == SIG_IGN) ::signal(signal, SIG_IGN);
}

OutputFiles::~OutputFiles() {
  for (const Pending& file : pending_) {
    if (file.temporary == nullptr) continue;
    ::unlink(file.temporary->path.c_str());
    file.temporary->is_there = false;
  }
  for (auto folder = new_folders_.rbegin(); folder != new_folders_.rend(); ++folder) ::rmdir(folder->c_str());
}

void OutputFiles::make_folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  fs::path part;
  for (const fs::path& name : folder) {
    part /= name;
    if (::mkdir(part.c_str(), 0777) == 0) {
      new_folders_.push_back(part.string());
    } else if (const int error = errno; !is_directory(part.string())) {
      fail_with_errno(path, "its folder cannot be created: ", error);
    }
  }
}

void OutputFiles::add(const std::string& path, const std::function<void(std::ostream&)>& write) {
  make_folder_of(path);
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) {
    if (const int error = errno; error != ENOENT) fail_with_errno(path, "cannot be written: ", error);
    if (::lstat(path.c_str(), &found) == 0)
      fail(path, "is a symbolic link whose target does not exist, allowed is a link to a file");
    return add_regular(path, path, write);
  }
  if (S_ISDIR(found.st_mode)) fail(path, "is a directory, allowed is a file name");
  if (S_ISREG(found.st_mode) && standard_stream_of(found) < 0) {
    std::error_code error;
    const fs::path target = fs::canonical(path, error);  // resolves links, so that a link is kept and its target is replaced
    if (error) fail(path, join("cannot be written: ", error.message()));
    return add_regular(path, target.string(), write);
  }
  std::stringbuf text;
  std::ostream stream(&text);
  stream.imbue(std::locale::classic());
  write(stream);
  pending_.push_back({.path = path, .text = std::move(text).str()});
}

void OutputFiles::add_regular(const std::string& path, const std::string& target,
                              const std::function<void(std::ostream&)>& write) {
  // The temporary name is short enough for every file system, independent of the final name's length.
  const fs::path name = fs::path(target).parent_path() / join(".lamina-", ::getpid(), "-", pending_.size(), ".tmp");
  if (fs::path(target).filename().string().size() > 255) fail_with_errno(path, "cannot be written: ", ENAMETOOLONG);
  std::error_code ignored;
  if (fs::exists(target, ignored) && ::access(target.c_str(), W_OK) != 0) fail_with_errno(path, "cannot be written: ", errno);
  pending_.push_back({.path = target, .temporary = TemporaryName::add(name.string())});
  errno = 0;
  std::ofstream file(name, std::ios::binary | std::ios::trunc);
  if (!file) fail_with_errno(path, "cannot be written: ", errno);
  write(file);
  file.close();
  if (!file) fail_with_errno(path, "cannot be written to its end: ", errno == 0 ? EIO : errno);
}

void OutputFiles::write_special(const Pending& file) {
  struct stat found{};
  const int stream = ::stat(file.path.c_str(), &found) == 0 ? standard_stream_of(found) : -1;
  if (stream == STDOUT_FILENO) std::cout.flush();
  const int opened = stream < 0 ? ::open(file.path.c_str(), O_WRONLY | O_CLOEXEC) : -1;
  const int target = stream < 0 ? opened : stream;
  const bool written = target >= 0 && write_all(target, file.text);
  const int error = errno;
  if (opened >= 0) ::close(opened);
  if (!written) fail_with_errno(file.path, "cannot be written: ", error);
}

void OutputFiles::commit() {
  for (const Pending& file : pending_)
    if (file.temporary == nullptr) write_special(file);
  for (const Pending& file : pending_) {
    if (file.temporary == nullptr) continue;
    if (::rename(file.temporary->path.c_str(), file.path.c_str()) != 0)
      fail_with_errno(file.path, "cannot be renamed from its temporary name: ", errno);
    file.temporary->is_there = false;
  }
  pending_.clear();
  new_folders_.clear();
}

}  // namespace lamina::driver
