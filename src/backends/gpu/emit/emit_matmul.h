// Matrix products to GPU source, in the dialect of emit_kernel.h: one program for all sizes of one form.
//
// The parameters are buffer and offset of src, weights, bias if there is one, and dst; then words: m, n, k, the batch
// extents, and for each tensor its strides over batch dims, rows and columns, in elements. If sums are divided, the program has
// a second function, and both have more parameters (divided_sums.h).
#pragma once

#include <vector>

#include "backends/gpu/emit/emit_kernel.h"
#include "backends/gpu/emit/library_program.h"
#include "backends/gpu/emit/tile_form.h"
#include "kernels/matmul_stack.h"

namespace lamina::gpu {

// All parameters that determine the text of a program.
struct MatmulForm : TileForm {
  DataType src = DataType::f32, weights = DataType::f32, bias = DataType::undef, dst = DataType::f32;  // undef: no bias
  size_t batch_rank = 0;
  bool src_along_k = true;            // neighbouring threads load neighbours along k, else neighbouring rows
  bool weights_along_columns = true;  // neighbouring columns, else neighbours along k
  bool wide_offsets = false;          // offsets inside a tile need 64 bits
  bool operator==(const MatmulForm&) const = default;
};

MatmulForm choose_form(const kernel::MatmulStack& stack, const DeviceLimits& limits, const Language& language);

KernelSource emit_matmul(const MatmulForm& form, const Language& language);

// The words that the program receives for these sizes.
std::vector<int64_t> words_of(const kernel::MatmulStack& stack, const MatmulForm& form);
// Of the program's functions.
std::vector<Launch> launches_of(const kernel::MatmulStack& stack, const MatmulForm& form);
size_t scratch_bytes_of(const kernel::MatmulStack& stack, const MatmulForm& form);

}  // namespace lamina::gpu
