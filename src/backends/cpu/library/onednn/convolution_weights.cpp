// Works in three rounds. Tensors that are not dense with the channels last are copied to scratch memory. Blocks of images
// compute partial gradients in f32, each for a slice of the channels of the positions. These are summed in the order of the
// blocks and copied to the user's layout. Blocks and slices depend only on shapes and types.
#include "backends/cpu/library/onednn/convolution_weights.h"

#include <algorithm>
#include <list>

#include "backends/cpu/library/onednn/convolution_cut.h"
#include "backends/cpu/library/onednn/dense_block.h"
#include "backends/cpu/library/onednn/primitive_call.h"
#include "backends/cpu/library/onednn/weights_layout.h"

namespace lamina::cpu::onednn {

namespace {

struct Gradient {
  PrimitiveCall call;  // args: image, positions, gradient
  dnnl::memory::desc weights;
};

// The input of a block, dense and with the channels last, and the gradient in f32, in any layout or a given one.
struct Problem {
  SlabWindow window;
  dnnl::memory::desc image, positions, weights;
};

Gradient gradient(const Problem& p) {
  const SlabWindow& w = p.window;
  const dnnl::algorithm direct = dnnl::algorithm::convolution_direct;
  const dnnl::convolution_forward::primitive_desc forward(engine(), dnnl::prop_kind::forward_training, direct, p.image,
                                                          in_any_layout(p.weights, p.image.get_data_type()), p.positions,
                                                          w.strides, w.dilations, w.pads_begin, w.pads_end, attributes());
  const dnnl::convolution_backward_weights::primitive_desc made(engine(), direct, p.image, p.weights, p.positions, w.strides,
                                                                w.dilations, w.pads_begin, w.pads_end, forward, attributes());
  PrimitiveCall::Arguments arguments{
      {DNNL_ARG_SRC, p.image}, {DNNL_ARG_DIFF_DST, p.positions}, {DNNL_ARG_DIFF_WEIGHTS, made.diff_weights_desc()}};
  return {{made, dnnl::convolution_backward_weights(made), std::move(arguments)}, made.diff_weights_desc()};
}

Dims dims_of(int64_t images, int64_t channels, const Dims& extents) {
  Dims dims{images, channels};
  dims.insert(dims.end(), extents.begin(), extents.end());
  return dims;
}

// A tensor in the form that blocks read: in place, or a copy of some of its channels, made image by image.
struct Staged {
  AxesInOrder given;
  int64_t channel = 0;  // the first one
  AxesInOrder read;
  DenseBlock image;
  size_t at = 0;  // of the copy, in scratch
};

// Blocks with the same cut share a primitive.
struct BlockKind {
  int64_t images, image_rows, position_rows, pad_begin, slice;
  Gradient gradient;

  bool is_like(const BlockKind& other) const {
    return images == other.images && image_rows == other.image_rows && position_rows == other.position_rows &&
           pad_begin == other.pad_begin && slice == other.slice;
  }
};

// A slice of the channels of the positions, with its partial gradients, one per block, one after the other.
struct Slice {
  std::vector<const BlockKind*> kinds;  // per block
  size_t partials_at = 0, partial_bytes = 0;
};

constexpr size_t kSumBytes = 16 << 10;  // of a partial gradient that a thread sums at a time

class WeightGradient final : public Primitive {
 public:
  WeightGradient(const kernel::LibraryStep& step, const PrimitiveUse& use)
      : shape_(convolution_shape(step)), slots_(use.threads) {
    made_for(step.op, [&] {
      if (!is_cut(sum_cut_of(shape_))) cut(whole_sum(shape_));
    });
    place_scratch();
    name_ = join(kinds_.front().gradient.call.implementation(), ", ", blocks_.size(), " x ", slices_.size(), " partial sums");
  }

  const std::string& name() const override { return name_; }
  size_t scratch_bytes() const override { return scratch_bytes_; }

