#include "backends/gpu/emit/channels_last.h"

#include <utility>

#include "backends/gpu/emit/window_factors.h"
#include "backends/gpu/schedule/tuning.h"
#include "interface/status.h"
#include "kernels/parts.h"

namespace lamina::gpu {

namespace {

using kernel::parts;
using kernel::WindowAxis;
using kernel::WindowDim;
using kernel::WindowedContraction;

constexpr int kChunk = 8;       // elements of 16 bytes
constexpr int kWholeLines = 8;  // chunks of 128 bytes

// The dims of a factor in a contraction.
struct FactorDims {
  WindowDim WindowedContraction::*samples, WindowedContraction::*channels;
  int64_t WindowDim::* stride;
  int64_t WindowAxis::*stride_of_axis, WindowAxis::*extent_of_axis;
};

FactorDims dims_of(const WindowedContraction& c, bool of_left) {
  using Contraction = WindowedContraction;
  if (of_left) {
    return {c.sums_samples ? &Contraction::outer_terms : &Contraction::outer_rows,
            c.sums_samples ? &Contraction::inner_rows : &Contraction::inner_terms, &WindowDim::left, &WindowAxis::left,
            &WindowAxis::pixels};
  }
  FactorDims dims{&Contraction::outer_terms, &Contraction::columns, &WindowDim::right, &WindowAxis::right, &WindowAxis::terms};
  if (c.sums_samples) return dims;
  // Of weights, the channels that are nearer to each other.
  dims.samples = &Contraction::inner_terms;
  if (c.inner_terms.right < c.columns.right) std::swap(dims.samples, dims.channels);
  return dims;
}

// Groups are an outer dim of the channels, else of the samples.
bool has_groups_of_channels(const WindowedContraction& c, const FactorDims& dims) {
  const WindowDim& channels = c.*dims.channels;
  return c.groups.*dims.stride == channels.extent * channels.*dims.stride;
}

WindowedContraction with_copy(WindowedContraction contraction, bool of_left) {
  ChannelsLastCopy(contraction, of_left).apply(contraction);
  return contraction;
}

bool makes_chunks(const WindowedContraction& contraction, bool of_left) {
  const auto is_in_chunks = [&](const WindowedContraction& c) {
    return of_left ? WindowedLeft(c).is_in_chunks() : WindowedRight(c).is_in_chunks();
  };
  return !is_in_chunks(contraction) && is_in_chunks(with_copy(contraction, of_left));
}

// `reads`: elements that the sums copy from the factor to local memory.
bool saves_time(int64_t reads, int64_t elements) {
  return static_cast<double>(reads) * tuning::kPicosecondsOfElementCopiedAlone >
         tuning::kPicosecondsOfCopyFunction + static_cast<double>(elements) * tuning::kPicosecondsOfCopiedElement;
}

}  // namespace

FactorCopies copies_that_make_chunks(const WindowedContraction& contraction) {
  return {.left = makes_chunks(contraction, true), .right = makes_chunks(contraction, false)};
}

FactorCopies copies_that_save_time(const WindowedContraction& contraction, int tile_rows, int tile_columns) {
  FactorCopies copies = copies_that_make_chunks(contraction);
  const int64_t rows = contraction.row_count(), columns = contraction.columns.extent,
                terms = contraction.term_count() * contraction.groups.extent;
  copies.left =
      copies.left && saves_time(rows * terms * parts(columns, tile_columns), ChannelsLastCopy(contraction, true).elements());
  copies.right =
      copies.right && saves_time(columns * terms * parts(rows, tile_rows), ChannelsLastCopy(contraction, false).elements());
  return copies;
}

WindowedContraction with_copies(const WindowedContraction& contraction, const FactorCopies& copies) {
  WindowedContraction made = contraction;
  for (const bool of_left : {true, false})
    if (of_left ? copies.left : copies.right) made = with_copy(std::move(made), of_left);
  return made;
}

ChannelsLastCopy::ChannelsLastCopy(const WindowedContraction& c, bool of_left) : of_left_(of_left) {
  const FactorDims dims = dims_of(c, of_left);
  const WindowDim &samples = c.*dims.samples, &channels = c.*dims.channels;
  const int64_t groups = c.groups.extent;
  const bool groups_are_channels = has_groups_of_channels(c, dims);
  sample_count_ = samples.extent * (groups_are_channels ? 1 : groups);
  stride_of_samples_ = samples.*dims.stride;
  samples_ = &samples == &c.outer_rows    ? "outer_rows"
             : &samples == &c.outer_terms ? "outer_terms"
                                          : std::to_string(sample_count_);
  channels_ = channels.extent * (groups_are_channels ? groups : 1);
  stride_of_channels_ = channels.*dims.stride;
  for (const WindowAxis& axis : c.axes) {
    const Pixels next{axis.*dims.extent_of_axis, axis.*dims.stride_of_axis};
    if (!pixels_.empty() && pixels_.back().stride == next.extent * next.stride)
      pixels_.back() = {pixels_.back().extent * next.extent, next.stride};  // one dim in memory
    else
      pixels_.push_back(next);
  }
}

void ChannelsLastCopy::apply(WindowedContraction& c) const {
  const FactorDims dims = dims_of(c, of_left_);
  WindowDim &samples = c.*dims.samples, &channels = c.*dims.channels;
  const bool groups_are_channels = has_groups_of_channels(c, dims);
  int64_t stride = channels_;
  for (size_t a = c.axes.size(); a-- > 0;) {
    c.axes[a].*dims.stride_of_axis = stride;
    stride *= c.axes[a].*dims.extent_of_axis;
  }
  channels.*dims.stride = 1;
  samples.*dims.stride = stride;
  c.groups.*dims.stride = groups_are_channels ? channels.extent : samples.extent * stride;
}

int64_t ChannelsLastCopy::pixel_count() const {
  int64_t count = 1;
  for (const Pixels& pixels : pixels_) count *= pixels.extent;
  return count;
}

std::string ChannelsLastCopy::bytes_in_text() const { return join("(lm_s64)", samples_, " * ", bytes_of_sample()); }

// Up to 128 bytes of channels, so that a tile's writes of a pixel are one transaction.
int ChannelsLastCopy::tile_chunks() const {
  int chunks = 1;
  while (chunks < kWholeLines && chunks * kChunk < channels_) chunks *= 2;
  return chunks;
}

int ChannelsLastCopy::tile_pixels() const { return tuning::kThreadsOfCopy * tuning::kChunksOfCopyingThread / tile_chunks(); }

Launch ChannelsLastCopy::launch() const {
  return {.groups = {parts(channels_ / kChunk, tile_chunks()), parts(sample_count_ * pixel_count(), tile_pixels())},
          .group_size = tuning::kThreadsOfCopy};
}

int ChannelsLastCopy::resident_groups() { return tuning::kThreadsOfFewRegisters / tuning::kThreadsOfCopy; }

// Eight threads next to each other write chunks of neighbouring pixels in different places modulo 128 bytes, and read chunks
// that follow each other.
std::string ChannelsLastCopy::place_in_tile(const char* pixel, const char* chunk) const {
  const int chunks = tile_chunks();
  if (chunks == 1) return join("tile + ", pixel, " * ", kChunk);
  return join("tile + (", pixel, " * ", chunks, " + (", chunk, " ^ ", pixel,
              chunks == kWholeLines ? "" : join(" / ", kWholeLines / chunks), " % ", chunks, ")) * ", kChunk);
}

void ChannelsLastCopy::emit(Text& out, const std::string& from, const std::string& to) const {
  const int threads = tuning::kThreadsOfCopy, of_thread = tuning::kChunksOfCopyingThread, chunks = tile_chunks(),
            pixels = tile_pixels();
  const int64_t across = parts(channels_ / kChunk, chunks);
  const auto for_chunks = [&] {
    out.open("LM_UNROLL for (int i = 0; i < ", of_thread, "; ++i)");
    out.line("const int item = i * ", threads, " + LM_THREAD;");
  };
  const auto is_inside = join("first_pixel + pixel < pixels && first_chunk + chunk < ", channels_ / kChunk);
  out.line("LM_SHARED lm_u16 tile[", threads * of_thread * kChunk, "] __attribute__((aligned(16)));");
  out.line("LM_GLOBAL const lm_u16* const from = (LM_GLOBAL const lm_u16*)(", from, ");");
  out.line("LM_GLOBAL lm_u16* const to = (LM_GLOBAL lm_u16*)(", to, ");");
  out.line("const lm_ix pixels = (lm_ix)", samples_, " * ", pixel_count(), ", first_pixel = (lm_ix)(LM_GROUP / ", across,
           ") * ", pixels, ";");
  out.line("const int first_chunk = (int)(LM_GROUP % ", across, ") * ", chunks, ";");
  out.line("lm_u16 values[", of_thread, "][", kChunk, "];");
  for_chunks();
  out.line("const int pixel = item % ", pixels, ", chunk = item / ", pixels, ";");
  std::string rest = "(first_pixel + pixel)", place;
  for (size_t p = pixels_.size(); p-- > 0;) {
    place += plus(join("(", rest, " % ", pixels_[p].extent, ")"), pixels_[p].stride);
    rest = join("(", rest, " / ", pixels_[p].extent, ")");
  }
  place += plus(rest, stride_of_samples_) + plus("(first_chunk + chunk)", kChunk * stride_of_channels_);
  // A thread outside reads the first chunk, so that no branch is between the loads.
  out.line("const lm_ix place = ", at_start(place), ", first = ", is_inside, " ? place : 0;");
  out.line("LM_UNROLL for (int e = 0; e < ", kChunk, "; ++e) values[i][e] = from[first", plus("e", stride_of_channels_), "];");
  out.close();
  for_chunks();
  out.line("const int pixel = item % ", pixels, ", chunk = item / ", pixels, ";");
  out.line("LM_STORE_CHUNK(", place_in_tile("pixel", "chunk"), ", values[i]);");
  out.close();
  out.line("LM_BARRIER;");
  for_chunks();
  out.line("const int pixel = item / ", chunks, ", chunk = item % ", chunks, ";");
  out.open("if (", is_inside, ")");
  out.line("LM_LOAD_CHUNK(values[i], ", place_in_tile("pixel", "chunk"), ");");
  out.line("LM_STORE_CHUNK(to + ((first_pixel + pixel) * ", channels_, " + (first_chunk + chunk) * ", kChunk, "), values[i]);");
  out.close();
  out.close();
}

}  // namespace lamina::gpu
