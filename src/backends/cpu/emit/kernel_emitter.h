// The working state of kernel emission, shared by rows (and phases), walks (over elements), values (one per node), realigned
// and byte_stores (what leaves as lines), reductions (accumulators) and the others beside it. Not part of the room's interface.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backends/cpu/emit/accumulators.h"
#include "backends/cpu/emit/emit_kernel.h"
#include "backends/cpu/emit/memory.h"
#include "backends/cpu/emit/phases.h"
#include "backends/cpu/schedule/footprint.h"
#include "backends/cpu/schedule/tiles.h"
#include "kernels/builder.h"
#include "kernels/numerics.h"

namespace lamina::cpu {

inline constexpr uint64_t kKeptAlignment = 64;  // a chunk's vectors lie at multiples of their own size, at most this

class KernelEmitter : private Part {
 public:
  explicit KernelEmitter(Emission& emission);
  void emit();
  void emit_split();
  void emit_transposed();

 private:
  struct RootState;

  // rows.cpp: the function, rows and phases.
  void emit_tile(llvm::Value* first, llvm::Value* count, llvm::Value* begin);
  void emit_last_phase(llvm::Value* first, llvm::Value* count, llvm::Value* begin);
  void emit_strips(llvm::Value* first, llvm::Value* count, const std::function<void()>& all_rows);
  void emit_rows(llvm::Value* from, llvm::Value* to, int step, const std::function<void(llvm::Value*)>& body);
  Row begin_row(llvm::Value* row, llvm::Value* place);
  llvm::Value* row_slot(size_t slot, llvm::Type* type, llvm::Value* place);
  void save(const Row& row, llvm::Value* place);
  void restore(Row& row, llvm::Value* place);
  void make_kept_buffers(int rows);
  void emit_phase(std::vector<Row*> rows, int phase);
  void emit_walk(const std::vector<Row*>& rows, const NodeList& roots, int phase);
  void emit_second_walk(Row& row, int phase);
  void emit_second_walk(Row& row, int phase, const std::function<void(Row&)>& walk);
  void choose_step(const NodeList& nodes, size_t rows);

  // body.cpp: what a walk does at some vectors.
  void emit_body(const std::vector<Row*>& rows, const NodeList& nodes, int phase, const std::vector<Lanes>& lanes);
  void emit_lane_group(const std::vector<Row*>& rows, const NodeList& nodes, int phase, const std::vector<Lanes>& lanes,
                       const std::vector<ElementValues>& loaded, size_t first, size_t count);
  void emit_root(const std::vector<Row*>& rows, RootState& root, int phase, const std::vector<Lanes>& lanes, size_t first,
                 const std::vector<ValueList>& operands);
  llvm::Value* kept_address(const Row& row, kernel::NodeIndex node, const Lanes& lanes);
  llvm::Value* kept_or_computed(Row& row, kernel::NodeIndex node, int phase, const Lanes& lanes, const ElementValues& known);

  // walks.cpp: over a row's elements.
  using Body = std::function<void(const std::vector<Lanes>&)>;
  void walk_inner(const std::vector<Row*>& rows, const Body& body, const std::function<void()>& flush);
  void walk_segments(const std::vector<Row*>& rows, size_t dim, const Body& body, const std::function<void()>& after_segment);
  void walk_run(const Row& row, llvm::Value* begin, int64_t count, const Body& body);
  llvm::Value* walk_begin() { return schedule_.split ? e_.inner_begin : i64(0); }
  llvm::Value* walk_end() { return schedule_.split ? e_.inner_end : i64(kernel_.row_size()); }
  void walk_strip(const Row& row, const Body& body);
  llvm::Value* to_line(const Row& row, llvm::Value* begin);
  void walk_range(llvm::Value* begin, llvm::Value* end, const Body& body);
  void walk_lines(const Row& row, llvm::Value* begin, llvm::Value* end, const Body& body);
  void walk_vectors(llvm::Value* begin, llvm::Value* end, const Body& body);
  std::vector<Lanes> chunk_at(llvm::Value* offset, int live);

