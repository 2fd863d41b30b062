#include "backends/cpu/run/kernel_runner.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/code/cached_costs.h"
#include "backends/cpu/code/host_machine.h"
#include "backends/cpu/emit/split_call.h"
#include "backends/cpu/host/host.h"
#include "backends/cpu/schedule/cost_model.h"
#include "backends/cpu/schedule/legal_schedules.h"
#include "backends/cpu/schedule/loop_policy.h"
#include "backends/cpu/schedule/tuning.h"
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

// The number of units per chunk of a thread, for `units` units that move `bytes` bytes in total.
int64_t chunk_of(int64_t units, int64_t bytes, int threads) {
  const double worth = static_cast<double>(tuning::kChunkBytes) / static_cast<double>(std::max<int64_t>(bytes, 1));
  const auto most = static_cast<int64_t>(worth * static_cast<double>(units));
  return std::max<int64_t>(1, std::min(most, units / (threads * tuning::kMinChunks)));
}

bool stores_row_values(const kernel::Kernel& kernel) {
  return std::any_of(kernel.nodes.begin(), kernel.nodes.end(),
                     [](const kernel::Node& n) { return n.kind == kernel::NodeKind::store && !n.per_element; });
}

}  // namespace

KernelRunner::KernelRunner(kernel::Kernel kernel, const Machine& machine, const Schedule* given, bool takes_tuned)
    : machine_(machine),
      runs_here_(host_runs(machine)),
      kernel_(with_rows_arranged(std::move(kernel), machine)),
      tuned_(takes_tuned ? find_tuned<Schedule>(kernel_, machine) : std::nullopt),
      given_(given != nullptr ? std::optional(*given)
             : tuned_         ? std::optional(tuned_->chosen.schedule)
                              : std::nullopt),
      code_(compile(true)),
      gains_by_split_(splits_that_gain()),
      splits_(given_ ? given_->split
                     : std::find(gains_by_split_.begin(), gains_by_split_.end(), true) != gains_by_split_.end()),
      is_worth_threads_(CostModel(kernel_, machine_).is_worth_threads()),
      sharing_(kernel_, machine.caches) {
  rows_ = kernel_.row_count();
  row_size_ = kernel_.row_size();
  moved_bytes_ = moved_bytes(kernel_);
  split_steps_ = 2 * kernel_.phase_count() - (stores_row_values(kernel_) ? 0 : 1);
  paired_stages_ = sharing_.reduces_whole_rows() ? kernel_.phase_count() - 1 : 0;
  if (splits_) state_bytes_ = split_state_bytes(kernel_);
  const auto outer = static_cast<size_t>(kernel_.outer_rank);
  call_.assign(kernel_.args.size(), 0);
  for (size_t d = 0; d < outer; ++d) call_.push_back(kernel_.extents[d]);
  for (const kernel::Arg& arg : kernel_.args) {
    for (size_t d = 0; d < outer; ++d) {
      int64_t bytes = 0;  // nibbles: in elements (emit/nibbles.cpp); an overflowing stride is not used
      static_cast<void>(__builtin_mul_overflow(arg.strides[d], bytes_of(arg.dtype, 1), &bytes));
      call_.push_back(bytes);
    }
    one_thread_ = one_thread_ || (arg.output && shares_bytes(arg));
  }
  for (const kernel::Node& node : kernel_.nodes) {
    if (node.kind != kernel::NodeKind::column_sum) continue;
    columns_.push_back({node.arg, kernel_.args[static_cast<size_t>(node.arg)].dtype});
    wide_ = node.type == kernel::Type::f64;
  }
  if (wants_split(machine_.cores)) split_function(code_);
}

KernelRunner::Code KernelRunner::compile(bool may_stream) const {
  Schedule schedule = given_ ? *given_ : choose_schedule(kernel_, machine_, may_stream);
  if (given_ && !may_stream) schedule = without_streaming(std::move(schedule));
  schedule.split = false;
  CompiledKernel cached = compile_kernel(kernel_, schedule, machine_);
  const bool non_temporal = !schedule.streamed.empty();
  return {std::move(schedule), std::move(cached), non_temporal, std::make_unique<SplitCode>()};
}

