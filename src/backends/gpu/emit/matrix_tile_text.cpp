#include "backends/gpu/emit/matrix_tile_text.h"

#include <algorithm>

#include "backends/gpu/emit/product_tile.h"
#include "interface/status.h"

namespace lamina::gpu {

namespace {

constexpr int kChunk = 8;                                         // elements of 16 bytes
constexpr int kTileRows = 16, kTileColumns = 8, kTileTerms = 16;  // of one instruction

// The first element of a chunk of local memory. `line` and `chunk` count along the two axes; `line_of_8` is the line modulo 8.
// Eight lines next to each other have a chunk in eight different places modulo 128 bytes, so that a warp reads them at once.
std::string chunk_at(const std::string& line, const std::string& line_of_8, const std::string& chunk, int chunks_of_line) {
  const int ways = std::min(kChunk, chunks_of_line);
  const std::string turn = ways == kChunk ? line_of_8 : join(line_of_8, " / ", kChunk / ways);
  return join("(", line, ") * ", chunks_of_line * kChunk, " + ((", chunk, ") ^ (", turn, ")) * ", kChunk);
}

}  // namespace

std::string MatrixTileText::place(const std::string& row_count, const std::string& column_count) {
  const auto shared = [&](const char* name, int extent) {
    out_.line("LM_SHARED lm_u16 ", name, "[", tile_.stages * extent * tile_.depth, "] __attribute__((aligned(16)));");
  };
  out_.line("LM_MATRIX_EXCHANGE(", tile_.group_size(), ");");
  shared("left", tile_.rows);
  shared("right", tile_.columns);
  out_.line("const int thread = LM_THREAD, lane = thread % 32;");
  out_.line("const int warp_row = thread / 32 / ", tile_.warps_across, " * ", warp_rows(), ", warp_column = thread / 32 % ",
            tile_.warps_across, " * ", warp_columns(), ";");
  return emit_place_of_tile(out_, tile_.rows, tile_.columns, row_count, column_count);
}

// What a thread copies at each step: one chunk of every `lines_apart`-th line, at the same place in all of them.
MatrixTileText::Copies MatrixTileText::copies_of(const char* tile, int extent, const char* inside,
                                                 const MatrixFactor& factor) const {
  Copies copies{tile, inside, factor};
  copies.dense = factor.along_terms ? factor.stride_of_terms : factor.stride;
  copies.other = factor.along_terms ? factor.stride : factor.stride_of_terms;
  copies.extent = extent;
  copies.chunks_of_line = (factor.along_terms ? tile_.depth : extent) / kChunk;
  copies.lines = factor.along_terms ? extent : tile_.depth;
  copies.lines_apart = tile_.group_size() / copies.chunks_of_line;
  return copies;
}

// A factor whose chunks begin at multiples of 16 bytes is copied by chunks.
void MatrixTileText::emit_start(const Copies& copies) {
  const MatrixFactor& factor = copies.factor;
  const std::string name = factor.name, dense = copies.dense, other = copies.other;
  out_.line("const int ", name, "_in_chunks = ", dense, " == 1 && ((lm_s64)", name, " | ", other, " * 2) % 16 == 0;");
  out_.line("const int ", name, "_line = thread / ", copies.chunks_of_line, ", ", name, "_first = thread % ",
            copies.chunks_of_line, " * ", kChunk, ";");
  if (!factor.along_terms) out_.line("const int ", name, "_count = ", elements_from(copies.inside, join(name, "_first")), ";");
  out_.line("LM_GLOBAL const lm_u16* ", name, "_from = ", name, " + (lm_s64)", name, "_line * ", other, " + ", name,
            "_first * ", dense, ";");
}

// How many of a chunk's elements are before `end`.
std::string MatrixTileText::elements_from(const std::string& end, const std::string& first) const {
  return join(end, " - ", first, " < 0 ? 0 : ", end, " - ", first, " < ", kChunk, " ? (int)(", end, " - ", first,
              ") : ", kChunk);
}

void MatrixTileText::emit_copies(const Copies& copies) {
  const MatrixFactor& factor = copies.factor;
  const std::string name = factor.name, dense = copies.dense, other = copies.other;
  if (factor.along_terms) out_.line("const int ", name, "_count = ", elements_from("depth", join(name, "_first")), ";");
  out_.open("LM_UNROLL for (int i = 0; i < ", (copies.lines + copies.lines_apart - 1) / copies.lines_apart, "; ++i)");
  out_.line("const int line = ", name, "_line + i * ", copies.lines_apart, ";");
  if (copies.lines % copies.lines_apart != 0) out_.line("if (line >= ", copies.lines, ") continue;");
  out_.line("const int count = line < ", factor.along_terms ? copies.inside : "depth", " ? ", name, "_count : 0;");
  const std::string line_of_8 = copies.lines_apart % 8 == 0 ? join(name, "_line % 8") : "line % 8";
  out_.line("LM_LOCAL lm_u16* const to = ", copies.tile, " + next_stage * ", copies.extent * tile_.depth, " + ",
            chunk_at("line", line_of_8, join(name, "_first / ", kChunk), copies.chunks_of_line), ";");
  out_.line("LM_GLOBAL const lm_u16* const from = count > 0 ? ", name, "_from + i * (", copies.lines_apart, " * ", other,
            ") : ", name, ";");
  out_.line("if (", name, "_in_chunks) lm_copy_chunk(to, from, count);");
  out_.line("else LM_UNROLL for (int e = 0; e < ", kChunk, "; ++e) to[e] = e < count ? from[e * ", dense, "] : (lm_u16)0;");
  out_.close();
  out_.line(name, "_from += ", tile_.depth, " * ", factor.stride_of_terms, ";");
}

void MatrixTileText::sum(const std::string& term_count, const MatrixFactor& left, const MatrixFactor& right) {
  const int sums = warp_rows() / kTileRows * (warp_columns() / kTileColumns);
  const Copies of_left = copies_of("left", tile_.rows, "rows", left),
               of_right = copies_of("right", tile_.columns, "columns", right);
  emit_start(of_left);
  emit_start(of_right);
  out_.line("lm_f32 sum[", sums, "][4];");
  out_.line("LM_UNROLL for (int i = 0; i < ", sums, "; ++i) sum[i][0] = sum[i][1] = sum[i][2] = sum[i][3] = 0;");
  out_.line("const int steps = (int)((", term_count, " + ", tile_.depth - 1, ") / ", tile_.depth, ");");
  out_.line("int stage = 0, next_stage = 0;");
  out_.open("for (int step = ", 1 - tile_.stages, "; step < steps; ++step)");
  out_.open("if (step >= 0)");
  out_.line("LM_WAIT_FOR_COPIES(", tile_.stages - 2, ");");
  out_.line("LM_BARRIER;");
  out_.close();
  out_.open("if (step + ", tile_.stages - 1, " < steps)");
  out_.line("const lm_s64 left_over = ", term_count, " - (lm_s64)(step + ", tile_.stages - 1, ") * ", tile_.depth, ";");
  out_.line("const int depth = left_over < ", tile_.depth, " ? (int)left_over : ", tile_.depth, ";");
  emit_copies(of_left);
  emit_copies(of_right);
  out_.close();
  out_.line("lm_end_copies();");
  out_.line("next_stage = next_stage == ", tile_.stages - 1, " ? 0 : next_stage + 1;");
  out_.line("if (step < 0) continue;");
  multiply(left, right);
  out_.line("stage = stage == ", tile_.stages - 1, " ? 0 : stage + 1;");
  out_.close();
}

// The place from which a thread's lane loads: four matrices of 8 x 8, by lines of 8 lanes each. Those of the left factor go
// first down, then along the terms; those of the right factor the other way round.
std::string MatrixTileText::matrices(const char* from, int extent, bool along_terms, const std::string& at,
                                     const std::string& term, bool is_left) const {
  const char *const first = "lane / 8 % 2", *const second = "lane / 16";
  const char *const half_of_at = is_left ? first : second, *const half_of_terms = is_left ? second : first;
  const std::string line =
      along_terms ? join(at, " + ", half_of_at, " * 8 + lane % 8") : join(term, " + ", half_of_terms, " * 8 + lane % 8");
  const std::string chunk = along_terms ? join("(", term, ") / 8 + ", half_of_terms) : join("(", at, ") / 8 + ", half_of_at);
  return join(from, " + ", chunk_at(line, "lane % 8", chunk, (along_terms ? tile_.depth : extent) / kChunk));
}

void MatrixTileText::multiply(const MatrixFactor& left, const MatrixFactor& right) {
  const int down = warp_rows() / kTileRows, across = warp_columns() / kTileColumns;
  const auto stage = [&](const char* name, int extent) {
    out_.line("LM_LOCAL const lm_u16* const ", name, "_now = ", name, " + stage * ", extent * tile_.depth, ";");
  };
  const auto load = [](bool transposed) { return transposed ? "lm_load_matrices_transposed" : "lm_load_matrices"; };
  stage("left", tile_.rows);
  stage("right", tile_.columns);
  out_.open("LM_UNROLL for (int term = 0; term < ", tile_.depth, "; term += ", kTileTerms, ")");
  out_.line("lm_u32 l[", down, "][4], r[", across / 2, "][4];");
  out_.line("LM_UNROLL for (int i = 0; i < ", down, "; ++i) ", load(!left.along_terms), "(l[i], ",
            matrices("left_now", tile_.rows, left.along_terms, join("warp_row + i * ", kTileRows), "term", true), ");");
  out_.line(
      "LM_UNROLL for (int j = 0; j < ", across / 2, "; ++j) ", load(!right.along_terms), "(r[j], ",
      matrices("right_now", tile_.columns, right.along_terms, join("warp_column + j * ", 2 * kTileColumns), "term", false),
      ");");
  out_.open("LM_UNROLL for (int i = 0; i < ", down, "; ++i)");
  out_.line("LM_UNROLL for (int j = 0; j < ", across, "; ++j) lm_multiply_", lamina::name_of(dtype_), "(sum[i * ", across,
            " + j], l[i], r[j / 2] + j % 2 * 2);");
  out_.close();
  out_.close();
}

void MatrixTileText::store(const std::function<void(const std::string& sum)>& store) {
  const int down = warp_rows() / kTileRows, across = warp_columns() / kTileColumns;
  out_.open("LM_UNROLL for (int i = 0; i < ", down, "; ++i)");
  out_.open("LM_UNROLL for (int j = 0; j < ", across, "; ++j)");
  out_.open("LM_UNROLL for (int e = 0; e < 4; ++e)");
  out_.line("const lm_ix row = warp_row + i * ", kTileRows, " + e / 2 * 8 + lane / 4, column = warp_column + j * ",
            kTileColumns, " + lane % 4 * 2 + e % 2;");
  out_.open("if (row < rows && column < columns)");
  store(join("sum[i * ", across, " + j][e]"));
  for (int loops = 0; loops < 4; ++loops) out_.close();
}

}  // namespace lamina::gpu
