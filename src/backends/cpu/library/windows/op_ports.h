// Ops whose tensors are pixels: with batch, channels and one to three spatial axes, in the order of attribute data_format.
#pragma once

#include <string>
#include <string_view>

#include "backends/cpu/program/window_work.h"
#include "interface/op_schema.h"
#include "kernels/plan.h"

namespace lamina::cpu {

OpView view_of(const kernel::LibraryStep& step);
ImagePort input_port(const kernel::LibraryStep& step, std::string_view name);
ImagePort output_port(const kernel::LibraryStep& step);  // the only one

// Returns "", or why an op has too many axes. Shapes may be unknown.
std::string why_not_image(const Graph& graph, const Op& op);

// Whether images have whole vectors of contiguous channels, or contiguous rows that are long enough: a kernel then loads
// vectors instead of single elements.
bool has_contiguous_channels(const Graph& graph, const Op& op);
bool has_contiguous_rows(const Graph& graph, const Op& op);

}  // namespace lamina::cpu