std::vector<bool> KernelRunner::splits_that_gain() const {
  std::vector<bool> gains(static_cast<size_t>(std::max(machine_.cores, 1)) + 1, false);
  for (size_t threads = 2; !given_ && threads < gains.size(); ++threads)
    gains[threads] = gains_by_split(code_.schedule, kernel_, machine_, static_cast<int>(threads));
  return gains;
}

Schedule KernelRunner::schedule() const {
  if (given_) return *given_;
  return wants_split(machine_.cores) ? split_schedule(code_.schedule, kernel_, machine_) : code_.schedule;
}

std::string KernelRunner::choice() const {
  const std::string fields = describe(schedule()), what = fields.empty() ? "nothing unusual" : fields;
  if (!tuned_) return join(given_ ? "given: " : "by rule: ", what);
  return tuned_texts::choice(what, text_of(*tuned_));
}

std::string KernelRunner::loops() const {
  const Schedule chosen = schedule();
  return kernel::print(kernel::LoopPlan(kernel_, loop_policy(kernel_, chosen)));
}

// Only some numbers of threads need it.
KernelFunction KernelRunner::split_function(const Code& code) const {
  code.split->compiled.call([&] {
    Schedule schedule = code.schedule;
    schedule.split = true;
    code.split->kernel =
        compile_kernel(kernel_, given_ ? schedule : split_schedule(code.schedule, kernel_, machine_), machine_);
  });
  return code.split->kernel.function;
}

const KernelRunner::Code& KernelRunner::plain_code() const {
  plain_->compiled.call([this] { plain_->code = compile(false); });
  return plain_->code;
}

int64_t KernelRunner::column_blocks() const { return (rows_ + kColumnBlockRows - 1) / kColumnBlockRows; }

size_t KernelRunner::partial_bytes() const {
  return static_cast<size_t>(column_pitch(row_size_)) * columns_.size() * (wide_ ? sizeof(double) : sizeof(float));
}

size_t KernelRunner::column_bytes() const {
  constexpr auto kLine = static_cast<size_t>(tuning::kLine);
  const size_t bytes = static_cast<size_t>(column_blocks()) * partial_bytes();
  return (bytes + kLine - 1) / kLine * kLine;
}

size_t KernelRunner::scratch_bytes() const {
  if (!splits_) return column_bytes();
  return column_bytes() + static_cast<size_t>(std::min(rows_, kColumnBlockRows) * state_bytes_);
}

// In place: the lines of the output have just been read into the cache, and streaming would evict them first.
bool KernelRunner::shares_an_input(size_t output, std::span<void* const> pointers) const {
  for (size_t a = 0; a < pointers.size(); ++a) {
    if (!kernel_.args[a].output && pointers[a] == pointers[output]) return true;
  }
  return false;
}

// Whether streamed outputs start at a line of 64 bytes or, if the kernel aligns its walk to the first of them, all start at
// the same element of a line.
bool KernelRunner::suits(std::span<void* const> pointers) const {
  constexpr auto kLine = static_cast<uintptr_t>(tuning::kLine);
  if (!code_.non_temporal) return true;
  uintptr_t first = 0;
  for (const int a : code_.schedule.streamed) {
    const auto bytes = static_cast<uintptr_t>(bytes_of(kernel_.args[static_cast<size_t>(a)].dtype, 1));
    const auto address = reinterpret_cast<uintptr_t>(pointers[static_cast<size_t>(a)]);
    if (a == code_.schedule.streamed.front() && (code_.schedule.follows_lines || code_.schedule.realigns))
      first = address / bytes;
    if (shares_an_input(static_cast<size_t>(a), pointers)) return false;
    if (address % bytes != 0 || (address / bytes - first) % (kLine / bytes) != 0) return false;
  }
  return true;
}

