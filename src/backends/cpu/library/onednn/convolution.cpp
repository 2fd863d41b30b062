// Convolutions that compute positions from an image, or an image from positions, in tiles (convolution_cut.h). A thread
// copies the input of a tile to dense memory with the channels last, calls the tile's primitive, and copies the result to its
// destination.
#include <algorithm>
#include <array>
#include <functional>
#include <list>

#include "backends/cpu/library/onednn/convolution_cut.h"
#include "backends/cpu/library/onednn/convolution_weights.h"
#include "backends/cpu/library/onednn/dense_block.h"
#include "backends/cpu/library/onednn/families.h"
#include "backends/cpu/library/onednn/post_op_attributes.h"
#include "backends/cpu/library/onednn/primitive_call.h"
#include "backends/cpu/library/onednn/weights_layout.h"
#include "interface/status.h"

namespace lamina::cpu::onednn {

namespace {

// ---- primitives

// The input and output of a tile, dense and with the channels last, and its weights, in any layout or a given one.
struct Problem {
  SlabWindow window;
  dnnl::memory::desc read, weights, bias, made;
  std::vector<dnnl::memory::desc> operands;  // of the following ops
};

// The scales of quantized factors, moved out of the sum as one factor, and the zero point of the input.
struct Scaling {
  std::vector<float> scales;  // one, or one per output channel; empty: the factors are floats
  int32_t zero_point = 0;
};

// Common to all tiles.
struct Ends {
  Scaling scaling;
  PostOpAttributes post_ops;
};

struct Convolving {
  PrimitiveCall call;  // args: input, weights, output; then bias, scales, zero point, if they exist, and those of following ops
  dnnl::memory::desc weights;
};

template <typename Kind>
Convolving convolving(dnnl::algorithm algorithm, const Problem& p, const Ends& ends) {
  const Scaling& scaling = ends.scaling;
  const bool has_groups = p.weights.get_dims().size() > p.read.get_dims().size();
  const bool by_channel = scaling.scales.size() > 1;
  dnnl::primitive_attr attr = attributes();
  if (!scaling.scales.empty()) attr.set_scales_mask(DNNL_ARG_WEIGHTS, !by_channel ? 0 : has_groups ? 3 : 1);
  if (scaling.zero_point != 0) attr.set_zero_points_mask(DNNL_ARG_SRC, 0);
  ends.post_ops.add_to(attr, p.operands);
  const SlabWindow& window = p.window;
  const typename Kind::primitive_desc made(engine(), dnnl::prop_kind::forward_inference, algorithm, p.read, p.weights, p.bias,
                                           p.made, window.strides, window.dilations, window.pads_begin, window.pads_end, attr);
  PrimitiveCall::Arguments arguments{{DNNL_ARG_SRC, p.read}, {DNNL_ARG_WEIGHTS, made.weights_desc()}, {DNNL_ARG_DST, p.made}};
  if (!p.bias.is_zero()) arguments.emplace_back(DNNL_ARG_BIAS, p.bias);
  const auto list = [](int64_t count, dnnl::memory::data_type type) { return dnnl::memory::desc({count}, type, Dims{1}); };
  if (!scaling.scales.empty())
    arguments.emplace_back(DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS,
                           list(by_channel ? p.made.get_dims()[1] : 1, dnnl::memory::data_type::f32));
  if (scaling.zero_point != 0)
    arguments.emplace_back(DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, list(1, dnnl::memory::data_type::s32));
  ends.post_ops.add_to(arguments, p.operands);
  return {{made, Kind(made), std::move(arguments)}, made.weights_desc()};
}

// A gradient for the image is the forward pass of a deconvolution, which can have a bias.
Convolving convolving(const ConvolutionShape& shape, const Problem& problem, const Ends& ends) {
  return shape.makes_image() ? convolving<dnnl::deconvolution_forward>(dnnl::algorithm::deconvolution_direct, problem, ends)
                             : convolving<dnnl::convolution_forward>(dnnl::algorithm::convolution_direct, problem, ends);
}

// ---- tiles

// Common to equal tiles.
struct TileKind {
  int64_t image_rows, position_rows, pad_begin, rows_present, slice;
  DenseBlock in, out;
  std::vector<DenseBlock> operands;
  Convolving convolving;