  // realigned.cpp: rows that leave as one stream of whole lines.
  bool is_realigned(const kernel::Node& node) const;
  llvm::AllocaInst* stream_end(int arg);
  llvm::Value* fill_at(int arg, llvm::Value* pointer);
  llvm::Value* lanes_below(llvm::Value* count);
  llvm::Value* join_at(llvm::Value* fill, llvm::Value* before, llvm::Value* next);
  void store_line(llvm::Value* address, int arg, llvm::Value* line, llvm::Value* mask);
  llvm::Value* lane_numbers(llvm::Value* first, int64_t step = 1);
  kernel::Type lane_type() const { return e_.wide ? kernel::Type::f64 : kernel::Type::f32; }
  void append_to_stream(const Row& row, int arg, llvm::Value* value, const Lanes& at, bool begins_row);
  void end_streams();
  void walk_realigned(const Body& body);

  // prefetch.cpp: what is asked for early.
  void hint(llvm::Value* address, int level, bool writes = false);
  void prefetch_ends(const Row& row);
  struct Ahead {              // what a walk asks for, in bytes of each element
    int64_t pace = 0;         // so many of them,
    int64_t before = 0;       // after those that other walks ask for,
    bool of_own_row = false;  // of the row itself or of the one that comes next
  };
  Ahead ahead_of(int64_t element_bytes, int phase) const;
  void prefetch(const std::vector<Row*>& rows, const NodeList& nodes, const std::vector<Lanes>& chunk, size_t first,
                size_t count, int phase);
  llvm::Value* bytes_ahead(int64_t row_bytes, int64_t element_bytes, const Ahead& asked);
  void prefetch_group(const std::vector<Lanes>& positions, int phase);
  struct Range {
    int64_t begin, end;
  };
  struct Share {  // from begin / whole to end / whole of something
    int64_t begin, end, whole;
    Range of(int64_t size) const { return {size * begin / whole, size * end / whole}; }
  };
  static Share share_of(int64_t walk, int64_t walks);
  void prefetch_rows(int arg, const std::vector<Lanes>& positions, const Range& rows);
  void prefetch_positions(int arg, const std::vector<Lanes>& positions, const Share& share);

  // split.cpp: one step of rows that several threads share.
  void for_each_split_row(const std::function<void(Row&)>& body);
  void emit_split_walk(Row& row, int phase);
  void emit_split_last_walk(llvm::Value* block_begin);
  void emit_split_finish(Row& row, int phase);
  llvm::Value* split_slot(llvm::Value* place, llvm::Value* word);
  llvm::Value* block_slot(const Row& row, size_t result, llvm::Value* block);

  // transposed.cpp: a row per lane.
  bool is_transposed_in_registers(int arg) const;  // elements of a row side by side, not those of neighbouring rows
  bool is_transposed_in_registers(const kernel::Node& node) const;
  std::vector<Lanes> positions_from(llvm::Value* offset, int count);
  void walk_positions(llvm::Value* begin, int64_t count, const Body& body);
  void walk_in_order(llvm::Value* begin, int64_t count, const Body& body);
  void walk_lanes(llvm::Value* begin, int64_t count, const Body& body);
  void walk_chunks(llvm::Value* at, int64_t chunks, const Body& body);
  void walk_tail_chunk(llvm::Value* begin, llvm::Value* lane, int64_t live, const Body& body);
  void walk_position_range(llvm::Value* begin, llvm::Value* end, const Body& body);
  void transpose(ValueList& square);
  llvm::Value* positions_mask(size_t count);
  llvm::Value* has_row(int r);
  llvm::Value* row_address(llvm::Value* first_row, int arg, int r);
  std::vector<ElementValues> transposed_loads(const Row& row, const NodeList& nodes, int phase,
                                              const std::vector<Lanes>& positions);

  // values.cpp: a value per node.
  llvm::Value* element_value(Row& row, kernel::NodeIndex node, const Lanes& lanes, const ElementValues& known);
  void emit_row_values(Row& row, int phase);
  llvm::Value* map_value(const kernel::Node& node, std::vector<llvm::Value*> operands);
  Lanes row_lanes() const { return {row_lanes_, nullptr, row_mask_}; }  // for a value per row
  llvm::Value* cast_value(llvm::Value* value, kernel::Type from, kernel::Type to);

