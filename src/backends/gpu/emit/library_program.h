// Library ops as generated programs. A program is one function, which runs once per step, or several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/gpu/emit/emit_kernel.h"
#include "kernels/plan.h"

namespace lamina::gpu {

// How often and how wide a function runs.
struct Launch {
  std::vector<int64_t> groups;  // the number of work-groups is their product
  int group_size = 1;           // threads of a work-group
};

// In programs with scratch memory, it is a buffer after the others: these parameters follow theirs.
inline constexpr const char* kScratchParameters = "LM_BUFFER scratch, const lm_s64 scratch_offset, ";

struct LibraryProgram {
  KernelSource source;
  std::vector<size_t> args;      // of the step, in the order of the program's buffers
  std::vector<int64_t> words;    // of this step; they follow the buffers
  std::vector<Launch> launches;  // of the source's functions, one after the other, all with the same parameters
  size_t scratch_bytes = 0;
  std::string schedule, text;  // for reports
  bool needs_f64 = false;
};

struct LibraryOp {
  // Returns "" if the program runs the op, else one sentence without the op's name that says why not. Null: it always runs.
  std::string (*why_unsupported)(const Graph& graph, const Op& op);
  LibraryProgram (*program)(const kernel::LibraryStep& step, const DeviceLimits& limits, const Language& language);
};

#define LAMINA_LIBRARY_PROGRAM(kind, name) LibraryOp name##_op();
#include "backends/gpu/emit/library_programs.def"

}  // namespace lamina::gpu