void KernelRunner::run(std::span<void* const> pointers, void* scratch, const Executor& executor) const {
  LAMINA_CHECK(pointers.size() == kernel_.args.size(), "one pointer per arg");
  if (!runs_here_)
    throw Error(Status::runtime_error,
                join("cpu backend: ", symbol(), " is compiled for ", machine_.cpu, ", whose instructions this machine lacks"));
  std::array<int64_t, kInlineWords> inline_words;
  int64_t* call = inline_words.data();
  if (call_.size() > kInlineWords) {
    std::vector<int64_t>& long_words = PerThread<KernelRunner, std::vector<int64_t>>::get();
    long_words.resize(call_.size());
    call = long_words.data();
  }
  std::copy(call_.begin(), call_.end(), call);
  for (size_t a = 0; a < pointers.size(); ++a) call[a] = static_cast<int64_t>(reinterpret_cast<intptr_t>(pointers[a]));
  const bool is_alone = !is_worth_threads_ || one_thread_;
  run(suits(pointers) ? code_ : plain_code(), call, scratch, is_alone ? executor.at_most(1) : executor);
}

bool KernelRunner::has_parts() const {
  return runs_here_ && !one_thread_ && columns_.empty() && kernel_.phase_count() == 1 && !code_.schedule.transposed &&
         static_cast<size_t>(kernel_.outer_rank) + 1 == kernel_.extents.size() && call_.size() <= kInlineWords;
}

KernelRunner::Parts::Parts(const KernelRunner& runner, std::span<void* const> pointers)
    : function_((runner.code_.non_temporal ? runner.plain_code() : runner.code_).cached.function), row_size_(runner.row_size_) {
  std::copy(runner.call_.begin(), runner.call_.end(), call_.begin());
  for (size_t a = 0; a < pointers.size(); ++a) call_[a] = static_cast<int64_t>(reinterpret_cast<intptr_t>(pointers[a]));
}

void KernelRunner::Parts::run(int64_t columns, int64_t first_row, int64_t rows, int64_t first_column,
                              int64_t columns_of_part) const {
  if (columns_of_part == columns) return run_elements(first_row * columns, (first_row + rows) * columns);
  if (row_size_ == columns)
    return function_(call_.data(), first_row, first_row + rows, first_column, first_column + columns_of_part, nullptr);
  for (int64_t row = first_row; row < first_row + rows; ++row) {
    const int64_t begin = row * columns + first_column;
    run_elements(begin, begin + columns_of_part);
  }
}

void KernelRunner::Parts::run_elements(int64_t begin, int64_t end) const {
  if (begin % row_size_ == 0 && end % row_size_ == 0)
    return function_(call_.data(), begin / row_size_, end / row_size_, 0, row_size_, nullptr);
  for (int64_t row = begin / row_size_; row * row_size_ < end; ++row) {
    const int64_t at = row * row_size_;
    function_(call_.data(), row, row + 1, std::max<int64_t>(begin - at, 0), std::min(end - at, row_size_), nullptr);
  }
}

void KernelRunner::run(const Code& code, const int64_t* call, void* scratch, const Executor& executor) const {
  if (wants_split(executor.threads()))
    run_split(code, call, scratch, executor);
  else if (columns_.empty())
    run_rows(code, call, scratch, executor);
  else
    run_column_blocks(code, call, scratch, executor);
}

// Rows that run the phases together, in one block of column sums.
struct KernelRunner::Group {
  int64_t block, first, rows;
};

// Portion `index` of `count` equal portions of the work.
struct KernelRunner::Portion {
  int64_t index, count;
  // Its range of `units` units: begin to end - 1.
  int64_t begin(int64_t units) const { return units * index / count; }
  int64_t end(int64_t units) const { return units * (index + 1) / count; }
};

struct KernelRunner::SplitWork {
  KernelFunction function;
  const int64_t* call;
  char *sums, *states;  // of the columns' blocks; of a group's rows
  bool non_temporal;
};

KernelRunner::Group KernelRunner::group_of(int64_t index, int64_t rows_at_a_time) const {
  const int64_t of_a_block = (kColumnBlockRows + rows_at_a_time - 1) / rows_at_a_time;
  const int64_t block = index / of_a_block, begin = index % of_a_block * rows_at_a_time;
  const int64_t first = block * kColumnBlockRows + begin;
  return {block, first, std::min({rows_at_a_time, rows_ - first, kColumnBlockRows - begin})};
}

