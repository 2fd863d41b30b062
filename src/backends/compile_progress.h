// Progress reports of the compilation on this thread. The receiver may stop the compilation.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "interface/per_thread.h"
#include "interface/status.h"

namespace lamina {

struct CompileProgress {
  // Returns whether to stop. Null: there is no receiver.
  int (*report)(void* user, size_t done, size_t total, const char* name) = nullptr;
  void* user = nullptr;
  std::string name = {};  // of the partition that is compiled
};

// The state of this thread.
inline CompileProgress& compile_progress() { return PerThread<CompileProgress, CompileProgress>::get(); }

// Reports that `done` of `total` steps are compiled. Throws Error(runtime_error) if the receiver stops the compilation.
inline void report_compile_progress(size_t done, size_t total) {
  const CompileProgress& progress = compile_progress();
  if (progress.report == nullptr || progress.report(progress.user, done, total, progress.name.c_str()) == 0) return;
  throw Error(Status::runtime_error,
              join("compile of ", progress.name, ": stopped by the caller after ", done, " of ", total, " steps"));
}

// Restores the previous receiver at the end of the scope.
class CompileProgressScope {
 public:
  explicit CompileProgressScope(CompileProgress progress) : before_(std::exchange(compile_progress(), std::move(progress))) {}
  CompileProgressScope(const CompileProgressScope&) = delete;
  CompileProgressScope& operator=(const CompileProgressScope&) = delete;
  ~CompileProgressScope() { compile_progress() = std::move(before_); }

 private:
  CompileProgress before_;
};

}  // namespace lamina
