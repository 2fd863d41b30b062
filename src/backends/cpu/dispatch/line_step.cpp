#include "backends/cpu/dispatch/line_step.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "backends/cpu/dispatch/matrix_copy.h"
#include "backends/cpu/dispatch/program_checks.h"
#include "backends/cpu/dispatch/step_kinds.h"
#include "backends/cpu/program/tuning.h"

namespace lamina::cpu {

namespace {

using Axis = kernel::WindowAxis;

// For windows of few lines, which are almost all, their pointers are on the stack.
class Window {
 public:
  explicit Window(int64_t lines) : many_(lines > kFew ? static_cast<size_t>(lines) : 0) {}
  const void** data() { return many_.empty() ? few_.data() : many_.data(); }

 private:
  static constexpr int64_t kFew = 32;
  std::array<const void*, kFew> few_;
  std::vector<const void*> many_;
};

}  // namespace

LineStep::LineStep(LineProgram program, std::vector<LineCode> code, std::string name, bool has_following)
    : c_(std::move(program)),
      code_(std::move(code)),
      name_(std::move(name)),
      has_following_(has_following),
      lines_(c_.images.extent),
      lines_of_window_(1) {
  for (size_t a = 0; a + 1 < c_.axes.size(); ++a) lines_ *= c_.axes[a].rows, lines_of_window_ *= c_.axes[a].terms;
  for (const LineProgram::Tiles& tiles : c_.tiles) tiles_of_line_ += tiles.count;
  weights_bytes_ = aligned(static_cast<size_t>(terms() * parts(c_.columns.extent, c_.lanes) * c_.lanes * c_.element_bytes));
}

// Packed weights are panels, which have a row for each term. Only dense ones have more than one.
int64_t LineStep::panel_width(int64_t first_channel) const {
  const int64_t rest = parts(c_.columns.extent - first_channel, c_.lanes) * c_.lanes;
  return c_.is_dense ? std::min(rest, c_.vectors * c_.lanes) : rest + first_channel;
}
int64_t LineStep::weights_row(int64_t channel) const { return panel_width(channel) * c_.element_bytes; }
int64_t LineStep::weights_at(int64_t channel) const { return channel * (c_.is_dense ? terms() : 1) * c_.element_bytes; }

void LineStep::pack(std::span<void* const> args, void* packed, void* /*scratch*/, const Executor& executor) const {
  const auto* const weights = static_cast<const char*>(args[c_.right]);
  const int64_t columns = c_.columns.extent, width = panel_width(0);
  constexpr size_t kMostOfTail = 64;
  const size_t tail = std::min(weights_bytes_, kMostOfTail);  // behind the last panel, in a file
  std::memset(static_cast<char*>(packed) + weights_bytes_ - tail, 0, tail);
  for_each_tile(parts(columns, width), executor.at_most(c_.threads), [&](int64_t panel, int) {
    const int64_t first = panel * width;
    pack_panel(weights + first * c_.columns.right * c_.element_bytes, first, std::min(width, columns - first),
               static_cast<char*>(packed) + weights_at(first));
  });
}

// Channels after the last are 0: vectors are whole.
void LineStep::pack_panel(const char* weights, int64_t first_channel, int64_t channels, char* to) const {
  const int64_t bytes = c_.element_bytes, row = weights_row(first_channel), inner = c_.inner_terms.extent;
  const MatrixCopy copy(bytes, bytes, {});
  if (channels * bytes < row) std::memset(to, 0, static_cast<size_t>(terms() * row));
  for (int64_t place = 0; place < terms() / inner; ++place, to += inner * row) {
    int64_t at = 0, rest = place;
    for (size_t a = c_.axes.size(); a-- > 0; rest /= c_.axes[a].terms) at += rest % c_.axes[a].terms * c_.axes[a].right;
    copy(weights + at * bytes, {c_.inner_terms.right * bytes, c_.columns.right * bytes}, to, {row, bytes}, inner, channels);
  }
}

// Of the next panel, for each term: all of it while the tiles of `lines` lines are computed, at most a cache line.
int64_t LineStep::bytes_ahead(int64_t lines) const {
  return std::min(parts(c_.vectors * c_.lanes * c_.element_bytes, lines * tiles_of_line_), tuning::kLine);
}

int64_t LineStep::unit_count() const { return parts(lines_, c_.line_block) * parts(c_.columns.extent, c_.column_block); }

int64_t LineStep::columns_of_parts() const { return c_.is_matrix && unit_count() >= c_.threads ? c_.columns.extent : 0; }

void LineStep::run_in_parts(std::span<void* const> args, void* scratch, const Executor& executor,
                            const std::function<void(const ResultPart&)>& ended) const {
  if (!c_.are_packed_ahead) pack(args, scratch, nullptr, executor);
  const Memory memory{static_cast<const char*>(args[c_.left]),
                      static_cast<const char*>(c_.are_packed_ahead ? args[c_.right] : scratch),
                      c_.bias ? static_cast<const char*>(args[*c_.bias]) : nullptr, static_cast<char*>(args[c_.dst])};
  const int64_t line_blocks = parts(lines_, c_.line_block), pixels = c_.axes.back().rows;
  for_each_tile(unit_count(), executor.at_most(c_.threads), [&](int64_t unit, int) {
    const int64_t line = unit % line_blocks * c_.line_block, channel = unit / line_blocks * c_.column_block;
    const Part part{line, std::min(c_.line_block, lines_ - line), channel,
                    std::min(c_.column_block, c_.columns.extent - channel)};
    Window window(lines_of_window_);
    run_part(memory, part, window.data());
    if (ended) ended({line * pixels, part.lines * pixels, channel, part.channels});
  });
}

// Successive lines share lines of the window, which stay in the first-level cache for some channels.
void LineStep::run_part(const Memory& memory, const Part& part, const void** window) const {
  const int64_t end = part.first_channel + part.channels;
  for (int64_t channel = part.first_channel; channel < end; channel += c_.chunk) {
    const Part of_chunk{part.first_line, part.lines, channel, std::min(c_.chunk, end - channel)};
    for (int64_t line = 0; line < part.lines; ++line) run_line(memory, of_chunk, line, window);
  }
}

void LineStep::run_line(const Memory& memory, const Part& part, int64_t line, const void** window) const {
  const int64_t bytes = part.first_channel * c_.element_bytes;
  const char* const left = memory.left + bytes_of_src(part.first_channel);
  const int64_t dst = find_window(left, part.first_line + line, window) + bytes;
  Memory at{nullptr, memory.weights + weights_at(part.first_channel), memory.bias == nullptr ? nullptr : memory.bias + bytes,
            memory.dst + dst, line * tiles_of_line_};
  for (const LineProgram::Tiles& tiles : c_.tiles) {
    run_channels(tiles, at, part, window);
    at.tile += tiles.count;
  }
}

void LineStep::run_channels(const LineProgram::Tiles& tiles, const Memory& at, const Part& part,
                            const void* const* window) const {
  const Axis& axis = c_.axes.back();
  const int64_t bytes = c_.element_bytes, width = c_.vectors * c_.lanes, whole = part.channels / width;
  const int64_t row = weights_row(part.first_channel);
  const int64_t pixel = axis.per_row * axis.left * bytes, dst_pixel = axis.dst * bytes;
  LineStrides strides{.lines = lines_of_window_,
                      .pixel = pixel,
                      .term = axis.per_term * axis.left * bytes,
                      .weights = row,
                      .dst_pixel = dst_pixel,
                      .tiles = tiles.count,
                      .src_tile = tiles.pixels * pixel,
                      .dst_tile = tiles.pixels * dst_pixel,
                      .blocks = whole,
                      .channel = c_.inner_terms.left * bytes,
                      .channels = c_.inner_terms.extent};
  strides.pixels_term = parts(std::max(strides.src_tile, int64_t{0}), axis.terms * strides.channels);
  if (c_.is_dense && part.first_channel + width < c_.columns.extent) {
    strides.ahead_term = bytes_ahead(part.lines);
    strides.ahead = terms() * (row + at.tile * strides.ahead_term);
  }
  const int64_t first = (tiles.first * axis.per_row + axis.first) * axis.left * bytes, dst = tiles.first * dst_pixel;
  const auto call = [&](const CompiledCode& code, int64_t channel) {
    code.as<LineTileFunction>()(window, first + bytes_of_src(channel), at.weights + channel * bytes,
                                at.dst + dst + channel * bytes, at.bias == nullptr ? nullptr : at.bias + channel * bytes,
                                &strides);
  };
  if (whole > 0) call(code_[tiles.code].whole, 0);
  strides.blocks = 1;
  if (whole * width < part.channels) call(code_[tiles.code].last, whole * width);
}

// To the channel that this column multiplies.
int64_t LineStep::bytes_of_src(int64_t column) const {
  return c_.is_shared ? 0 : column / c_.columns_of_channel * c_.element_bytes;
}

int64_t LineStep::find_window(const char* left, int64_t line, const void** window) const {
  const size_t before = c_.axes.size() - 1;
  std::array<int64_t, kMaxRank> rows;
  int64_t rest = line, dst = 0;
  for (size_t a = before; a-- > 0; rest /= c_.axes[a].rows) {
    rows[a] = rest % c_.axes[a].rows;
    dst += rows[a] * c_.axes[a].dst;
  }
  dst += rest * c_.images.dst;
  left += rest * c_.images.left * c_.element_bytes;
  for (int64_t i = 0; i < lines_of_window_; ++i) {
    int64_t terms = i, offset = 0;
    bool is_inside = true;
    for (size_t a = before; a-- > 0; terms /= c_.axes[a].terms) {
      const int64_t pixel = c_.axes[a].pixel(rows[a], terms % c_.axes[a].terms);
      is_inside = is_inside && pixel >= 0;
      offset += pixel * c_.axes[a].left;
    }
    window[i] = is_inside ? left + offset * c_.element_bytes : nullptr;
  }
  return dst * c_.element_bytes;
}

std::string LineStep::packing() const {
  ByteWriter text;
  text.write(c_.columns), text.write(c_.inner_terms), text.write(c_.axes);
  for (const int64_t number : {c_.element_bytes, c_.lanes, c_.is_dense ? c_.vectors : 0}) text.write(number);
  return "lines" + text.bytes();
}

void LineStep::write(ProgramWriter& to) const {
  to.write(StepKind::lines);
  to.write(c_);
  to.write(code_.size());
  for (const LineCode& code : code_) cpu::write(to, code.whole), cpu::write(to, code.last);
}

std::unique_ptr<const LineStep> LineStep::read(ProgramReader& from, size_t args) {
  auto program = from.get<LineProgram>();
  std::vector<LineCode> code(from.read_count());
  check(program, args, code.size());
  const int64_t width = program.vectors * program.lanes;
  for (LineCode& of_tiles : code) {
    of_tiles.whole = read_code(from), of_tiles.last = read_code(from);
    require((of_tiles.whole || program.columns.extent < width) && (of_tiles.last || program.columns.extent % width == 0),
            "the tiles of a convolution");
  }
  require(program.column_block % width == 0 && program.chunk % width == 0, "blocks of channels");
  require(!program.is_dense || (program.is_shared && program.chunk == width), "blocks of a dense convolution");
  require(!program.are_packed_ahead || program.right == 1, "packed weights of a convolution");
  return std::make_unique<const LineStep>(std::move(program), std::move(code), "convolution by lines");
}

}  // namespace lamina::cpu
