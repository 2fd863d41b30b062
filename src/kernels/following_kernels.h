// Kernels that may run on parts of a library step's result.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "kernels/arena_builder.h"
#include "kernels/plan.h"

namespace lamina::kernel {

// Moves a kernel that is between a library step and a kernel that may follow it ahead of the library step, if the two do not
// need each other: what all rows share, computed once (shared_values.h). Keeps the memory of both apart.
void move_kernels_ahead(std::vector<PlanStep>& steps, ArenaBuilder& arena);

// Sets KernelStep::follows_parts of kernels after a library step whose elements each depend on one element of the step's
// result: elementwise ops after a convolution or a product.
void mark_following_kernels(std::vector<PlanStep>& steps);

// Whether the kernel replaces each element of the step's result by a function of this element alone.
bool changes_in_place(const LibraryStep& step, const KernelStep& kernel);

// Library step `s` with the memory of the next kernel's result as its own, if this kernel alone reads the step's result and
// makes each element of another tensor from one of its elements: a part of a concatenation, for example. A step that computes
// the kernel, too, writes there.
std::optional<LibraryStep> with_result_of_kernel(const std::vector<PlanStep>& steps, size_t s);

// A kernel that follows parts writes while the library step before it still reads its inputs: its results are live from that
// step on.
void keep_results_apart(const std::vector<PlanStep>& steps, ArenaBuilder& arena);

// Whether step `s` follows parts of the step before it, which reads this memory. Other threads may still read it then.
bool is_read_by_followed_step(const std::vector<PlanStep>& steps, size_t s, const Binding& memory);

}  // namespace lamina::kernel