  void run(std::span<void* const> args, void* scratch, const Executor& executor) const override {
    const Memory memory{args, static_cast<char*>(scratch), executor.at_most(slots_)};
    stage(memory);
    const int64_t slices = std::ssize(slices_);
    for_each_tile(slices * std::ssize(blocks_), memory.executor, [&](int64_t i, int thread) {
      run_block(memory, static_cast<size_t>(i / slices), static_cast<size_t>(i % slices), thread);
    });
    if (blocks_.size() > 1) sum(memory);
    finishing_.run(memory.scratch, args[shape_.weights.port], memory.executor,
                   [&](int thread) { return own_scratch(memory, thread); });
  }

 private:
  struct Memory {
    std::span<void* const> args;
    char* scratch;
    Executor executor;
  };

  // ---- compiling

  // Whether all blocks use generated primitives with the same layout of the gradient.
  bool is_cut(const SumCut& how) {
    try {
      cut(how);
      return how.blocks.size() == 1 || std::none_of(kinds_.begin(), kinds_.end(), [](const BlockKind& kind) {
               return is_plain_loops(kind.gradient.call.implementation());
             });
    } catch (const dnnl::error& error) {
      rethrow_out_of_memory(error);
      return false;
    }
  }

  void cut(const SumCut& how) {
    kinds_.clear();
    staged_.clear();
    slices_.clear();
    finishing_ = {};
    common_bytes_ = 0;
    blocks_ = how.blocks;
    add_staged(shape_.image, 0, shape_.image.dims[1], shape_.image_extents, shape_.image_at);
    const int64_t channels = shape_.positions.dims[1];
    for (int64_t channel = 0; channel < channels; channel += how.slice) {
      const int64_t slice = std::min(how.slice, channels - channel);
      add_staged(shape_.positions, channel, slice, shape_.position_extents, Dims(shape_.spatial_rank(), 0));
      add_slice(channel, slice);
    }
  }

  // `extents`: those of blocks, which may exceed the tensor's. `before`: zeros before the tensor.
  void add_staged(const AxesInOrder& tensor, int64_t channel, int64_t channels, const Dims& extents, const Dims& before) {
    const Dims all = dims_of(shape_.batch(), channels, extents);
    if (tensor.dims == all && is_block(tensor, all)) {
      staged_.push_back({tensor, 0, tensor, {}, 0});
      return;
    }
    Dims present(tensor.dims.begin() + 2, tensor.dims.end());
    for (size_t axis = 0; axis < present.size(); ++axis) present[axis] = std::min(present[axis], extents[axis]);
    DenseBlock image(DenseBlock::Way::in, tensor,
                     {dims_of(1, channels, extents), dims_of(1, channels, present), dims_of(0, 0, before)}, tensor.dtype, true);
    staged_.push_back({tensor, channel, as_block(tensor.dtype, all), std::move(image), common_bytes_});
    common_bytes_ += aligned(static_cast<size_t>(staged_.back().read.bytes(0, shape_.batch())));
  }

  void add_slice(int64_t channel, int64_t channels) {
    Slice slice;
    dnnl::memory::desc layout;  // that of the first block
    for (const Block& block : blocks_) {
      slice.kinds.push_back(&kind_of(block, channels, layout));
      layout = slice.kinds.front()->gradient.weights;
    }
    slice.partials_at = common_bytes_;
    slice.partial_bytes = aligned(layout.get_size());
    common_bytes_ += blocks_.size() * slice.partial_bytes;
    finishing_.add(layout, static_cast<int64_t>(slice.partials_at), weights_desc(shape_, channels),
                   shape_.weights.bytes(0, channel));
    slices_.push_back(std::move(slice));
  }

  const BlockKind& kind_of(const Block& block, int64_t slice, dnnl::memory::desc layout) {
    const Slab& slab = block.slab;
    BlockKind kind{block.images, slab.image_rows, slab.position_rows, slab.pad_begin, slice, {}};
    for (const BlockKind& other : kinds_)
      if (other.is_like(kind)) return other;
    const SlabWindow window = window_in(shape_, slab);
    const Dims image = dims_of(block.images, shape_.image.dims[1], window.image);
    const Dims positions = dims_of(block.images, slice, window.positions);
    if (layout.is_zero()) layout = in_any_layout(weights_desc(shape_, slice), dnnl::memory::data_type::f32);
    kind.gradient =
        gradient({window, channels_last(shape_.image.dtype, image), channels_last(shape_.positions.dtype, positions), layout});
    return kinds_.emplace_back(std::move(kind));
  }

