// Sums of products by matrix instructions that are divided among work-groups, because the product has few elements and long
// sums, as gradients of weights have.
//
// A divided sum is cut into segments of equal length, the last of which may be shorter. A segment is summed like a whole sum,
// and the sums of the segments are added in f32 in their order, from 0. The length decides bits. It follows from the extents
// below alone, not from the device and not from the tile, and it is a multiple of the terms that any tile has in local memory.
#pragma once

#include <cstdint>

namespace lamina::gpu {

// The terms of a segment, or 0: the sum is not divided.
//
// Of a gradient of weights, whose samples are terms: `rows` x `columns` sums in each of `products` groups.
int64_t segment_of_gradient(int64_t rows, int64_t columns, int64_t products, int64_t terms);
// Of a matrix product. A row has the same bits among any others, so the number of rows and the batch decide nothing: the sums
// are divided as those of one square dst with as many columns.
int64_t segment_of_matrix(int64_t columns, int64_t terms);

// 1 if the sum is not divided.
int64_t segments_of(int64_t terms, int64_t segment_terms);

}  // namespace lamina::gpu
