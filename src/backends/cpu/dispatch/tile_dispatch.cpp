#include "backends/cpu/dispatch/tile_dispatch.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace lamina::cpu {

namespace {

int64_t count_of(const Dims& loops) {
  int64_t count = 1;
  for (const int64_t extent : loops) count *= extent;
  return count;
}

}  // namespace

TileDispatch::TileDispatch(TileProgram program, TilePlans plans) : program_(std::move(program)), plans_(std::move(plans)) {
  if (program_.lengths) lengths_.emplace(*program_.lengths);
}

const Primitive& TileDispatch::primitive_of(const TileProgram::Packing& packing) const {
  return *plans_.tiles.front()->primitive(packing.step);
}

// Consecutive tiles are neighbouring blocks of rows, which share data in the caches.
TileDispatch::Entries TileDispatch::entries_of(int64_t tile) const {
  Entries entries;
  for (size_t loop = program_.loops.size(); loop-- > 0;) {
    const int64_t extent = program_.loops[loop];
    entries[loop] = extent == 1 ? 0 : tile % extent;
    if (extent != 1) tile /= extent;
  }
  return entries;
}

int64_t TileDispatch::at(const Entries& entries, const Dims& strides) const {
  int64_t place = 0;
  for (size_t loop = 0; loop < program_.loops.size(); ++loop) place += entries[loop] * strides[loop];
  return place;
}

// Packs the weights with numbers first to last; `packed` is the destination of the first.
void TileDispatch::pack(const Packing& packing, std::span<void* const> args, char* scratch, char* packed, int64_t first,
                        int64_t last, const Executor& team) const {
  for_each_tile(last - first + 1, team, [&](int64_t i, int thread) {
    int64_t bytes = 0;
    for (size_t loop = 0; loop < program_.loops.size(); ++loop) {
      if (packing.strides[loop] == 0) continue;
      bytes += (first + i) / packing.strides[loop] % program_.loops[loop] * program_.strides[packing.input][loop];
    }
    const std::array<void*, 2> weights{nullptr, static_cast<char*>(args[packing.input]) + bytes};
    primitive_of(packing).pack(weights, packed + static_cast<size_t>(i) * packing.bytes,
                               scratch + program_.threads_at + static_cast<size_t>(thread) * program_.thread_bytes,
                               Executor(1));
  });
}

// The address of packed weights number 0, or where it would be, for tiles of the outer entries first to last. Null if weights
// are not packed.
char* TileDispatch::packed(size_t index, std::span<void* const> args, char* scratch, int64_t first, int64_t last,
                           const Executor& team, PackedConstants* constants) const {
  const Packing& packing = program_.packings[index];
  if (packing.bytes == 0) return nullptr;
  if (packing.constant >= 0) {
    const auto fill = [&](void* memory) {
      pack_whole(index, args, scratch, static_cast<char*>(memory), team.while_others_wait());
    };
    return static_cast<char*>(
        constants->get(static_cast<size_t>(packing.constant), static_cast<size_t>(packing.count) * packing.bytes, fill));
  }
  const int64_t from = program_.wave == program_.outer ? 0 : program_.number_of(packing, first);
  const int64_t to = program_.wave == program_.outer ? packing.count - 1 : program_.number_of(packing, last);
  if (first == 0 || packing.count > 1) pack(packing, args, scratch, scratch + packing.at, from, to, team);
  return scratch + packing.at - static_cast<int64_t>(packing.bytes) * from;
}

void TileDispatch::run(std::span<void* const> args, char* scratch, const Executor& executor, PackedConstants* constants) const {
  const Executor team = executor.at_most(program_.slots);
  const int64_t blocks = count_of(program_.loops) / program_.outer;
  const TileLengths::Found lengths =
      lengths_ ? lengths_->look(args, scratch + program_.lengths_at, team) : TileLengths::Found{};
  for (int64_t first = 0; first < program_.outer; first += program_.wave) {
    const int64_t last = std::min(first + program_.wave, program_.outer) - 1;
    std::array<char*, kInlineArgs> weights;
    for (size_t p = 0; p < program_.packings.size(); ++p) weights[p] = packed(p, args, scratch, first, last, team, constants);
    const Run run{args, {weights.data(), program_.packings.size()}, scratch, lengths};
    if (!program_.sums.empty()) {
      run_entries(run, first, last, team);
      continue;
    }
    for_each_tile((last - first + 1) * blocks, team,
                  [&](int64_t tile, int thread) { run_tile(run, entries_of(first * blocks + tile), nullptr, thread); });
  }
}

void TileDispatch::run_entries(const Run& run, int64_t first, int64_t last, const Executor& team) const {
  const int64_t entries = last - first + 1;
  if (program_.finishes_alone) {
    for_each_tile(entries, team, [&](int64_t i, int thread) {
      char* const sums = scratch_of(run, thread) + program_.sums_at;
      for (int64_t segment = 0; segment < program_.segments; ++segment) run_segment(run, first + i, segment, sums, thread);
      finish(run, first + i, sums, thread);
    });
    return;
  }
  const auto sums_of = [&](int64_t entry) {
    return run.scratch + program_.sums_at + static_cast<size_t>(entry) * program_.sum_bytes;
  };
  for_each_tile(entries * program_.segments, team, [&](int64_t i, int thread) {
    const int64_t entry = first + i / program_.segments;
    run_segment(run, entry, i % program_.segments, sums_of(entry), thread);
  });
  for_each_tile(entries, team, [&](int64_t i, int thread) { finish(run, first + i, sums_of(first + i), thread); });
}