  bool is_like(const TileKind& other) const {
    return image_rows == other.image_rows && position_rows == other.position_rows && pad_begin == other.pad_begin &&
           rows_present == other.rows_present && slice == other.slice;
  }
};

// The start of a tile of an image: byte offsets in the image, the weights and the bias.
struct Tile {
  const TileKind* kind;
  int64_t in, out, packed, channel, row;  // the last two are indices
};

class TiledConvolution final : public Primitive {
 public:
  TiledConvolution(const kernel::LibraryStep& step, const PrimitiveUse& use)
      : shape_(convolution_shape(step)),
        operands_(operands_in_order(step)),
        like_(dynamic_cast<const TiledConvolution*>(use.like)),
        packs_ahead_(use.packs_weights),
        slots_(use.threads) {
    if (step.quantized) take_scales(*step.quantized);
    ends_.post_ops = PostOpAttributes(step);
    made_for(step.op, [&] {
      const std::vector<Cut> cuts = cuts_of(shape_, factors());
      const bool may_cut = like_ == nullptr || !like_->is_whole_;
      is_whole_ = !may_cut || !std::any_of(cuts.begin(), cuts.end(), [&](const Cut& how) { return is_cut(how); });
      if (is_whole_) cut(whole_image(shape_));
      place_scratch();
    });
    like_ = nullptr;
    name_ = join(tiles_[0].kind->convolving.call.implementation(), ", ", tiles_.size(), tiles_.size() == 1 ? " tile" : " tiles",
                 " an image", ends_.post_ops.text());
  }

  const std::string& name() const override { return name_; }
  size_t scratch_bytes() const override { return own_bytes_ + (packs_ahead_ ? 0 : packed_bytes_); }

  void run(std::span<void* const> args, void* scratch, const Executor& executor) const override {
    run_in_parts(args, scratch, executor, nullptr);
  }
  int64_t columns_of_parts() const override {
    const bool are_all_there = (shape_.makes_image() ? shape_.image_extents : shape_.position_extents) == made().spatial();
    const bool has_parts = are_all_there && is_block(made(), made().dims) && shape_.batch() * std::ssize(tiles_) >= slots_;
    return has_parts ? made().dims[1] : 0;
  }
  void run_in_parts(std::span<void* const> args, void* scratch, const Executor& executor,
                    const std::function<void(const ResultPart&)>& ended) const override {
    auto* const own = static_cast<char*>(scratch);
    auto* const weights = static_cast<char*>(args[shape_.weights.port]);
    const Memory memory{args, packs_ahead_ ? weights : own + own_bytes_, own, executor.at_most(slots_)};
    if (!packs_ahead_) pack_weights(memory, weights);
    if (bias_copy_) copy_bias(memory);
    if (!staged_.is_in_place()) stage(memory);
    for_each_tile(shape_.batch() * std::ssize(tiles_), memory.executor, [&](int64_t i, int thread) {
      const Tile& tile = tiles_[static_cast<size_t>(i % std::ssize(tiles_))];
      run_tile(memory, i / std::ssize(tiles_), tile, thread);
      if (ended) ended(part_of(i / std::ssize(tiles_), tile));
    });
  }

  size_t packed_bytes() const override { return packs_ahead_ ? packed_bytes_ : 0; }
  void pack(std::span<void* const> args, void* packed, void* scratch, const Executor& executor) const override {
    pack_weights({{}, static_cast<char*>(packed), static_cast<char*>(scratch), executor.at_most(slots_)}, args[1]);
  }

 private:
  struct Memory {
    std::span<void* const> args;
    char *packed, *scratch;  // weights; everything else
    Executor executor;
  };