  // reductions.cpp: accumulators.
  // A reduction in flight. Of moments a walk gives {sum, squares} of the differences from a shift, or from a mean; where the
  // row has several blocks, each block comes to {mean, deviations}, and so do the totals.
  struct RootState {
    kernel::NodeIndex node;
    std::vector<std::unique_ptr<Accumulator>> accumulators;  // none: a store or a column sum
    std::vector<llvm::AllocaInst*> totals;                   // of the blocks so far; f64 for sums and products
    llvm::Value* shift = nullptr;
    bool by_block = false;
    std::vector<ValueList> chunk;  // a store of whole chunks, or transposed: per row, the vectors so far
  };
  struct BlockResult {
    RootState* root;
    ValueList values;
  };
  struct OneWalk {  // f64; is_far: i1
    llvm::Value *mean, *deviations, *is_far;
  };
  void finish_transpose(const Row& row, RootState& root, llvm::Value* first_position);
  void add_rows_to_columns(kernel::NodeIndex root, const ValueList& rows, const Lanes& along);
  struct ColumnSums {
    llvm::Value *address, *so_far;
  };
  ColumnSums column_sums(kernel::NodeIndex root, llvm::Type* type, const Lanes& lanes);
  void store_column_sums(const ColumnSums& sums, llvm::Value* sum, const Lanes& lanes);
  void add_totals(RootState& root);
  ValueList fold_all(RootState& root);
  std::vector<LanesInMemory*> lanes_in_memory();
  void begin_roots(Row& row, const NodeList& roots, int phase);
  RootState begin_root(Row& row, kernel::NodeIndex node, int phase);
  void begin_moments(Row& row, RootState& root);
  int shift_elements() const;
  llvm::Value* add_shift_elements(Row& row, kernel::NodeIndex moments);
  llvm::Value* shift_from(kernel::NodeIndex moments, llvm::Value* average);
  void accumulate_root(Row& row, RootState& root, int phase, llvm::Value* operand, const Lanes& lanes);
  bool roots_reduce() const;
  // Whether this phase's stores go past the caches, and its walk therefore begins its chunks where the output's lines do.
  bool streams() const { return !schedule_.streamed.empty() && !roots_reduce(); }
  bool streams(int arg) const;
  bool follows_lines() const { return streams() && schedule_.follows_lines; }
  void flush_roots();
  std::vector<BlockResult> emit_block(Row& row, int phase, const Body& body, llvm::Value* start, int64_t count);
  ValueList block_moments(Row& row, RootState& root, int phase, llvm::Value* start, int64_t count);
  OneWalk one_walk(const RootState& root, const ValueList& sums, llvm::Value* count);
  ValueList second_walk(Row& row, const RootState& root, const ValueList& sums, llvm::Value* count);
  void combine_block(const RootState& root, const ValueList& values, llvm::Value* before, llvm::Value* count);
  void finish_roots(Row& row, int phase);
  void finish_reduction(Row& row, const RootState& root);
  void finish_blocks(Row& row, const RootState& root);
  void finish_first_walk(Row& row, const RootState& root);
  void finish_second_walk(Row& row, const RootState& root);
  void set_moments(Row& row, kernel::NodeIndex moments, llvm::Value* mean, llvm::Value* deviations);
  void split_mean(Row& row, kernel::NodeIndex moments, llvm::Value* mean);
  llvm::Value* mean_with_residual(Row& row, kernel::NodeIndex moments, llvm::Value* residual);
  llvm::Value* total(const RootState& root, size_t i);
  llvm::Value* to_double(llvm::Value* value);
  llvm::Value* row_size() { return f64(static_cast<double>(kernel_.row_size())); }
  llvm::Value* f64(double value) { return llvm::ConstantFP::get(row_type(kernel::Type::f64), value); }
  llvm::Value* centered(Row& row, kernel::NodeIndex moments, llvm::Value* value, llvm::Value* scale = nullptr);
  ValueList elements(Row& row, kernel::NodeIndex node, const std::vector<Lanes>& positions);