// Blocks of rows within blocks of columns, so that the sums over rows, and the keys and values, stay in the caches.
void TileDispatch::run_segment(const Run& run, int64_t outer, int64_t segment, char* sums, int thread) const {
  Entries entries = entries_of(outer * (count_of(program_.loops) / program_.outer));
  const int64_t first = segment * blocks_of_segment(),
                last = std::min(first + blocks_of_segment(), program_.loops[program_.row_loop]);
  entries[program_.row_loop] = first;
  for (const Sum& sum : program_.sums) clear(run, sum, entries, last - first, sums);
  const bool has_columns = program_.row_loop + 1 < program_.loops.size();
  for (int64_t column = 0; column < (has_columns ? program_.loops.back() : 1); ++column) {
    if (has_columns) entries[program_.row_loop + 1] = column;
    for (entries[program_.row_loop] = first; entries[program_.row_loop] < last; ++entries[program_.row_loop])
      run_tile(run, entries, sums, thread);
  }
}

// Clears the sums of the segment that starts at `entries`: its own copy, or its rows.
void TileDispatch::clear(const Run& run, const Sum& sum, const Entries& entries, int64_t blocks, char* sums) const {
  const auto of_block = static_cast<size_t>(sum.strides[program_.row_loop]);
  const size_t before = static_cast<size_t>(entries[program_.row_loop]) * of_block;
  const size_t bytes = of_block == 0 ? sum.bytes : std::min(static_cast<size_t>(blocks) * of_block, sum.bytes - before);
  std::memset(place_of(run, sum, entries, sums), 0, bytes);
}

// The address of a tile's sum.
char* TileDispatch::place_of(const Run& run, const Sum& sum, const Entries& entries, char* sums) const {
  const int64_t within = at(entries, sum.strides);
  if (sum.in_place) {
    Entries entry = entries;
    std::fill(entry.begin() + static_cast<std::ptrdiff_t>(program_.row_loop), entry.end(), 0);
    return static_cast<char*>(run.args[sum.arg]) + at(entry, program_.strides[sum.arg]) + within;
  }
  const int64_t segment = sum.by_segment ? entries[program_.row_loop] / blocks_of_segment() : 0;
  return sums + sum.at + static_cast<size_t>(segment) * sum.bytes + within;
}

void TileDispatch::finish(const Run& run, int64_t outer, char* sums, int thread) const {
  if (plans_.finish == nullptr) return;
  const Entries entries = entries_of(outer * (count_of(program_.loops) / program_.outer));
  std::array<const void*, kInlineArgs> inputs;
  std::array<void*, kInlineArgs> outputs;
  size_t count = 0;
  for (const Sum& sum : program_.sums) {
    if (sum.in_place) continue;
    inputs[count] = sums + sum.at;
    outputs[count++] = static_cast<char*>(run.args[sum.arg]) + at(entries, program_.strides[sum.arg]);
  }
  plans_.finish->run({inputs.data(), count}, {outputs.data(), count}, scratch_of(run, thread), Executor(1), nullptr);
}

void TileDispatch::run_tile(const Run& run, const Entries& entries, char* sums, int thread) const {
  std::array<void*, 2 * kInlineArgs> pointers;
  std::array<int64_t, kInlineArgs> origins;
  const auto& args = run.args;
  const auto& packed = run.packed;
  // Inputs, positions of first elements, packed weights, outputs.
  const size_t between = program_.tile_origins.size() + packed.size();
  for (size_t a = 0; a < args.size(); ++a)
    pointers[a < program_.inputs ? a : a + between] = static_cast<char*>(args[a]) + at(entries, program_.strides[a]);
  for (const Sum& sum : program_.sums) pointers[sum.arg + between] = place_of(run, sum, entries, sums);
  for (size_t f = 0; f < program_.tile_origins.size(); ++f) {
    origins[f] = at(entries, program_.tile_origins[f]);
    pointers[program_.inputs + f] = &origins[f];
  }
  for (size_t p = 0; p < packed.size(); ++p) {
    const Packing& packing = program_.packings[p];
    pointers[program_.inputs + program_.tile_origins.size() + p] =
        packed[p] == nullptr ? pointers[packing.input]
                             : packed[p] + at(entries, packing.strides) * static_cast<int64_t>(packing.bytes);
  }
  const std::span<const void* const> inputs(pointers.data(), program_.inputs + between);
  const std::span<void* const> outputs(pointers.data() + inputs.size(), args.size() - program_.inputs);
  plan_of(run, entries).run(inputs, outputs, scratch_of(run, thread), Executor(1), nullptr);
}

const ProgramRunner& TileDispatch::plan_of(const Run& run, const Entries& entries) const {
  if (lengths_) {
    if (const std::optional<size_t> length = lengths_->length_of(run.lengths, entries)) return *plans_.shorter[*length];
  }
  const bool has_less_rows = program_.has_less_rows && entries[program_.row_loop] + 1 == program_.loops[program_.row_loop];
  const bool has_less_columns = program_.has_less_columns && entries[program_.loops.size() - 1] + 1 == program_.loops.back();
  return *plans_.tiles[(has_less_columns ? (program_.has_less_rows ? 2U : 1U) : 0U) + (has_less_rows ? 1U : 0U)];
}

}  // namespace lamina::cpu