  const AxesInOrder& read() const { return shape_.makes_image() ? shape_.positions : shape_.image; }
  const AxesInOrder& made() const { return shape_.makes_image() ? shape_.image : shape_.positions; }
  bool has_bias() const { return !shape_.bias.dims.empty(); }

  bool has_integers() const { return !ends_.scaling.scales.empty(); }
  Factors factors() const {
    if (!has_integers()) return Factors::floats;
    return ends_.scaling.zero_point != 0 ? Factors::integers_with_zero_point : Factors::integers;
  }
  // With integers it is f32.
  DataType bias_type() const { return has_integers() ? DataType::f32 : computed(shape_.bias.dtype); }

  // The type in which a tensor is read or written by primitives. For images of 16-bit floats from positions with strides, of
  // each channel by itself, oneDNN has fast code in f32 only.
  DataType computed(DataType dtype) const {
    const bool is_depthwise = shape_.groups == shape_.image.dims[1] && shape_.groups == shape_.positions.dims[1];
    const bool has_strides = std::any_of(shape_.strides.begin(), shape_.strides.end(), [](int64_t s) { return s > 1; });
    const bool is_slow = shape_.makes_image() && shape_.groups > 1 && is_depthwise && has_strides && bits_of(dtype) == 16;
    return is_slow ? DataType::f32 : dtype;
  }

  void take_scales(const QuantizedProduct& quantized) {
    for (const float scale : quantized.weights.scales) ends_.scaling.scales.push_back(scale * quantized.src.scales.front());
    ends_.scaling.zero_point = static_cast<int32_t>(quantized.src.zero_point);
  }

  // ---- compiling

  // Whether all slabs use generated primitives with the same packed weights.
  bool is_cut(const Cut& how) {
    try {
      cut(how);
      const bool whole = how.slabs.size() == 1;
      return whole || std::none_of(kinds_.begin(), kinds_.end(),
                                   [](const TileKind& kind) { return is_plain_loops(kind.convolving.call.implementation()); });
    } catch (const dnnl::error& error) {
      rethrow_out_of_memory(error);
      return false;
    }
  }

  void cut(const Cut& how) {
    kinds_.clear();
    tiles_.clear();
    packing_ = {};
    packed_bytes_ = 0;
    slice_ = like_ == nullptr ? how.slice : like_->slice_;
    const int64_t channels = made().dims[1];
    choose_source(slice_ < channels);
    for (int64_t channel = 0; channel < channels; channel += slice_)
      add_slice(how.slabs, channel, std::min(slice_, channels - channel));
  }

  // If slices of one image read the same data, they are copied to dense memory once.
  void choose_source(bool has_slices) {
    source_ = read();
    staged_ = {};
    if (!has_slices) return;
    const int64_t channels = read().dims[1];
    const Dims extents = tile_dims(channels, shape_.makes_image() ? shape_.position_extents : shape_.image_extents);
    Dims present = extents;
    for (size_t axis = 2; axis < present.size(); ++axis) present[axis] = std::min(present[axis], read().dims[axis]);
    staged_ = DenseBlock(DenseBlock::Way::in, read(), {extents, present}, read().dtype);
    if (!staged_.is_in_place()) source_ = as_block(read().dtype, extents);
  }

  void add_slice(const std::vector<Slab>& slabs, int64_t channel, int64_t slice) {
    const bool makes_image = shape_.makes_image();
    const size_t row_axis = shape_.slab_axis + 2;
    const TileKind* kind = nullptr;
    for (const Slab& slab : slabs) {
      kind = &kind_of(slab, slice);
      const int64_t in = source_.bytes(row_axis, makes_image ? slab.position_begin : slab.image_begin);
      const int64_t out = made().bytes(row_axis, makes_image ? slab.image_begin : slab.position_begin);
      tiles_.push_back({kind, in, out + made().bytes(1, channel), static_cast<int64_t>(packed_bytes_), channel,
                        makes_image ? slab.image_begin : slab.position_begin});
    }
    const dnnl::memory::desc& packed = kind->convolving.weights;
    const int64_t from = shape_.weights.bytes(makes_image ? 1 : 0, channel), to = static_cast<int64_t>(packed_bytes_);
    if (has_integers())
      packing_.add_with_sums(weights_desc(shape_, slice), from, packed, to);
    else
      packing_.add(weights_desc(shape_, slice), from, packed, to);
    packed_bytes_ += aligned(packed.get_size());
  }

