#include "backends/cpu/dispatch/windows/window_step.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/dispatch/program_checks.h"
#include "backends/cpu/dispatch/step_kinds.h"
#include "backends/cpu/dispatch/windows/lane_kernels.h"
#include "backends/cpu/dispatch/windows/pixel_rows.h"
#include "backends/cpu/dispatch/windows/window_tiles.h"
#include "backends/cpu/threads/executor.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kManyTerms = 64, kManyWindows = 9;  // from these numbers on, sums use more accurate algorithms

// Rounded up, because kernels may compute the last lanes together with some before them.
int64_t argmax_slots(int64_t channels) { return (channels + kMinLanesOfBf16 - 1) / kMinLanesOfBf16 * kMinLanesOfBf16; }

// The scratch of a thread for one tile, as byte offsets: copies of tensors that are not used in place, the argmax of windows,
// and the scratch of rows.
struct ScratchLayout {
  int64_t input = 0, output = 0, image = 0, argmax = 0, rows = 0, end = 0;

  ScratchLayout(const WindowWork& work, const WindowTiles& tiles, bool copies, int64_t row_bytes) {
    int64_t inputs = 0, outputs = 0, images = 0;
    for (const Slab& slab : tiles.slabs()) {
      inputs = std::max(inputs, pixel_count(slab.input));
      outputs = std::max(outputs, pixel_count(slab.output));
      images = std::max(images, pixel_count(slab.image));
    }
    const int64_t pixel_bytes = copies ? lanes_of_copy(tiles.most_channels()) * kFloat : 0;
    output = input + inputs * pixel_bytes;
    image = output + outputs * pixel_bytes;
    argmax = image + images * pixel_bytes;
    rows = argmax + (work.has_image() ? inputs * argmax_slots(tiles.most_channels()) * kFloat : 0);
    end = rows + row_bytes;
  }
};

class WindowStep final : public Primitive {
 public:
  WindowStep(WindowWork work, const LaneCode& code)
      : work_(std::move(work)),
        rows_(work_.taps),
        window_rows_(work_.windows),
        shares_work_(!work_.has_image() && rows_.gain_by_sharing_work() > (must_copy_to_share() ? 3 : 1.5)),
        in_place_(has_lanes(work_) && !(shares_work_ && must_copy_to_share())),
        tiles_(work_, in_place_),
        layout_(work_, tiles_, !in_place_, row_bytes()),
        name_(join("lanes:", code.vectors)),
        kernels_(in_place_ && work_.output.tensor.dtype == DataType::bf16 ? code.bf16 : code.f32),
        kernel_(kernel()),
        slots_(std::min<int64_t>({work_.threads, tiles_.count(), tiles_.worthwhile_threads()})) {
    if (shares_work_) rows_.prepare_sharing_work();
  }

  const std::string& name() const override { return name_; }
  size_t scratch_bytes() const override { return static_cast<size_t>(slots_ * layout_.end); }

  void write(ProgramWriter& to) const override {
    to.write(StepKind::windows);
    to.write(work_);
  }

  void run(std::span<void* const> args, void* scratch, const Executor& executor) const override {
    for_each_tile(tiles_.count(), executor.at_most(slots_), [&](int64_t index, int thread) {
      run_tile(tiles_.at(index), args, static_cast<char*>(scratch) + thread * layout_.end);
    });
  }

 private:
  // In place, values between two kernels have the type of the tensors, so sums would be rounded twice.
  bool must_copy_to_share() const {
    return has_lanes(work_) && work_.kind == WindowWork::Kind::weighted_sum && work_.output.tensor.dtype == DataType::bf16;
  }

  LaneKernels::Kernel kernel() const {
    if (work_.kind == WindowWork::Kind::maximum) return kernels_.maximum;
    if (work_.has_image()) return rows_.most_terms() > kManyWindows ? kernels_.long_sum_of_argmax : kernels_.sum_of_argmax;
    if (rows_.most_terms() > kManyTerms) return kernels_.long_sum;
    return rows_.are_weighted() ? kernels_.weighted_sum : kernels_.sum;
  }

  int64_t row_bytes() const {
    if (shares_work_) return rows_.scratch_bytes_sharing_work(lanes_of_copy(tiles_.most_channels()));
    return std::max(rows_.scratch_bytes(), window_rows_.scratch_bytes());
  }

  void run_tile(const WindowTile& tile, std::span<void* const> args, char* scratch) const {
    const auto& [block, slab] = tile;
    WindowOperands operands{.input = lanes_to_read(work_.input, args, block, slab.input, scratch + layout_.input),
                            .argmax = {},
                            .output = lanes_to_write(args, tile, scratch),
                            .lanes = lanes_of(block)};
    if (work_.has_image()) operands.argmax = find_argmax(tile, args, scratch);
    if (shares_work_) {
      rows_.run_sharing_work(kernel_, slab.output, operands, scratch + layout_.rows);
    } else {
      rows_.run(kernel_, slab.output, operands, scratch + layout_.rows);
    }
    if (!in_place_)
      copy_from_lanes(work_.output.tensor, args[work_.output.arg], block, slab.output, floats_at(scratch + layout_.output));
  }

  // The argmax of each window of the tile.
  LanePixels find_argmax(const WindowTile& tile, std::span<void* const> args, char* scratch) const {
    const auto& [block, slab] = tile;
    const LanePixels argmax = dense_lanes(scratch + layout_.argmax, slab.input, argmax_slots(block.channels));
    const LanePixels image = lanes_to_read(work_.image, args, block, slab.image, scratch + layout_.image);
    window_rows_.run(kernels_.argmax, slab.input, {image, {}, argmax, lanes_of(block)}, scratch + layout_.rows);
    return argmax;
  }

  LanePixels lanes_to_read(const ImagePort& port, std::span<void* const> args, const ChannelBlock& block, const Box& box,
                           char* copy) const {
    if (in_place_) return lanes_in_place(port.tensor, args[port.arg], block);
    copy_to_lanes(port.tensor, args[port.arg], block, box, floats_at(copy));
    return dense_lanes(copy, box, lanes_of(block));
  }

  LanePixels lanes_to_write(std::span<void* const> args, const WindowTile& tile, char* scratch) const {
    if (in_place_) return lanes_in_place(work_.output.tensor, args[work_.output.arg], tile.block);
    return dense_lanes(scratch + layout_.output, tile.slab.output, lanes_of(tile.block));
  }

  int64_t lanes_of(const ChannelBlock& block) const { return in_place_ ? block.channels : lanes_of_copy(block.channels); }
  static float* floats_at(char* copy) { return reinterpret_cast<float*>(copy); }

  const WindowWork work_;
  PixelRows rows_, window_rows_;
  bool shares_work_, in_place_;  // in place: without copies
  WindowTiles tiles_;
  ScratchLayout layout_;
  std::string name_;
  LaneKernels kernels_;
  LaneKernels::Kernel kernel_;
  int64_t slots_;  // number of threads that have scratch
};

}  // namespace

std::unique_ptr<const Primitive> window_step(WindowWork work) {
  return std::make_unique<WindowStep>(std::move(work), lane_code().back());
}

std::unique_ptr<const Primitive> read_windows(ProgramReader& from, size_t args) {
  auto work = from.get<WindowWork>();
  check(work, args);
  return window_step(std::move(work));
}

}  // namespace lamina::cpu
