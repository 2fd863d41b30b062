#include "backends/gpu/emit/matrix_tile_text.h"

#include <algorithm>

#include "backends/gpu/emit/c_types.h"
#include "backends/gpu/emit/product_tile.h"
#include "interface/status.h"

namespace lamina::gpu {

namespace {

constexpr int kChunk = 8;                                         // elements of 16 bytes
constexpr int kPanel = 64;                                        // elements of 128 bytes
constexpr int kTileRows = 16, kTileColumns = 8, kTileTerms = 16;  // of an instruction of one warp
constexpr int kWarpsOfGroup = 4;

// The first element of a chunk of local memory. `line` and `chunk` count along the two axes; `line_of_8` is the line modulo 8.
// Eight lines next to each other have a chunk in eight different places modulo 128 bytes.
std::string chunk_at(const std::string& line, const std::string& line_of_8, const std::string& chunk, int lines,
                     int chunks_of_line) {
  const int ways = std::min(kPanel / kChunk, chunks_of_line);
  const std::string turn = ways == kChunk ? line_of_8 : join(line_of_8, " / ", kChunk / ways);
  const bool has_panels = chunks_of_line > ways;
  const std::string panel = has_panels ? join("(", chunk, ") / ", ways, " * ", lines * kPanel, " + ") : "";
  return join(panel, "(", line, ") * ", ways * kChunk, " + (",
              has_panels ? join("(", chunk, ") % ", ways) : join("(", chunk, ")"), " ^ (", turn, ")) * ", kChunk);
}

// The name of how many rows or columns of the tile are inside of dst.
const char* inside_of(const TileCopies& copies) { return copies.tile == std::string("left") ? "rows" : "columns"; }

// How many of a chunk's elements are before `end`.
std::string elements_from(const std::string& end, const std::string& first) {
  return join(end, " - ", first, " < 0 ? 0 : ", end, " - ", first, " < ", kChunk, " ? (int)(", end, " - ", first,
              ") : ", kChunk);
}

}  // namespace

// A matrix whose chunks begin at multiples of 16 bytes is copied by chunks.
void StridedFactor::emit_start(Text& out, const TileCopies&) const {
  out.line("const int ", name(), "_in_chunks = ", dense(), " == 1 && ((lm_s64)", name(), " | ", other(), " * 2) % 16 == 0;");
  out.line("LM_GLOBAL const lm_u16* ", name(), "_from = ", name(), " + (lm_s64)", name(), "_line * ", other(), " + ", name(),
           "_first * ", dense(), ";");
}

void StridedFactor::emit_copy(Text& out, const TileCopies& copies, bool in_chunks) const {
  out.line("LM_GLOBAL const lm_u16* const from = ", name(), "_from + i * (", copies.lines_apart, " * ", other(), ");");
  if (in_chunks) return out.line("lm_copy_chunk(to, from, count);");
  out.line("LM_UNROLL for (int e = 0; e < ", kChunk, "; ++e) to[e] = e < count ? from[e * ", dense(), "] : (lm_u16)0;");
}

void StridedFactor::emit_end(Text& out, const TileCopies&, int depth) const {
  out.line(name(), "_from += ", depth, " * ", stride_of_terms_, ";");
}

int MatrixTileText::blocks_down() const { return tile_.rows / tile_.warps_down / kTileRows; }

std::string MatrixTileText::place(const std::string& row_count, const std::string& column_count) {
  out_.line("LM_MATRIX_MEMORY(", tile_.local_bytes(), ", ", tile_.group_size(), ");");
  out_.line("LM_LOCAL lm_u16 *const left = lm_memory, *const right = lm_memory + ", tile_.stages * tile_.rows * tile_.depth,
            ";");
  out_.line("const int thread = LM_THREAD, lane = thread % 32;");
  out_.line("const int warp_down = LM_WARP / ", tile_.warps_across, ", warp_across = LM_WARP % ", tile_.warps_across, ";");
  return emit_place_of_tile(out_, tile_.rows, tile_.columns, row_count, column_count);
}

TileCopies MatrixTileText::copies_of(const char* tile, int extent, const MatrixFactor& factor) const {
  TileCopies copies{.tile = tile, .extent = extent, .along_terms = factor.along_terms(), .depth = tile_.depth};
  copies.chunks_of_line = (factor.along_terms() ? tile_.depth : extent) / kChunk;
  copies.lines = factor.along_terms() ? extent : tile_.depth;
  copies.lines_apart = tile_.group_size() / copies.chunks_of_line;
  return copies;
}

void MatrixTileText::emit_place_of_copies(const TileCopies& copies, const MatrixFactor& factor) {
  out_.line("const int ", factor.name(), "_line = thread / ", copies.chunks_of_line, ", ", factor.name(), "_first = thread % ",
            copies.chunks_of_line, " * ", kChunk, ";");
  if (!factor.along_terms())
    out_.line("const int ", factor.name(), "_count = ", elements_from(inside_of(copies), join(factor.name(), "_first")), ";");
  factor.emit_start(out_, copies);
  out_.line("const int ", factor.name(), "_is_whole = ", factor.name(), "_in_chunks && ", inside_of(copies),
            " == ", copies.extent, ";");
}

// Most steps copy whole tiles, without looking for their ends. In products of few rows, no step of the left factor does.
void MatrixTileText::emit_copies(const TileCopies& copies, const MatrixFactor& factor) {
  out_.open("if (", factor.name(), "_is_whole && depth == ", tile_.depth, ")");
  emit_copies_of_step(copies, factor, Copies::whole);
  out_.close();
  out_.open("else if (", factor.name(), "_in_chunks)");
  emit_copies_of_step(copies, factor, Copies::in_chunks);
  out_.close();
  out_.open("else");
  emit_copies_of_step(copies, factor, Copies::by_elements);
  out_.close();
  factor.emit_end(out_, copies, tile_.depth);
}

void MatrixTileText::emit_copies_of_step(const TileCopies& copies, const MatrixFactor& factor, Copies how) {
  const std::string& name = factor.name();
  const bool is_whole = how == Copies::whole;
  if (factor.along_terms() && !is_whole)
    out_.line("const int ", name, "_count = ", elements_from("depth", join(name, "_first")), ";");
  factor.emit_step(out_, copies);
  out_.open(how != Copies::by_elements || factor.has_arrays() ? "LM_UNROLL" : "LM_ROLLED", " for (int i = 0; i < ",
            copies.per_thread(), "; ++i)");
  out_.line("const int line = ", name, "_line + i * ", copies.lines_apart, ";");
  if (copies.lines % copies.lines_apart != 0) out_.line("if (line >= ", copies.lines, ") continue;");
  if (is_whole)
    out_.line("const int count = ", kChunk, ";");
  else
    out_.line("const int count = line < ", factor.along_terms() ? inside_of(copies) : "depth", " ? ", name, "_count : 0;");
  const std::string line_of_8 = copies.lines_apart % 8 == 0 ? join(name, "_line % 8") : "line % 8";
  out_.line("LM_LOCAL lm_u16* const to = ", copies.tile, " + next_stage * ", copies.extent * tile_.depth, " + ",
            chunk_at("line", line_of_8, join(name, "_first / ", kChunk), copies.lines, copies.chunks_of_line), ";");
  factor.emit_copy(out_, copies, how != Copies::by_elements);
  out_.close();
}

void MatrixTileText::sum(const TermRange& terms, const MatrixFactor& left, const MatrixFactor& right) {
  const int sums = columns_of_warp() / kTileColumns * 4, ahead = tile_.steps_ahead();
  const TileCopies of_left = copies_of("left", tile_.rows, left), of_right = copies_of("right", tile_.columns, right);
  emit_place_of_copies(of_left, left);
  emit_place_of_copies(of_right, right);
  out_.line("lm_f32 sum[", blocks_down(), "][", sums, "];");
  out_.line("LM_UNROLL for (int i = 0; i < ", blocks_down(), "; ++i) LM_UNROLL for (int j = 0; j < ", sums,
            "; ++j) sum[i][j] = 0;");
  const std::string before = terms.first.empty() ? "" : join(terms.first, " + "),
                    count = terms.first.empty() ? terms.end : join(terms.end, " - ", terms.first);
  out_.line("const int steps = (int)((", count, " + ", tile_.depth - 1, ") / ", tile_.depth, ");");
  out_.line("int stage = 0, next_stage = 0;");
  out_.open("for (int step = ", -ahead, "; step < steps; ++step)");
  out_.open("if (step >= 0)");
  out_.line("LM_WAIT_FOR_COPIES(", ahead - 1, ");");
  if (tile_.by_four_warps) out_.line("lm_show_copies();");
  out_.line("LM_BARRIER;");
  if (tile_.by_four_warps) multiply_by_four_warps(left, right);
  out_.close();
  out_.open("if (step + ", ahead, " < steps)");
  out_.line("const lm_s64 done = ", before, "(lm_s64)(step + ", ahead, ") * ", tile_.depth, ", left_over = ", terms.end,
            " - done;");
  out_.line("const int depth = left_over < ", tile_.depth, " ? (int)left_over : ", tile_.depth, ";");
  emit_copies(of_left, left);
  emit_copies(of_right, right);
  out_.close();
  out_.line("lm_end_copies();");
  out_.line("next_stage = next_stage == ", tile_.stages - 1, " ? 0 : next_stage + 1;");
  if (tile_.by_four_warps) {
    out_.line("LM_WAIT_FOR_PRODUCTS(1);");
  } else {
    out_.line("if (step < 0) continue;");
    multiply_by_warp(left, right);
  }
  out_.close();
  if (tile_.by_four_warps) out_.line("LM_WAIT_FOR_PRODUCTS(0);");
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
  return join(
      from, " + ",
      chunk_at(line, "lane % 8", chunk, along_terms ? extent : tile_.depth, (along_terms ? tile_.depth : extent) / kChunk));
}

void MatrixTileText::multiply_by_warp(const MatrixFactor& left, const MatrixFactor& right) {
  const int across = columns_of_warp() / kTileColumns;
  const auto stage = [&](const char* name, int extent) {
    out_.line("LM_LOCAL const lm_u16* const ", name, "_now = ", name, " + stage * ", extent * tile_.depth, ";");
  };
  const auto load = [](bool transposed) { return transposed ? "lm_load_matrices_transposed" : "lm_load_matrices"; };
  stage("left", tile_.rows);
  stage("right", tile_.columns);
  out_.open("LM_UNROLL for (int term = 0; term < ", tile_.depth, "; term += ", kTileTerms, ")");
  out_.line("lm_u32 l[", blocks_down(), "][4], r[", across / 2, "][4];");
  out_.line("LM_UNROLL for (int i = 0; i < ", blocks_down(), "; ++i) ", load(!left.along_terms()), "(l[i], ",
            matrices("left_now", tile_.rows, left.along_terms(), join("(i * ", tile_.warps_down, " + warp_down) * ", kTileRows),
                     "term", true),
            ");");
  out_.line("LM_UNROLL for (int j = 0; j < ", across / 2, "; ++j) ", load(!right.along_terms()), "(r[j], ",
            matrices("right_now", tile_.columns, right.along_terms(),
                     join("warp_across * ", columns_of_warp(), " + j * ", 2 * kTileColumns), "term", false),
            ");");
  out_.open("LM_UNROLL for (int i = 0; i < ", blocks_down(), "; ++i)");
  out_.line("LM_UNROLL for (int j = 0; j < ", across, "; ++j) lm_multiply_", lamina::name_of(dtype_),
            "(sum[i] + j * 4, l[i], r[j / 2] + j % 2 * 2);");
  out_.close();
  out_.close();
  out_.line("stage = stage == ", tile_.stages - 1, " ? 0 : stage + 1;");
}

// The first element of 64 rows is also that of a panel, if these are dense.
void MatrixTileText::multiply_by_four_warps(const MatrixFactor& left, const MatrixFactor& right) {
  LAMINA_CHECK(tile_.depth == kPanel && tile_.warps_across == 1, "instructions of four warps need whole panels");
  const auto step_of = [&](bool along_terms) { return along_terms ? kTileTerms : kTileTerms * kPanel; };
  out_.line("lm_start_products();");
  out_.open("LM_UNROLL for (int term = 0; term < ", tile_.depth / kTileTerms, "; ++term)");
  out_.open("LM_UNROLL for (int i = 0; i < ", blocks_down(), "; ++i)");
  out_.line("lm_multiply_by_four_warps(sum[i], left + stage * ", tile_.rows * tile_.depth, " + (i * ",
            tile_.warps_down / kWarpsOfGroup, " + warp_down / ", kWarpsOfGroup, ") * ", kPanel * kPanel, " + term * ",
            step_of(left.along_terms()), ", right + stage * ", tile_.columns * tile_.depth, " + term * ",
            step_of(right.along_terms()), ");");
  out_.close();
  out_.close();
  out_.line("lm_end_products();");
  out_.line("stage = stage == ", tile_.stages - 1, " ? 0 : stage + 1;");
}

// A thread has pairs of neighbouring columns. They are stored at once where that is aligned.
void MatrixTileText::store(const TileDst& dst) {
  LAMINA_CHECK(is_floating(dst.dtype) && bits_of(dst.dtype) <= 32, "a product by matrix instructions of another type");
  const int across = columns_of_warp() / kTileColumns;
  const bool is_half = bits_of(dst.dtype) == 16;
  out_.open("LM_UNROLL for (int i = 0; i < ", blocks_down(), "; ++i)");
  out_.open("LM_UNROLL for (int upper = 0; upper < 2; ++upper)");
  out_.line("const lm_ix row = (i * ", tile_.warps_down, " + warp_down) * ", kTileRows, " + upper * 8 + lane / 4;");
  out_.line("if (row >= rows) continue;");
  dst.emit_row();
  out_.open("LM_UNROLL for (int j = 0; j < ", across, "; ++j)");
  out_.line("const lm_ix column = warp_across * ", columns_of_warp(), " + j * ", kTileColumns, " + lane % 4 * 2;");
  out_.line("if (column >= columns) continue;");
  out_.line("LM_GLOBAL ", storage_type(dst.dtype), "* const to = ", dst.place("column"), ";");
  out_.open("if (column + 1 < columns)");
  out_.line("const ", storage_type(dst.dtype), " first = ", dst.value("sum[i][j * 4 + upper * 2]", "column"),
            ", second = ", dst.value("sum[i][j * 4 + upper * 2 + 1]", "(column + 1)"), ";");
  out_.open("if (", dst.stride_of_columns, " == 1 && (lm_s64)to % ", is_half ? 4 : 8, " == 0)");
  if (is_half)
    out_.line("*(LM_GLOBAL lm_u32*)to = first | (lm_u32)second << 16;");
  else
    out_.line("*(LM_GLOBAL lm_u64*)to = lm_bits_f32(first) | (lm_u64)lm_bits_f32(second) << 32;");
  out_.close();
  out_.open("else");
  out_.line("to[0] = first;");
  out_.line("to[", dst.stride_of_columns, "] = second;");
  out_.close();
  out_.close();
  out_.line("else to[0] = ", dst.value("sum[i][j * 4 + upper * 2]", "column"), ";");
  for (int loops = 0; loops < 3; ++loops) out_.close();
}

std::string matrix_instructions_text(const Language& language, const MatrixTile& tile, DataType dtype, bool left_along_terms,
                                     bool right_along_terms) {
  std::string text = language.matrix_instructions;
  if (tile.by_four_warps)
    text += language.instructions_of_four_warps(tile.columns, std::string(lamina::name_of(dtype)), left_along_terms,
                                                right_along_terms);
  return text;
}

}  // namespace lamina::gpu