  const TileKind& kind_of(const Slab& slab, int64_t slice) {
    const int64_t rows = source_.dims[shape_.slab_axis + 2];
    const int64_t present =
        shape_.makes_image() ? std::clamp<int64_t>(rows - slab.position_begin, 0, slab.position_rows) : slab.image_rows;
    TileKind kind{slab.image_rows, slab.position_rows, slab.pad_begin, present, slice, {}, {}, {}, {}};
    for (const TileKind& other : kinds_)
      if (other.is_like(kind)) return other;
    make(kind, window_in(shape_, slab));
    return kinds_.emplace_back(std::move(kind));
  }

  // The weights layout of other tiles of the slice; zero if there are none.
  dnnl::memory::desc packed_for(int64_t slice) const {
    for (const TiledConvolution* owner : {static_cast<const TiledConvolution*>(this), like_}) {
      if (owner == nullptr) continue;
      for (const TileKind& kind : owner->kinds_)
        if (kind.slice == slice) return kind.convolving.weights;
    }
    return {};
  }

  static Dims tile_dims(int64_t channels, const Dims& extents) {
    Dims dims{1, channels};
    dims.insert(dims.end(), extents.begin(), extents.end());
    return dims;
  }

  void make(TileKind& kind, const SlabWindow& window) const {
    const Dims in = tile_dims(read().dims[1], shape_.makes_image() ? window.positions : window.image);
    const Dims out = tile_dims(kind.slice, shape_.makes_image() ? window.image : window.positions);
    Dims present = in;
    for (size_t axis = 2; axis < present.size(); ++axis) present[axis] = std::min(present[axis], source_.dims[axis]);
    present[shape_.slab_axis + 2] = kind.rows_present;
    kind.in = DenseBlock(DenseBlock::Way::in, source_, {in, present}, computed(read().dtype));
    kind.in.fill_with(ends_.scaling.zero_point);
    kind.out = DenseBlock(DenseBlock::Way::out, made(), {out}, computed(made().dtype));
    const dnnl::memory::desc any = in_any_layout(weights_desc(shape_, kind.slice), type_of(computed(shape_.weights.dtype)));
    Problem problem{window, channels_last(computed(read().dtype), in), any, {}, channels_last(computed(made().dtype), out), {}};
    for (const AxesInOrder& operand : operands_) {
      Dims part = out;
      for (size_t axis = 1; axis < part.size(); ++axis) part[axis] = operand.dims[axis] == 1 ? 1 : out[axis];
      kind.operands.push_back(DenseBlock(DenseBlock::Way::in, operand, {part}, operand.dtype));
      problem.operands.push_back(channels_last(operand.dtype, part));
    }
    if (has_bias()) problem.bias = {{kind.slice}, type_of(bias_type()), Dims{1}};
    kind.convolving = convolving(shape_, problem, ends_);
    const dnnl::memory::desc packed = packed_for(kind.slice);
    if (packed.is_zero() || packed == kind.convolving.weights) return;
    problem.weights = packed;
    kind.convolving = convolving(shape_, problem, ends_);
  }