  // Copies of tensors and partial gradients, then the memory of each thread.
  void place_scratch() {
    thread_bytes_ = finishing_.scratch_bytes();
    for (const Staged& staged : staged_) thread_bytes_ = std::max(thread_bytes_, staged.image.scratch_bytes());
    for (const BlockKind& kind : kinds_) thread_bytes_ = std::max(thread_bytes_, kind.gradient.call.scratch_bytes());
    scratch_bytes_ = common_bytes_ + static_cast<size_t>(slots_) * thread_bytes_;
  }

  // ---- running

  char* own_scratch(const Memory& memory, int thread) const {
    return memory.scratch + common_bytes_ + static_cast<size_t>(thread) * thread_bytes_;
  }

  static void* base(const Memory& memory, const Staged& staged) {
    return staged.image.is_in_place() ? memory.args[staged.given.port] : memory.scratch + staged.at;
  }

  void stage(const Memory& memory) const {
    const int64_t tensors = std::ssize(staged_);
    const bool is_copied = std::any_of(staged_.begin(), staged_.end(), [](const Staged& s) { return !s.image.is_in_place(); });
    for_each_tile(is_copied ? shape_.batch() * tensors : 0, memory.executor, [&](int64_t i, int thread) {
      const Staged& staged = staged_[static_cast<size_t>(i % tensors)];
      if (staged.image.is_in_place()) return;
      const int64_t image = i / tensors, from = staged.given.bytes(0, image) + staged.given.bytes(1, staged.channel);
      staged.image.copy(offset(memory.args[staged.given.port], from), offset(base(memory, staged), staged.read.bytes(0, image)),
                        own_scratch(memory, thread));
    });
  }

  void run_block(const Memory& memory, size_t index, size_t slice_index, int thread) const {
    const Slice& slice = slices_[slice_index];
    const Block& block = blocks_[index];
    const Staged &image = staged_[0], &positions = staged_[1 + slice_index];
    const size_t row_axis = shape_.slab_axis + 2;
    const int64_t image_at = image.read.bytes(0, block.image) + image.read.bytes(row_axis, block.slab.image_begin);
    const int64_t positions_at =
        positions.read.bytes(0, block.image) + positions.read.bytes(row_axis, block.slab.position_begin);
    slice.kinds[index]->gradient.call.run({offset(base(memory, image), image_at), offset(base(memory, positions), positions_at),
                                           memory.scratch + slice.partials_at + index * slice.partial_bytes},
                                          own_scratch(memory, thread));
  }

  // Adds to the first partial gradient of each slice.
  void sum(const Memory& memory) const {
    const auto chunks = static_cast<int64_t>((slices_[0].partial_bytes + kSumBytes - 1) / kSumBytes);  // the others have fewer
    for_each_tile(std::ssize(slices_) * chunks, memory.executor, [&](int64_t i, int) {
      const Slice& slice = slices_[static_cast<size_t>(i / chunks)];
      const size_t first = std::min(static_cast<size_t>(i % chunks) * kSumBytes, slice.partial_bytes);
      char* const total = memory.scratch + slice.partials_at + first;
      for (size_t block = 1; block < blocks_.size(); ++block)
        add(reinterpret_cast<float*>(total), reinterpret_cast<const float*>(total + block * slice.partial_bytes),
            std::min(kSumBytes, slice.partial_bytes - first) / sizeof(float));
    });
  }

  static void add(float* total, const float* partial, size_t count) {
    for (size_t i = 0; i < count; ++i) total[i] += partial[i];
  }

  ConvolutionShape shape_;
  int slots_;  // the largest number of threads
  std::string name_;
  std::vector<Block> blocks_;
  std::list<BlockKind> kinds_;  // referenced by slices
  std::vector<Staged> staged_;  // the image, then the positions of each slice
  std::vector<Slice> slices_;
  LayoutChange finishing_;
  size_t common_bytes_ = 0, thread_bytes_ = 0, scratch_bytes_ = 0;
};

}  // namespace

std::unique_ptr<const Primitive> weight_gradient(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  return std::make_unique<WeightGradient>(step, use);
}

}  // namespace lamina::cpu::onednn
