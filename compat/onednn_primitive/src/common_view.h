// Views blocked tensors as strided ones: a dim of 32 in blocks of 16 becomes two dims, 2 and 16, over the same memory.
//
// Input: the tensors of one primitive, each with its own blocks, whose shapes are equal except that some lack trailing dims.
// Output: for each tensor the strides of one common shape, in which every dim is split at every block border of any tensor.
#pragma once

#include <cstdint>
#include <vector>

#include "oneapi/dnnl/dnnl.hpp"

namespace dnnl {

class CommonView {
 public:
  // `shape` is the shape of the data. Throws dnnl::error(unimplemented) if the block sizes of a dim do not divide one another
  // or the dim.
  CommonView(const memory::dims& shape, const std::vector<memory::desc>& tensors);

  struct Tensor {
    memory::dims dims, strides;
  };
  // `tensor` has some or all of the leading dims of the shape.
  Tensor view(const memory::desc& tensor) const;

  // The number of dims that the last dim of the shape is split into.
  int pieces_of_last_dim() const { return static_cast<int>(borders_.back().size()); }

 private:
  std::vector<memory::dims> borders_;  // per dim: the number of elements per step of each piece, outermost piece first
  memory::dims shape_;
};

}  // namespace dnnl