  // The bias, if it is copied; staged images; the memory of each thread; packed weights, unless they are packed ahead.
  void place_scratch() {
    if (has_bias()) {
      const AxesInOrder& bias = shape_.bias;
      bias_copy_ = reorder({bias.dims, type_of(bias.dtype), bias.strides}, {bias.dims, type_of(bias_type()), Dims{1}});
    }
    staged_at_ = bias_copy_ ? aligned(static_cast<size_t>(bytes_of(bias_type(), shape_.bias.dims[0]))) : 0;
    threads_at_ = staged_at_ + static_cast<size_t>(shape_.batch()) * staged_.bytes();
    in_bytes_ = out_bytes_ = operand_bytes_ = 0;
    size_t call_bytes = std::max({packing_.scratch_bytes(), bias_copy_.scratch_bytes(), staged_.scratch_bytes()});
    for (const TileKind& kind : kinds_) {
      in_bytes_ = std::max(in_bytes_, kind.in.bytes());
      out_bytes_ = std::max(out_bytes_, kind.out.bytes());
      size_t operands = 0;
      for (const DenseBlock& operand : kind.operands) {
        operands += operand.bytes();
        call_bytes = std::max(call_bytes, operand.scratch_bytes());
      }
      operand_bytes_ = std::max(operand_bytes_, operands);
      call_bytes =
          std::max({call_bytes, kind.in.scratch_bytes(), kind.out.scratch_bytes(), kind.convolving.call.scratch_bytes()});
    }
    thread_bytes_ = in_bytes_ + out_bytes_ + operand_bytes_ + call_bytes;
    own_bytes_ = threads_at_ + static_cast<size_t>(slots_) * thread_bytes_;
  }

  // ---- running

  char* own_scratch(const Memory& memory, int thread) const {
    return memory.scratch + threads_at_ + static_cast<size_t>(thread) * thread_bytes_;
  }

  void pack_weights(const Memory& memory, const void* weights) const {
    packing_.run(weights, memory.packed, memory.executor, [&](int thread) { return own_scratch(memory, thread); });
  }

  void copy_bias(const Memory& memory) const {
    const ThreadLimit alone(1);
    bias_copy_.run({memory.args[shape_.bias.port], memory.scratch}, own_scratch(memory, 0));
  }

  char* staged_image(const Memory& memory, int64_t image) const {
    return memory.scratch + staged_at_ + static_cast<size_t>(image) * staged_.bytes();
  }

  void stage(const Memory& memory) const {
    for_each_tile(shape_.batch(), memory.executor, [&](int64_t image, int thread) {
      staged_.copy(offset(memory.args[read().port], read().bytes(0, image)), staged_image(memory, image),
                   own_scratch(memory, thread));
    });
  }

  ResultPart part_of(int64_t image, const Tile& tile) const {
    const Dims spatial = made().spatial();
    int64_t pixels = 1;  // of a row
    for (size_t axis = shape_.slab_axis + 1; axis < spatial.size(); ++axis) pixels *= spatial[axis];
    const int64_t rows = shape_.makes_image() ? tile.kind->image_rows : tile.kind->position_rows;
    return {(image * spatial[shape_.slab_axis] + tile.row) * pixels, rows * pixels, tile.channel, tile.kind->slice};
  }

  // The start of the tile's part of an operand.
  void* operand_of(const Memory& memory, size_t number, int64_t image, const Tile& tile) const {
    const AxesInOrder& operand = operands_[number];
    return offset(memory.args[operand.port],
                  operand.bytes(0, image) + operand.bytes(1, tile.channel) + operand.bytes(shape_.slab_axis + 2, tile.row));
  }

