// Blocked tensors as strided ones: a dim of 32 in blocks of 16 is two dims, 2 and 16, of the same memory.
//
// In:    the tensors of one primitive, of one shape but for what each lacks at its end, each with blocks of its own.
// Out:   for each the strides of one common shape, in which every dim is cut at every block border of any tensor.
#pragma once

#include <cstdint>
#include <vector>

#include "oneapi/dnnl/dnnl.hpp"

namespace dnnl {

class CommonView {
 public:
  // `shape`: of the data. Throws dnnl::error(unimplemented) when the block sizes of a dim do not divide each other or the dim.
  CommonView(const memory::dims& shape, const std::vector<memory::desc>& tensors);

  struct Tensor {
    memory::dims dims, strides;
  };
  // `tensor` has the leading dims of the shape, perhaps all.
  Tensor view(const memory::desc& tensor) const;

  // How many dims the last dim of the shape became.
  int pieces_of_last_dim() const { return static_cast<int>(borders_.back().size()); }

 private:
  std::vector<memory::dims> borders_;  // per dim: elements that one step of each piece takes, outermost piece first
  memory::dims shape_;
};

}  // namespace dnnl
