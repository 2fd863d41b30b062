// Weights of a convolution in the user's layout and in that of a primitive.
#pragma once

#include <vector>

#include "backends/cpu/library/onednn/convolution_shape.h"
#include "backends/cpu/library/onednn/primitive_call.h"

namespace lamina::cpu::onednn {

// The user's weights for a slice of the output channels (of the positions' channels, if weights are computed), with the axes
// in oneDNN's order: groups if there are several, output channels, the other channels, taps.
dnnl::memory::desc weights_desc(const ConvolutionShape& shape, int64_t slice);

dnnl::memory::desc in_any_layout(const dnnl::memory::desc& desc, dnnl::memory::data_type type);

// Conversion between layouts or types, in pieces that threads take.
class LayoutChange {
 public:
  // Adds weights that start at these byte offsets. Groups, or channels, are the first axes.
  void add(const dnnl::memory::desc& from, int64_t from_bytes, const dnnl::memory::desc& to, int64_t to_bytes);
  // The same for integers, including the sums over weights that oneDNN stores after them: in one piece, from dense memory.
  void add_with_sums(const dnnl::memory::desc& from, int64_t from_bytes, const dnnl::memory::desc& to, int64_t to_bytes);

  size_t scratch_bytes() const;  // per thread
  // `own_scratch(thread)`: scratch_bytes() bytes for each thread.
  template <typename OwnScratch>
  void run(const void* from, void* to, const Executor& executor, OwnScratch&& own_scratch) const {
    for_each_tile(std::ssize(pieces_), executor, [&](int64_t i, int thread) {
      const Piece& piece = pieces_[static_cast<size_t>(i)];
      char* const scratch = own_scratch(thread);
      void* source = offset(from, piece.from_bytes);
      if (piece.gather) {
        piece.gather.run({source, scratch}, scratch + piece.gathered_bytes);
        source = scratch;
      }
      piece.copy.run({source, offset(to, piece.to_bytes)}, scratch + piece.gathered_bytes);
    });
  }

 private:
  struct Piece {
    PrimitiveCall copy;
    int64_t from_bytes, to_bytes;
    PrimitiveCall gather = {};  // to dense memory, before the copy
    size_t gathered_bytes = 0;
  };
  std::vector<Piece> pieces_;
};

}  // namespace lamina::cpu::onednn