// Runs groups of rows one after the other, phase after phase: every portion walks its part of each row, then each row is
// combined. If whole rows are reduced, a portion walks separate rows up to the last phase.
void KernelRunner::run_split(const Code& code, const int64_t* call, void* scratch, const Executor& executor) const {
  char* const sums = static_cast<char*>(scratch);
  const SplitWork work{split_function(code), call, sums, sums + column_bytes(), code.non_temporal};
  const int64_t rows_at_a_time = sharing_.rows_between_barriers(executor.threads());
  const int64_t last_block = (rows_ - 1) / kColumnBlockRows, rest = rows_ - last_block * kColumnBlockRows;
  const int64_t groups =
      last_block * ((kColumnBlockRows + rows_at_a_time - 1) / rows_at_a_time) + (rest + rows_at_a_time - 1) / rows_at_a_time;
  const int64_t of_a_group = split_steps_ - paired_stages_, walking = groups * of_a_group;
  const int64_t parts = executor.threads(), chunk = columns_of_chunk(executor.threads());
  executor.run(
      walking + (columns_.empty() ? 0 : 1), Scheduling::static_ranges,
      [&](int64_t stage) { return stage < walking ? parts : (row_size_ + chunk - 1) / chunk; },
      [&](const Piece& piece) {
        if (piece.stage == walking)
          return combine_partials(sums, call, piece.begin * chunk, std::min(piece.end * chunk, row_size_));
        const Group group = group_of(piece.stage / of_a_group, rows_at_a_time);
        for (int64_t part = piece.begin; part < piece.end; ++part)
          run_split_stage(work, {part, parts}, group, piece.stage % of_a_group);
      });
}

void KernelRunner::run_split_stage(const SplitWork& work, Portion portion, const Group& group, int64_t stage) const {
  const int64_t unit = sharing_.unit_of_split_row(), units = (row_size_ + unit - 1) / unit;
  const int64_t begin = portion.begin(units) * unit, end = std::min(portion.end(units) * unit, row_size_);
  const int64_t my_begin = portion.begin(group.rows), my_end = portion.end(group.rows);
  char* const block_sums = work.sums + static_cast<size_t>(group.block) * partial_bytes();
  char* const my_states = work.states + my_begin * state_bytes_;
  const bool is_pair = stage < paired_stages_;
  const int64_t first_step = is_pair ? 2 * stage : stage + paired_stages_, steps = is_pair ? 2 : 1;
  for (int64_t step = first_step; step < first_step + steps; ++step) {
    const bool walks = step % 2 == 0, of_my_rows = !walks || is_pair;
    SplitCall split{step, group.block * kColumnBlockRows, group.rows, block_sums, of_my_rows ? my_states : work.states};
    if (!of_my_rows && begin < end)
      work.function(work.call, group.first, group.first + group.rows, begin, end, &split);
    else if (of_my_rows && walks)
      work.function(work.call, group.first + my_begin, group.first + my_end, 0, row_size_, &split);
    else if (of_my_rows)
      work.function(work.call, group.first + my_begin, group.first + my_end, begin, end, &split);
    if (work.non_temporal && walks) host::drain_stores();
  }
}

// Threads take chunks of rows. Few long rows without reductions are divided along the row instead.
void KernelRunner::run_rows(const Code& code, const int64_t* call, void* scratch, const Executor& executor) const {
  if (rows_ == 0) return;
  const KernelFunction function = code.cached.function;
  const bool along_rows = sharing_.divides_along_rows(executor.threads());
  const int64_t unit = along_rows ? kInnerUnit : code.schedule.rows_per_group, extent = along_rows ? row_size_ : rows_;
  const int64_t chunk = unit * chunk_of((extent + unit - 1) / unit, moved_bytes_, executor.threads());
  const int64_t chunks = (extent + chunk - 1) / chunk;
  executor.at_most(chunks).run(
      1, Scheduling::static_ranges, [&](int64_t) { return chunks; },
      [&](const Piece& piece) {
        const int64_t begin = piece.begin * chunk, end = std::min(piece.end * chunk, extent);
        if (along_rows)
          function(call, 0, rows_, begin, end, scratch);
        else
          function(call, begin, end, 0, row_size_, scratch);
        if (code.non_temporal) host::drain_stores();
      });
}

