#include "backends/cpu/dispatch/tap_step.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/cpu/dispatch/program_checks.h"
#include "backends/cpu/dispatch/step_kinds.h"
#include "backends/cpu/program/product_calls.h"

namespace lamina::cpu {

namespace {

using kernel::WindowAxis;

using Grid = TapStep::Grid;

// Adds an axis before the others: to the first one, if that follows it in memory, so that copies have few parts.
void add_axis(Grid& grid, int64_t extent, int64_t stride) {
  if (!grid.extents.empty() && stride == grid.strides.front() * grid.extents.front()) {
    grid.extents.front() *= extent;
    return;
  }
  grid.extents.insert(grid.extents.begin(), extent);
  grid.strides.insert(grid.strides.begin(), stride);
}

// To dense rows of channels, one for each element of the grid. `from_bytes`: of an element.
void copy_grid(const MatrixCopy& copy, const char* from, const Grid& grid, int64_t channel, int64_t from_bytes, char* to,
               Steps to_steps, int64_t channels) {
  const int64_t along = grid.extents.back();
  int64_t count = 1;
  for (const int64_t extent : grid.extents) count *= extent;
  for (int64_t first = 0; first < count; first += along) {
    int64_t rest = first / along, at = 0;
    for (size_t a = grid.extents.size() - 1; a-- > 0; rest /= grid.extents[a]) at += rest % grid.extents[a] * grid.strides[a];
    copy(from + at * from_bytes, {grid.strides.back() * from_bytes, channel * from_bytes}, to + first * to_steps.row, to_steps,
         along, channels);
  }
}

}  // namespace

TapStep::TapStep(TapProgram program, std::vector<TapCode> code, TapCopies copies, std::string name)
    : c_(std::move(program)),
      code_(std::move(code)),
      copies_(std::move(copies)),
      name_(std::move(name)),
      pixel_strides_(c_.axes.size()) {
  for (size_t a = 0; a + 1 < c_.axes.size(); ++a) rows_ *= c_.axes[a].rows, lines_ *= c_.axes[a].terms;
  const int64_t row_bytes = width() * c_.sum_bytes;
  int64_t pixels = 1;
  for (size_t a = c_.axes.size(); a-- > 0; pixels *= c_.axes[a].pixels) {
    pixel_strides_[a] = c_.copies_left ? pixels * row_bytes : c_.axes[a].left * c_.left_bytes;
    add_axis(image_, c_.axes[a].pixels, c_.axes[a].left);
    add_axis(places_, c_.axes[a].terms, c_.axes[a].right);
  }
  const int64_t positions = lines_ * c_.axes.back().terms;
  position_ = c_.copies_right ? row_bytes : c_.axes.back().right * c_.right_bytes;
  line_ = position_ * c_.axes.back().terms;
  sums_bytes_ = aligned(static_cast<size_t>(rows_ * c_.axes.back().rows * row_bytes));
  image_bytes_ = c_.copies_left ? aligned(static_cast<size_t>(pixels * row_bytes)) : 0;
  positions_bytes_ = c_.copies_right ? aligned(static_cast<size_t>(positions * row_bytes)) : 0;
  thread_bytes_ = sums_bytes_ + image_bytes_ + positions_bytes_;
  for (int64_t first = 0; first < rows_; first += c_.rows)
    for (int64_t line = 0; line < lines_; ++line)
      for (int64_t row = first; row < std::min(first + c_.rows, rows_); ++row) pixels_.push_back(pixel_of(row, line));
}

int64_t TapStep::bytes_of_sums(int64_t channels) const { return parts(channels, c_.lanes) * c_.lanes * c_.sum_bytes; }

TapStep::Scratch TapStep::scratch_of(void* scratch, int thread) const {
  char* const sums = static_cast<char*>(scratch) + static_cast<size_t>(thread) * thread_bytes_;
  char* const image = sums + sums_bytes_;
  return {sums, image, image + image_bytes_};
}

void TapStep::run(std::span<void* const> args, void* scratch, const Executor& executor) const {
  for_each_tile(parts(c_.channels.extent, width()), executor.at_most(c_.threads), [&](int64_t i, int thread) {
    const int64_t channel = i * width();
    const Channels channels{channel, std::min(width(), c_.channels.extent - channel)};
    const Scratch own = scratch_of(scratch, thread);
    std::memset(own.sums, 0, sums_bytes_);
    for (int64_t image = 0; image < c_.images.extent; ++image) {
      const int64_t left = image * c_.images.left + channel * c_.channels.left;
      const int64_t right = image * c_.images.right + channel * c_.channels.right;
      add(copied({static_cast<const char*>(args[c_.left]) + left * c_.left_bytes,
                  static_cast<const char*>(args[c_.right]) + right * c_.right_bytes},
                 channels.count, own),
          channels.count, own.sums);
    }
    store(channels, own.sums, static_cast<char*>(args[c_.dst]));
  });
}

void TapStep::add(Image image, int64_t channels, char* sums) const {
  const WindowAxis& axis = c_.axes.back();
  const TapStrides strides{.lines = lines_,
                           .line = line_,
                           .position = position_,
                           .pixel = axis.per_term * pixel_strides_.back(),
                           .tap = axis.per_row * pixel_strides_.back(),
                           .inner = c_.inner};
  for (int64_t row = 0; row < rows_; row += c_.rows) {
    const TapCode& code = row + c_.rows <= rows_ ? code_.front() : code_.back();
    (channels == width() ? code.whole : code.last)
        .as<TapTileFunction>()(image.left, &pixels_[static_cast<size_t>(row * lines_)], image.right, sums, &strides);
    sums += c_.rows * axis.rows * bytes_of_sums(channels);
  }
}

TapStep::Image TapStep::copied(Image given, int64_t channels, const Scratch& own) const {
  const Steps steps{width() * c_.sum_bytes, c_.sum_bytes};
  if (c_.copies_left) {
    copy_grid(copies_.left, given.left, image_, c_.channels.left, c_.left_bytes, own.image, steps, channels);
    given.left = own.image;
  }
  if (c_.copies_right) {
    copy_grid(copies_.right, given.right, places_, c_.channels.right, c_.right_bytes, own.positions, steps, channels);
    given.right = own.positions;
  }
  return given;
}

// What the first tap of a row sees at the first position of a line.
int64_t TapStep::pixel_of(int64_t row, int64_t line) const {
  int64_t at = c_.axes.back().first * pixel_strides_.back();
  for (size_t a = c_.axes.size() - 1; a-- > 0; row /= c_.axes[a].rows, line /= c_.axes[a].terms) {
    const int64_t pixel = c_.axes[a].pixel(row % c_.axes[a].rows, line % c_.axes[a].terms);
    if (pixel < 0) return kOutsideOfImage;
    at += pixel * pixel_strides_[a];
  }
  return at;
}

// Overwrites the sums if the weights are narrower.
void TapStep::store(const Channels& channels, char* sums, char* dst) const {
  const int64_t taps = c_.axes.back().rows, row_bytes = bytes_of_sums(channels.count);
  for (int64_t r = 0; r < rows_; ++r, sums += taps * row_bytes) {
    int64_t row = r, at = channels.first * c_.channels.dst;
    for (size_t a = c_.axes.size() - 1; a-- > 0; row /= c_.axes[a].rows) at += row % c_.axes[a].rows * c_.axes[a].dst;
    copies_.dst(sums, {row_bytes, c_.sum_bytes}, dst + at * c_.dst_bytes,
                {c_.axes.back().dst * c_.dst_bytes, c_.channels.dst * c_.dst_bytes}, taps, channels.count);
  }
}

void TapStep::write(ProgramWriter& to) const {
  to.write(StepKind::taps);
  to.write(c_);
  for (const MatrixCopy* copy : {&copies_.left, &copies_.right, &copies_.dst}) copy->write(to);
  to.write(code_.size());
  for (const TapCode& code : code_) cpu::write(to, code.whole), cpu::write(to, code.last);
}

std::unique_ptr<const TapStep> TapStep::read(ProgramReader& from, size_t args) {
  auto program = from.get<TapProgram>();
  check(program, args);
  TapCopies copies;
  for (MatrixCopy* copy : {&copies.left, &copies.right, &copies.dst}) *copy = MatrixCopy::read(from);
  int64_t rows = 1;
  for (size_t a = 0; a + 1 < program.axes.size(); ++a) rows *= program.axes[a].rows;
  std::vector<TapCode> code(from.read_count());
  require(code.size() == (rows % program.rows == 0 ? 1 : 2), "the tiles of a weight gradient");
  const int64_t width = program.vectors * program.lanes;
  for (TapCode& of_rows : code) {
    of_rows.whole = read_code(from), of_rows.last = read_code(from);
    require((of_rows.whole || program.channels.extent < width) && (of_rows.last || program.channels.extent % width == 0),
            "the tiles of a weight gradient");
  }
  return std::make_unique<const TapStep>(std::move(program), std::move(code), std::move(copies), "depthwise weight gradient");
}

}  // namespace lamina::cpu
