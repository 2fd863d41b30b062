// Weights of a convolution in the user's layout and in the one that a primitive wants.
#pragma once

#include <vector>

#include "backends/cpu/library/onednn/convolution_shape.h"
#include "backends/cpu/library/onednn/primitive_call.h"

namespace lamina::cpu::onednn {

// The user's weights of a slice of the channels that are made (of the positions', where weights are made), with the axes in
// oneDNN's order: groups if there are several, channels made, the other channels, taps.
dnnl::memory::desc weights_desc(const ConvolutionShape& shape, int64_t slice);

dnnl::memory::desc in_any_layout(const dnnl::memory::desc& desc, dnnl::memory::data_type type);

// From one layout or type to another, in pieces that threads take.
class LayoutChange {
 public:
  // Adds weights that begin at these bytes; groups, or channels, are the first axes.
  void add(const dnnl::memory::desc& from, int64_t from_bytes, const dnnl::memory::desc& to, int64_t to_bytes);
  // The same of integers, with the sums over weights that oneDNN keeps behind them: in one piece, from dense memory.
  void add_with_sums(const dnnl::memory::desc& from, int64_t from_bytes, const dnnl::memory::desc& to, int64_t to_bytes);

  size_t scratch_bytes() const;  // of one thread
  // `own_scratch(thread)`: scratch_bytes() for each thread.
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
    PrimitiveCall gather = {};  // into dense memory, in front of the copy
    size_t gathered_bytes = 0;
  };
  std::vector<Piece> pieces_;
};

}  // namespace lamina::cpu::onednn
