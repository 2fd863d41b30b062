// Convolutions and their gradients to GPU source: products whose left factor is read through a window
// (kernels/windowed_contraction.h). Extents and strides are numbers in the text, so that the divisions which find the place of
// a row are multiplications; the number of samples is a word.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/gpu/emit/emit_kernel.h"
#include "backends/gpu/emit/product_tile.h"
#include "backends/gpu/schedule/matrix_tile.h"
#include "kernels/windowed_contraction.h"

namespace lamina::gpu {

struct ConvolutionForm {
  ProductTile tile;
  std::optional<MatrixTile> matrix_tile;  // the product is by matrix instructions, in this tile
  bool by_element = false;                // a thread per element of dst, without tiles

  int rows() const { return matrix_tile ? matrix_tile->rows : tile.rows(); }  // of a work-group's tile
  int columns() const { return matrix_tile ? matrix_tile->columns : tile.columns(); }
  int group_size() const { return matrix_tile ? matrix_tile->group_size() : tile.group_size(); }
  int resident_groups() const;
};

ConvolutionForm choose_form(const kernel::WindowedContraction& contraction, const DeviceLimits& limits,
                            const Language& language);

KernelSource emit_convolution(const kernel::WindowedContraction& contraction, const ConvolutionForm& form,
                              const Language& language);

// The number of work-groups is their product.
std::vector<int64_t> groups_of(const kernel::WindowedContraction& contraction, const ConvolutionForm& form);

}  // namespace lamina::gpu