  void run_tile(const Memory& memory, int64_t image, const Tile& tile, int thread) const {
    const TileKind& kind = *tile.kind;
    char* const own = own_scratch(memory, thread);
    void* const scratch = own + in_bytes_ + out_bytes_ + operand_bytes_;
    void* const from = staged_.is_in_place() ? offset(memory.args[read().port], read().bytes(0, image) + tile.in)
                                             : offset(staged_image(memory, image), tile.in);
    void* const to = offset(memory.args[made().port], made().bytes(0, image) + tile.out);
    void *const in = kind.in.at(from, own), *const out = kind.out.at(to, own + in_bytes_);
    void* const packed = memory.packed + tile.packed;
    kind.in.copy(from, in, scratch);
    std::array<void*, 6 + PostOpAttributes::kMaxPointers> pointers = {in, packed, out};
    size_t count = 3;
    if (has_bias()) {
      void* const bias = bias_copy_ ? memory.scratch : memory.args[shape_.bias.port];
      pointers[count++] = offset(bias, bytes_of(bias_type(), tile.channel));
    }
    if (has_integers())
      pointers[count++] =
          const_cast<float*>(&ends_.scaling.scales[ends_.scaling.scales.size() > 1 ? static_cast<size_t>(tile.channel) : 0]);
    if (ends_.scaling.zero_point != 0) pointers[count++] = const_cast<int32_t*>(&ends_.scaling.zero_point);
    char* operand = own + in_bytes_ + out_bytes_;
    for (size_t i = 0; i < operands_.size(); ++i) {
      void* const part = operand_of(memory, i, image, tile);
      pointers[count++] = kind.operands[i].at(part, operand);
      kind.operands[i].copy(part, operand, scratch);
      operand += kind.operands[i].bytes();
    }
    ends_.post_ops.add_to(pointers.data(), count);
    kind.convolving.call.run({pointers.data(), count}, scratch);
    kind.out.copy(to, out, scratch);
  }

  ConvolutionShape shape_;
  std::vector<AxesInOrder> operands_;  // of the following ops
  Ends ends_;
  const TiledConvolution* like_;  // only during compilation
  bool packs_ahead_;
  bool is_whole_ = false;  // images are not cut, because their slabs would not share packed weights
  int slots_;              // the largest number of threads
  std::string name_;
  int64_t slice_ = 0;          // output channels per slice; the last slice may have fewer
  AxesInOrder source_;         // the input of tiles: the user's tensor, or staged images
  DenseBlock staged_;          // an image, if it is copied to dense memory before its tiles run
  std::list<TileKind> kinds_;  // referenced by tiles
  std::vector<Tile> tiles_;    // of one image
  LayoutChange packing_;
  PrimitiveCall bias_copy_;  // if the user's bias has gaps
  size_t packed_bytes_ = 0, staged_at_ = 0, threads_at_ = 0, in_bytes_ = 0, out_bytes_ = 0, operand_bytes_ = 0,
         thread_bytes_ = 0, own_bytes_ = 0;
};

std::string why_not(const Graph& graph, const Op& op) {
  const int spatial_axes = graph.tensor(op.inputs[0]).rank() - 2;
  return spatial_axes <= 3 ? "" : join("it has ", spatial_axes, " spatial axes, the cpu backend convolves along 3 at most");
}

// Of convolutions that make positions. Code that copies windows, or that was written for registers of less than 512 bits and
// has few sums in them: 0.5 to 0.9 of the speed of generated code (benchmarks/convolutions, groups of 2 to 8 channels).
bool is_slow_for_groups(const std::string& name, int vector_bits) {
  constexpr int kBits = 512;
  return name.find("gemm") != std::string::npos || (name.starts_with("jit:") && vector_bits < kBits);
}

}  // namespace

std::vector<LibraryOp> convolution_ops() {
  const auto tiled = [](const kernel::LibraryStep& step, const PrimitiveUse& use) -> std::unique_ptr<const Primitive> {
    return std::make_unique<TiledConvolution>(step, use);
  };
  std::vector<LibraryOp> ops = {{OpKind::Convolution, tiled, why_not, nullptr, convolves_integers},
                                {OpKind::ConvolutionBackwardData, tiled, why_not},
                                {OpKind::ConvolutionBackwardWeights, weight_gradient, why_not},
                                {OpKind::ConvTranspose, tiled, why_not, nullptr, convolves_integers},
                                {OpKind::ConvTransposeBackwardData, tiled, why_not},
                                {OpKind::ConvTransposeBackwardWeights, weight_gradient, why_not}};
  // Gradients by generated code take 3 to 80 times as long (benchmarks/convolutions --gradient).
  for (LibraryOp& op : ops)
    if (op.kind == OpKind::Convolution || op.kind == OpKind::ConvTransposeBackwardData)
      op.is_slow_for_groups = is_slow_for_groups;
  return ops;
}

}  // namespace lamina::cpu::onednn
