#include "backends/cpu/dispatch/kernel_dispatch.h"

#include <algorithm>
#include <array>

#include "backends/cpu/dispatch/primitive.h"
#include "backends/cpu/host/host.h"
#include "backends/cpu/program/tuning.h"
#include "interface/per_thread.h"
#include "interface/status.h"
#include "kernels/numerics.h"

namespace lamina::cpu {

namespace {

using numerics::kColumnBlockRows;
using tuning::kColumnUnit;

constexpr int64_t kInnerUnit = numerics::kBlock;  // elements; ranges are divided among threads in these units

// The fixed binary tree over blocks: block i joins its sibling as soon as both are complete, independent of the threads that
// computed them. On return, tree[0..count) contains the sums of `count` neighbouring columns.
template <typename T>
LAMINA_FOR_EACH_MACHINE void sum_blocks(const T* partials, int64_t block_stride, int64_t blocks, int64_t count, double* tree,
                                        int64_t tree_stride) {
  int64_t depth = 0;
  for (int64_t b = 0; b < blocks; ++b) {
    double* const top = tree + depth * tree_stride;
    for (int64_t c = 0; c < count; ++c) top[c] = static_cast<double>(partials[b * block_stride + c]);
    ++depth;
    for (int64_t complete = b + 1; complete % 2 == 0; complete /= 2) {
      --depth;
      double* const left = tree + (depth - 1) * tree_stride;
      const double* const right = tree + depth * tree_stride;
      for (int64_t c = 0; c < count; ++c) left[c] += right[c];
    }
  }
  while (depth > 1) {
    --depth;
    double* const left = tree + (depth - 1) * tree_stride;
    const double* const right = tree + depth * tree_stride;
    for (int64_t c = 0; c < count; ++c) left[c] += right[c];
  }
}

// The position in memory of element `linear` of dims [first, last).
int64_t position_in(const Dims& extents, const Dims& strides, size_t first, size_t last, int64_t linear) {
  int64_t position = 0;
  for (size_t d = last; d-- > first;) {
    position += linear % extents[d] * strides[d];
    linear /= extents[d];
  }
  return position;
}

// The number of units per chunk of a thread, for `units` units that move `bytes` bytes in total.
int64_t chunk_of(int64_t units, int64_t bytes, int threads) {
  const double worth = static_cast<double>(tuning::kChunkBytes) / static_cast<double>(std::max<int64_t>(bytes, 1));
  const auto most = static_cast<int64_t>(worth * static_cast<double>(units));
  return std::max<int64_t>(1, std::min(most, units / (threads * tuning::kMinChunks)));
}

}  // namespace

KernelDispatch::KernelDispatch(KernelProgram program, std::unique_ptr<const KernelCode> code)
    : program_(std::move(program)), code_(std::move(code)), rows_(program_.sharing.rows), row_size_(program_.sharing.row_size) {
  if (program_.timed_codes > 1) access_choice_ = std::make_unique<AccessChoice>(program_.timed_codes);
  const auto outer = static_cast<size_t>(program_.outer_rank);
  for (int d = 0; d < program_.entry_rank; ++d) entries_ *= program_.extents[static_cast<size_t>(d)];
  rows_of_entry_ = entries_ == 0 ? 0 : rows_ / entries_;
  blocks_of_entry_ = (rows_of_entry_ + kColumnBlockRows - 1) / kColumnBlockRows;
  call_.assign(program_.args.size(), 0);
  for (size_t d = 0; d < outer; ++d) call_.push_back(program_.extents[d]);
  for (const KernelProgram::Arg& arg : program_.args) {
    for (size_t d = 0; d < outer; ++d) {
      int64_t bytes = 0;  // nibbles: in elements (emit/nibbles.cpp); an overflowing stride is not used
      static_cast<void>(__builtin_mul_overflow(arg.strides[d], bytes_of(arg.dtype, 1), &bytes));
      call_.push_back(bytes);
    }
  }
}

bool KernelDispatch::wants_split(int threads) const {
  const std::vector<bool>& gains = program_.gains_by_split;
  return !gains.empty() && gains[std::min(static_cast<size_t>(threads), gains.size() - 1)];
}

KernelDispatch::Block KernelDispatch::block_of(int64_t block) const {
  const int64_t entry = block / blocks_of_entry_ * rows_of_entry_, first = block % blocks_of_entry_ * kColumnBlockRows;
  return {entry + first, entry + std::min(first + kColumnBlockRows, rows_of_entry_)};
}

size_t KernelDispatch::partial_bytes() const {
  return static_cast<size_t>(column_pitch(row_size_)) * program_.column_sums.size() *
         (program_.sums_in_f64 ? sizeof(double) : sizeof(float));
}

size_t KernelDispatch::column_bytes() const { return aligned(static_cast<size_t>(column_blocks()) * partial_bytes()); }

size_t KernelDispatch::scratch_bytes() const {
  const auto live = static_cast<size_t>(program_.live_bytes) * static_cast<size_t>(program_.slots);
  const int64_t states = program_.splits() ? std::min(rows_, kColumnBlockRows) * program_.state_bytes : 0;
  return column_bytes() + std::max(live, static_cast<size_t>(states));
}

void* KernelDispatch::live_of(void* scratch, int slot) const {
  if (program_.live_bytes == 0) return nullptr;
  return static_cast<char*>(scratch) + column_bytes() + static_cast<size_t>(program_.live_bytes) * static_cast<size_t>(slot);
}

// In place: the lines of the output have just been read into the cache, and streaming would evict them first.
bool KernelDispatch::shares_an_input(size_t output, std::span<void* const> pointers) const {
  for (size_t a = 0; a < pointers.size(); ++a) {
    if (!program_.args[a].is_output && pointers[a] == pointers[output]) return true;
  }
  return false;
}

// Whether all streamed outputs start at a line of 64 bytes or, if the kernel aligns its walk to the first of them, at the same
// element of a line.
bool KernelDispatch::suits(std::span<void* const> pointers) const {
  constexpr auto kLine = static_cast<uintptr_t>(tuning::kLine);
  uintptr_t first = 0;
  for (const int a : program_.streamed) {
    const auto bytes = static_cast<uintptr_t>(bytes_of(program_.args[static_cast<size_t>(a)].dtype, 1));
    const auto address = reinterpret_cast<uintptr_t>(pointers[static_cast<size_t>(a)]);
    if (a == program_.streamed.front() && program_.aligns_to_lines) first = address / bytes;
    if (shares_an_input(static_cast<size_t>(a), pointers)) return false;
    if (address % bytes != 0 || (address / bytes - first) % (kLine / bytes) != 0) return false;
  }
  return true;
}

void KernelDispatch::run(std::span<void* const> pointers, void* scratch, const Executor& executor) const {
  LAMINA_CHECK(pointers.size() == program_.args.size(), "one pointer per arg");
  std::array<int64_t, kInlineWords> inline_words;
  int64_t* call = inline_words.data();
  if (call_.size() > kInlineWords) {
    std::vector<int64_t>& long_words = PerThread<KernelDispatch, std::vector<int64_t>>::get();
    long_words.resize(call_.size());
    call = long_words.data();
  }
  std::copy(call_.begin(), call_.end(), call);
  for (size_t a = 0; a < pointers.size(); ++a) call[a] = static_cast<int64_t>(reinterpret_cast<intptr_t>(pointers[a]));
  const bool is_alone = !program_.is_worth_threads || program_.has_one_thread;
  const Executor team = is_alone ? executor.at_most(1) : executor;
  const bool suits_all = suits(pointers);
  const AccessOfCall access(suits_all ? access_choice_.get() : nullptr, suits_all ? 0 : program_.code_without_streaming());
  if (wants_split(team.threads())) return run_split(access.code(), call, scratch, team);
  const Executor with_memory = program_.live_bytes > 0 ? team.at_most(program_.slots) : team;
  if (program_.column_sums.empty())
    run_rows(access.code(), call, scratch, with_memory);
  else
    run_column_blocks(access.code(), call, scratch, with_memory);
}

KernelDispatch::Parts::Parts(const KernelDispatch& kernel, std::span<void* const> pointers)
    : function_(kernel.code_->variant(kernel.program_.code_without_streaming(), false).function), row_size_(kernel.row_size_) {
  std::copy(kernel.call_.begin(), kernel.call_.end(), call_.begin());
  for (size_t a = 0; a < pointers.size(); ++a) call_[a] = static_cast<int64_t>(reinterpret_cast<intptr_t>(pointers[a]));
}

void KernelDispatch::Parts::run(int64_t columns, int64_t first_row, int64_t rows, int64_t first_column,
                                int64_t columns_of_part) const {
  if (columns_of_part == columns) return run_elements(first_row * columns, (first_row + rows) * columns);
  if (row_size_ == columns)
    return function_(call_.data(), first_row, first_row + rows, first_column, first_column + columns_of_part, nullptr, nullptr);
  for (int64_t row = first_row; row < first_row + rows; ++row) {
    const int64_t begin = row * columns + first_column;
    run_elements(begin, begin + columns_of_part);
  }
}

void KernelDispatch::Parts::run_elements(int64_t begin, int64_t end) const {
  if (begin % row_size_ == 0 && end % row_size_ == 0)
    return function_(call_.data(), begin / row_size_, end / row_size_, 0, row_size_, nullptr, nullptr);
  for (int64_t row = begin / row_size_; row * row_size_ < end; ++row) {
    const int64_t at = row * row_size_;
    function_(call_.data(), row, row + 1, std::max<int64_t>(begin - at, 0), std::min(end - at, row_size_), nullptr, nullptr);
  }
}

// Rows that run the phases together, in one block of column sums.
struct KernelDispatch::Group {
  int64_t block, first, rows;
};

// Portion `index` of `count` equal portions of the work.
struct KernelDispatch::Portion {
  int64_t index, count;
  // Its range of `units` units: begin to end - 1.
  int64_t begin(int64_t units) const { return units * index / count; }
  int64_t end(int64_t units) const { return units * (index + 1) / count; }
};

struct KernelDispatch::SplitWork {
  KernelFunction function;
  const int64_t* call;
  char *sums, *states;  // of the columns' blocks; of a group's rows
  bool non_temporal;
};

int64_t KernelDispatch::groups_of_entry(int64_t rows_at_a_time) const {
  const int64_t last_block = blocks_of_entry_ - 1, rest = rows_of_entry_ - last_block * kColumnBlockRows;
  return last_block * ((kColumnBlockRows + rows_at_a_time - 1) / rows_at_a_time) + (rest + rows_at_a_time - 1) / rows_at_a_time;
}

KernelDispatch::Group KernelDispatch::group_of(int64_t index, int64_t rows_at_a_time) const {
  const int64_t of_a_block = (kColumnBlockRows + rows_at_a_time - 1) / rows_at_a_time,
                of_an_entry = groups_of_entry(rows_at_a_time);
  const int64_t of_entry = index % of_an_entry, block = index / of_an_entry * blocks_of_entry_ + of_entry / of_a_block;
  const Block rows = block_of(block);
  const int64_t first = rows.first + of_entry % of_a_block * rows_at_a_time;
  return {block, first, std::min(rows_at_a_time, rows.end - first)};
}

// Runs groups of rows one after the other, phase after phase: every portion walks its part of each row, then each row is
// combined. If whole rows are reduced, a portion walks separate rows up to the last phase.
void KernelDispatch::run_split(size_t code, const int64_t* call, void* scratch, const Executor& executor) const {
  char* const sums = static_cast<char*>(scratch);
  const SplitWork work{code_->variant(code, true).function, call, sums, sums + column_bytes(), program_.streams[code]};
  const int64_t rows_at_a_time = program_.sharing.rows_between_barriers(executor.threads());
  const int64_t groups = entries_ * groups_of_entry(rows_at_a_time);
  const int64_t of_a_group = program_.split_steps - program_.paired_stages, walking = groups * of_a_group;
  const int64_t parts = executor.threads(), chunk = columns_of_chunk(executor.threads());
  executor.run(
      walking + (program_.column_sums.empty() ? 0 : 1), Scheduling::static_ranges,
      [&](int64_t stage) { return stage < walking ? parts : (row_size_ + chunk - 1) / chunk; },
      [&](const Piece& piece) {
        if (piece.stage == walking)
          return combine_partials(sums, call, piece.begin * chunk, std::min(piece.end * chunk, row_size_));
        const Group group = group_of(piece.stage / of_a_group, rows_at_a_time);
        for (int64_t part = piece.begin; part < piece.end; ++part)
          run_split_stage(work, {part, parts}, group, piece.stage % of_a_group);
      });
}

void KernelDispatch::run_split_stage(const SplitWork& work, Portion portion, const Group& group, int64_t stage) const {
  const int64_t unit = program_.sharing.unit_of_split_row(), units = (row_size_ + unit - 1) / unit;
  const int64_t begin = portion.begin(units) * unit, end = std::min(portion.end(units) * unit, row_size_);
  const int64_t my_begin = portion.begin(group.rows), my_end = portion.end(group.rows);
  char* const block_sums = work.sums + static_cast<size_t>(group.block) * partial_bytes();
  char* const my_states = work.states + my_begin * program_.state_bytes;
  const bool is_pair = stage < program_.paired_stages;
  const int64_t first_step = is_pair ? 2 * stage : stage + program_.paired_stages, steps = is_pair ? 2 : 1;
  for (int64_t step = first_step; step < first_step + steps; ++step) {
    const bool walks = step % 2 == 0, of_my_rows = !walks || is_pair;
    SplitCall split{step, block_of(group.block).first, group.rows, block_sums, of_my_rows ? my_states : work.states};
    if (!of_my_rows && begin < end)
      work.function(work.call, group.first, group.first + group.rows, begin, end, &split, nullptr);
    else if (of_my_rows && walks)
      work.function(work.call, group.first + my_begin, group.first + my_end, 0, row_size_, &split, nullptr);
    else if (of_my_rows)
      work.function(work.call, group.first + my_begin, group.first + my_end, begin, end, &split, nullptr);
    if (work.non_temporal && walks) host::drain_stores();
  }
}

// Threads take chunks of rows. Few long rows without reductions are divided along the row instead.
void KernelDispatch::run_rows(size_t code, const int64_t* call, void* scratch, const Executor& executor) const {
  if (rows_ == 0) return;
  const auto [function, unit_of_rows] = code_->variant(code, false);
  const bool along_rows = program_.sharing.divides_along_rows(executor.threads());
  const int64_t unit = along_rows ? kInnerUnit : unit_of_rows, extent = along_rows ? row_size_ : rows_;
  const int64_t chunk = unit * chunk_of((extent + unit - 1) / unit, program_.moved_bytes, executor.threads());
  const int64_t chunks = (extent + chunk - 1) / chunk;
  executor.at_most(chunks).run(
      1, Scheduling::static_ranges, [&](int64_t) { return chunks; },
      [&](const Piece& piece) {
        const int64_t begin = piece.begin * chunk, end = std::min(piece.end * chunk, extent);
        void* const live = live_of(scratch, piece.slot);
        if (along_rows)
          function(call, 0, rows_, begin, end, nullptr, live);
        else
          function(call, begin, end, 0, row_size_, nullptr, live);
        if (program_.streams[code]) host::drain_stores();
      });
}

// Each block of a fixed number of rows fills separate partial sums. Then runs of columns are combined over the blocks.
void KernelDispatch::run_column_blocks(size_t code, const int64_t* call, void* scratch, const Executor& executor) const {
  const KernelFunction function = code_->variant(code, false).function;
  const auto fill = [&](int64_t b, int slot) {
    char* const partials = static_cast<char*>(scratch) + static_cast<size_t>(b) * partial_bytes();
    const Block rows = block_of(b);
    function(call, rows.first, rows.end, 0, row_size_, partials, live_of(scratch, slot));
  };
  const int64_t blocks = column_blocks(), blocks_of_chunk = chunk_of(blocks, program_.moved_bytes, executor.threads());
  const int64_t columns = columns_of_chunk(executor.threads());
  const int64_t chunks[] = {(blocks + blocks_of_chunk - 1) / blocks_of_chunk, (row_size_ + columns - 1) / columns};
  executor.at_most(std::max(chunks[0], chunks[1]))
      .run(
          2, Scheduling::static_ranges, [&](int64_t stage) { return chunks[stage]; },
          [&](const Piece& piece) {
            if (piece.stage == 1)
              return combine_partials(scratch, call, piece.begin * columns, std::min(piece.end * columns, row_size_));
            const int64_t end = std::min(piece.end * blocks_of_chunk, blocks);
            for (int64_t b = piece.begin * blocks_of_chunk; b < end; ++b) fill(b, piece.slot);
            if (program_.streams[code]) host::drain_stores();
          });
}

// The number of columns, in whole units, whose partial sums a thread combines at a time.
int64_t KernelDispatch::columns_of_chunk(int threads) const {
  const int64_t units = (row_size_ + kColumnUnit - 1) / kColumnUnit;
  return kColumnUnit * chunk_of(units, static_cast<int64_t>(column_bytes()), threads);
}

void KernelDispatch::combine_partials(const void* partials, const int64_t* call, int64_t begin, int64_t end) const {
  if (program_.sums_in_f64)
    combine_columns(static_cast<const double*>(partials), call, begin, end);
  else
    combine_columns(static_cast<const float*>(partials), call, begin, end);
}

// A sum over all rows joins the blocks of all entries.
template <typename T>
void KernelDispatch::combine_columns(const T* partials, const int64_t* call, int64_t begin, int64_t end) const {
  const int64_t pitch = column_pitch(row_size_), of_block = pitch * static_cast<int64_t>(program_.column_sums.size());
  for (size_t slot = 0; slot < program_.column_sums.size(); ++slot) {
    const KernelProgram::Arg& arg = program_.args[static_cast<size_t>(program_.column_sums[slot])];
    auto* const out = reinterpret_cast<char*>(call[program_.column_sums[slot]]);
    const T* const of_slot = partials + static_cast<int64_t>(slot) * pitch;
    const auto entries = static_cast<size_t>(program_.entry_rank);
    const bool by_entry =
        std::any_of(arg.strides.begin(), arg.strides.begin() + program_.entry_rank, [](int64_t s) { return s != 0; });
    if (!by_entry) combine_blocks(of_slot, column_blocks(), arg, out, begin, end);
    for (int64_t entry = 0; by_entry && entry < entries_; ++entry) {
      const int64_t offset = position_in(program_.extents, arg.strides, 0, entries, entry);
      combine_blocks(of_slot + entry * blocks_of_entry_ * of_block, blocks_of_entry_, arg, out + bytes_of(arg.dtype, offset),
                     begin, end);
    }
  }
}

template <typename T>
void KernelDispatch::combine_blocks(const T* partials, int64_t blocks, const KernelProgram::Arg& arg, void* out, int64_t begin,
                                    int64_t end) const {
  constexpr int64_t kRun = 64;
  std::array<double, kRun * 40> tree;  // a tree over at most 2^40 blocks, which exceeds any memory
  const int64_t of_block = column_pitch(row_size_) * static_cast<int64_t>(program_.column_sums.size());
  for (int64_t start = begin; start < end; start += kRun) {
    const int64_t count = std::min(kRun, end - start);
    if (blocks == 0)
      tree.fill(0);  // there are no partial sums
    else
      sum_blocks(partials + start, of_block, blocks, count, tree.data(), kRun);
    store_columns(arg, out, start, count, tree.data());
  }
}

void KernelDispatch::store_columns(const KernelProgram::Arg& arg, void* out, int64_t first, int64_t count,
                                   const double* sums) const {
  const auto outer = static_cast<size_t>(program_.outer_rank);
  if (arg.dtype == DataType::f32 && program_.extents.size() == outer + 1 && arg.strides.back() == 1) {
    for (int64_t c = 0; c < count; ++c) static_cast<float*>(out)[first + c] = static_cast<float>(sums[c]);
    return;
  }
  for (int64_t c = 0; c < count; ++c) {
    const double value = program_.sums_in_f64 ? sums[c] : static_cast<double>(static_cast<float>(sums[c]));
    store_from_double(arg.dtype, out, position_in(program_.extents, arg.strides, outer, program_.extents.size(), first + c),
                      value);
  }
}

}  // namespace lamina::cpu
