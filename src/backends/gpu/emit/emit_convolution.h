// Convolutions and their gradients to GPU source: products whose left factor is read through a window
// (kernels/windowed_contraction.h). Extents and strides are numbers in the text, so that the divisions which find the place of
// a row are multiplications; the number of samples is a word. Sums of gradients of weights may be divided (divided_sums.h), and
// factors may be copied before (channels_last.h).
#pragma once

#include <cstdint>
#include <vector>

#include "backends/gpu/emit/channels_last.h"
#include "backends/gpu/emit/emit_kernel.h"
#include "backends/gpu/emit/library_program.h"
#include "backends/gpu/emit/tile_form.h"
#include "kernels/windowed_contraction.h"

namespace lamina::gpu {

struct ConvolutionForm : TileForm {
  bool by_element = false;  // a thread per element of dst, without tiles
  FactorCopies copies;      // only of products by matrix instructions
};

ConvolutionForm choose_form(const kernel::WindowedContraction& contraction, const DeviceLimits& limits,
                            const Language& language);

KernelSource emit_convolution(const kernel::WindowedContraction& contraction, const ConvolutionForm& form,
                              const Language& language);

// The words that the program receives.
std::vector<int64_t> words_of(const kernel::WindowedContraction& contraction, const ConvolutionForm& form);
// Of the program's functions.
std::vector<Launch> launches_of(const kernel::WindowedContraction& contraction, const ConvolutionForm& form);
size_t scratch_bytes_of(const kernel::WindowedContraction& contraction, const ConvolutionForm& form);

}  // namespace lamina::gpu