// Each block of a fixed number of rows fills separate partial sums. Then runs of columns are combined over the blocks.
void KernelRunner::run_column_blocks(const Code& code, const int64_t* call, void* scratch, const Executor& executor) const {
  const auto fill = [&](int64_t b) {
    char* const partials = static_cast<char*>(scratch) + static_cast<size_t>(b) * partial_bytes();
    code.cached.function(call, b * kColumnBlockRows, std::min((b + 1) * kColumnBlockRows, rows_), 0, row_size_, partials);
  };
  const int64_t blocks = column_blocks(), blocks_of_chunk = chunk_of(blocks, moved_bytes_, executor.threads());
  const int64_t columns = columns_of_chunk(executor.threads());
  const int64_t chunks[] = {(blocks + blocks_of_chunk - 1) / blocks_of_chunk, (row_size_ + columns - 1) / columns};
  executor.at_most(std::max(chunks[0], chunks[1]))
      .run(
          2, Scheduling::static_ranges, [&](int64_t stage) { return chunks[stage]; },
          [&](const Piece& piece) {
            if (piece.stage == 1)
              return combine_partials(scratch, call, piece.begin * columns, std::min(piece.end * columns, row_size_));
            const int64_t end = std::min(piece.end * blocks_of_chunk, blocks);
            for (int64_t b = piece.begin * blocks_of_chunk; b < end; ++b) fill(b);
            if (code.non_temporal) host::drain_stores();
          });
}

// The number of columns, in whole units, whose partial sums a thread combines at a time.
int64_t KernelRunner::columns_of_chunk(int threads) const {
  const int64_t units = (row_size_ + kColumnUnit - 1) / kColumnUnit;
  return kColumnUnit * chunk_of(units, static_cast<int64_t>(column_bytes()), threads);
}

void KernelRunner::combine_partials(const void* partials, const int64_t* call, int64_t begin, int64_t end) const {
  if (wide_)
    combine_columns(static_cast<const double*>(partials), call, begin, end);
  else
    combine_columns(static_cast<const float*>(partials), call, begin, end);
}

template <typename T>
void KernelRunner::combine_columns(const T* partials, const int64_t* call, int64_t begin, int64_t end) const {
  constexpr int64_t kRun = 64;
  std::array<double, kRun * 40> tree;  // a tree over at most 2^40 blocks, which exceeds any memory
  const int64_t pitch = column_pitch(row_size_), block_stride = pitch * static_cast<int64_t>(columns_.size());
  const auto outer = static_cast<size_t>(kernel_.outer_rank);
  for (size_t slot = 0; slot < columns_.size(); ++slot) {
    const kernel::Arg& arg = kernel_.args[static_cast<size_t>(columns_[slot].arg)];
    void* const out = reinterpret_cast<void*>(call[columns_[slot].arg]);
    const bool is_plain = arg.dtype == DataType::f32 && kernel_.extents.size() == outer + 1 && arg.strides.back() == 1;
    const auto position_of = [&](int64_t column) {
      int64_t position = 0;
      for (size_t d = kernel_.extents.size(); d-- > outer;) {
        position += column % kernel_.extents[d] * arg.strides[d];
        column /= kernel_.extents[d];
      }
      return position;
    };
    for (int64_t start = begin; start < end; start += kRun) {
      const int64_t count = std::min(kRun, end - start);
      if (rows_ == 0)
        tree.fill(0);  // there are no partial sums
      else
        sum_blocks(partials + static_cast<int64_t>(slot) * pitch + start, block_stride, column_blocks(), count, tree.data(),
                   kRun);
      if (is_plain) {
        for (int64_t c = 0; c < count; ++c)
          static_cast<float*>(out)[start + c] = static_cast<float>(tree[static_cast<size_t>(c)]);
        continue;
      }
      for (int64_t c = 0; c < count; ++c) {
        const double value =
            wide_ ? tree[static_cast<size_t>(c)] : static_cast<double>(static_cast<float>(tree[static_cast<size_t>(c)]));
        store_from_double(arg.dtype, out, position_of(start + c), value);
      }
    }
  }
}

}  // namespace lamina::cpu