  // batch.cpp: what is known once per row, for all rows of a tile at once.
  struct Tile {
    llvm::Value *first, *count;  // rows
  };
  bool has_batches() const { return schedule_.rows_per_tile > 1 && batches_rows(kernel_); }
  void begin_batches();
  void emit_batched_tile(const Tile& tile, llvm::Value* begin);
  Row begin_batch(const Tile& tile);
  void emit_batch_values(Row& batch, int phase);
  void emit_batch_shifts(Row& batch, const Tile& tile, int phase);
  void emit_batch_walk(Row& batch, const Tile& tile, int phase);
  void emit_far_rows(Row& batch, const Tile& tile, int phase);
  Row row_of_batch(const Tile& tile, llvm::Value* place);
  void save_batch(size_t slot, llvm::Value* value);
  struct RowSums {
    Combine how;
    kernel::Type type;
    int64_t begin;  // bytes from row_sums_: a vector of each row
  };
  std::vector<RowSums> places_of(const NodeList& roots) const;
  int64_t end_of(const std::vector<RowSums>& places) const;
  llvm::Value* row_sum_slot(const RowSums& sums, llvm::Value* place);
  llvm::Value* fold_rows(const RowSums& sums, int lanes);
  void finish_batch(Row& batch, const std::vector<RowSums>& places, int phase);
  llvm::Value* join(ValueList parts);
  bool is_computed_here(kernel::NodeIndex node) const;
  void in_batch(const std::function<void()>& emission);

  llvm::Type* row_type(kernel::Type type) const { return e_.type(type, row_lanes_); }
  llvm::Value* any_row(llvm::Value* flag) { return row_lanes_ == 1 ? flag : b_.CreateOrReduce(flag); }

  Phases phases_;
  Memory memory_;
  llvm::Value* split_states_ = nullptr;  // under the split schedule, the rows' own memory
  llvm::Value* rows_ahead_ = nullptr;    // and how far away the rows are that come next
  bool stores_row_values_ = true;
  llvm::Value* strip_ = nullptr;                 // where the strip of columns at hand begins; null: whole rows
  llvm::Value* segment_index_ = nullptr;         // position of the current segment among the row's, null: 0
  llvm::Value* first_of_partials_ = nullptr;     // i1: the tile that starts a column block overwrites its partial sums
  std::vector<llvm::AllocaInst*> kept_buffers_;  // per node: the values along each row of the tile
  struct RowState {
    llvm::Type* type = nullptr;           // null: not known in any phase so far
    llvm::AllocaInst* of_rows = nullptr;  // a value for each row of the tile; not under the split schedule
    llvm::Value* restored = nullptr;      // as last read
  };
  std::vector<RowState> row_state_;  // in the order of for_each_row_value
  struct BatchNode {
    bool read_by_rows = false, read_by_batch = false;
    llvm::AllocaInst* shifts = nullptr;  // of moments: a value of each row
  };
  std::vector<BatchNode> batch_nodes_;          // per node; empty where each row has its values computed by itself
  llvm::AllocaInst* row_sums_ = nullptr;        // what the rows of a batch leave of a walk
  ValueList saved_;                             // in the order of for_each_row_value: what its slot holds of the batch
  std::vector<int> column_slot_;                // per node: position among the column sums
  std::vector<RootState> begun_roots_;          // of the phase being emitted, and
  std::span<RootState> roots_;                  // those that the loop being emitted is for
  int step_ = kVirtualLanes;                    // elements of one iteration of the loop being emitted
  int row_lanes_ = 1;                           // of a value per row: rows of a group or, just then, rows of a batch
  llvm::Value* rows_in_group_ = nullptr;        // i64, how many of them there are, and
  llvm::Value* row_mask_ = nullptr;             // <i1>; both null: all
  std::vector<llvm::AllocaInst*> stream_ends_;  // per arg that is realigned: its last vector so far
  bool begins_row_ = false;                     // of the chunk being emitted
  std::vector<llvm::Value*> next_group_;        // where it begins in each arg; empty: not known
};

}  // namespace lamina::cpu
