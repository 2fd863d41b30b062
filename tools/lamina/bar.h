// A progress display: one line on a terminal, which is overwritten; no output elsewhere.
#pragma once

#include <cstddef>
#include <string>

#include "backends/compile_progress.h"

namespace lamina::driver {

// `PLACENAME: WHAT` in at most `width` characters: first the start of the name is cut, then the middle of `what`.
std::string fitted_line(const std::string& place, const std::string& name, const std::string& what, size_t width);

class Bar {
 public:
  explicit Bar(size_t file_count);
  ~Bar() { clear(); }
  Bar(const Bar&) = delete;
  Bar& operator=(const Bar&) = delete;

  void next_file(const std::string& file);
  void show(const std::string& what);               // "[1/2] FILE: what"
  void show(const std::string& what, double done);  // also draws a bar, filled to `done` (0 to 1)
  void clear();

 private:
  size_t file_count_, file_ = 0;
  std::string name_;
  bool shown_, dirty_ = false;
};

// During its lifetime, the bar shows the progress of compilations.
class CompileBar {
 public:
  // `count` partitions are compiled in sequence; `next` starts the next one.
  CompileBar(Bar& bar, size_t count);
  CompileBar(const CompileBar&) = delete;
  CompileBar& operator=(const CompileBar&) = delete;
  void next(size_t partition) { partition_ = partition; }

 private:
  static int step(void* user, size_t done, size_t total, const char* name);

  Bar& bar_;
  size_t count_, partition_ = 0;
  CompileProgressScope scope_;
};

}  // namespace lamina::driver
