// The working state of kernel emission, shared by rows (and phases), walks (over elements), values (one per node), realigned
// and byte_stores (what leaves as lines), reductions (accumulators) and the others beside it. Not part of the room's interface.
#pragma once

#include <functional>
#include <vector>

#include "backends/cpu/emit/emit_kernel.h"
#include "backends/cpu/schedule/footprint.h"
#include "backends/cpu/schedule/tiles.h"
#include "kernels/builder.h"
#include "kernels/numerics.h"

namespace lamina::cpu {

// One vector's worth of elements of the innermost dim.
struct Lanes {
  int width = 1;                  // 1: scalar types
  llvm::Value* offset = nullptr;  // i64, position of lane 0 along the innermost dim
  llvm::Value* mask = nullptr;    // <width x i1>; null: every lane is live
};

// A row in flight: where its tensors are, and the values known once per row.
struct Row {
  llvm::Value *number = nullptr, *place = nullptr;  // of all rows; among those of its tile
  std::vector<llvm::Value*> pointers;               // per arg, at the row's first element
  std::vector<llvm::Value*> segment;                // per arg, at the current run of the innermost dim
  std::vector<llvm::Value*> index_base;           // per node of kind index: the part of outer dims (and of the current segment)
  std::vector<llvm::Value*> kept;                 // per node: its values along the row, where they are kept between phases
  std::vector<llvm::Value*> values;               // per node; null where not per row or not known yet
  std::vector<llvm::Value*> mean_high, mean_low;  // per moments node: the mean as a sum of two floats (low null in f64)
  std::vector<llvm::Value*> shifts;  // per moments node: what its differences are taken from, if known before the walk
};

using numerics::kBlock, numerics::kShiftElements, numerics::kVirtualLanes;

inline constexpr uint64_t kKeptAlignment = 64;  // a chunk's vectors lie at multiples of their own size, at most this

class KernelEmitter {
 public:
  KernelEmitter(llvm::Module& module, const std::string& symbol, const kernel::Kernel& kernel, const Schedule& schedule,
                const TargetFeatures& target);
  void emit();
  void emit_split();
  void emit_transposed();

 private:
  using NodeList = std::vector<kernel::NodeIndex>;
  using ElementValues = std::vector<llvm::Value*>;  // per node
  using Values = std::vector<llvm::Value*>;

  struct RootState;

  // rows.cpp: the function, rows and phases.
  void emit_tile(llvm::Value* first, llvm::Value* count, llvm::Value* begin);
  void emit_last_phase(llvm::Value* first, llvm::Value* count, llvm::Value* begin);
  void emit_strips(llvm::Value* first, llvm::Value* count, const std::function<void()>& all_rows);
  void emit_rows(llvm::Value* from, llvm::Value* to, int step, const std::function<void(llvm::Value*)>& body);
  Values row_position(llvm::Value* row);
  llvm::Value* row_pointer(int arg, const Values& position);
  llvm::Value* row_index(const kernel::Node& node, const Values& position);
  Row begin_row(llvm::Value* row, llvm::Value* place);
  llvm::Value* row_slot(size_t slot, llvm::Type* type, llvm::Value* place);
  void save(const Row& row, llvm::Value* place);
  void restore(Row& row, llvm::Value* place);
  template <typename AnyRow, typename Visit>
  static void for_each_row_value(AnyRow& row, const Visit& visit) {
    size_t slot = 0;
    for (auto* values : {&row.values, &row.mean_high, &row.mean_low}) {
      for (auto& value : *values) visit(slot++, value);
    }
  }
  void make_kept_buffers(int rows);
  int64_t kept_row_size() const;
  void emit_phase(std::vector<Row*> rows, int phase);
  void emit_walk(const std::vector<Row*>& rows, const NodeList& roots, int phase);
  bool may_be_skipped(int phase) const;
  void emit_second_walk(Row& row, int phase);
  void emit_second_walk(Row& row, int phase, const std::function<void(Row&)>& walk);
  // Element nodes that a phase's loop computes for `roots` or takes from the row buffer, in order.
  NodeList nodes_for(const NodeList& roots, int phase) const;
  void choose_kept_nodes();
  bool is_dear(const kernel::Node& n) const;
  kernel::NodeIndex kept_operand_of_alone(kernel::NodeIndex index) const;
  void choose_stores();
  NodeList roots_of_phase(int phase) const;   // what the loop is run for: reductions, stores, column sums
  int loop_of(kernel::NodeIndex root) const;  // the phase in whose loop a root runs
  void emit_loop(llvm::Value* begin, llvm::Value* end, llvm::Value* step, const std::function<void(llvm::Value*)>& body);
  void emit_if(llvm::Value* condition, const std::function<void()>& body);
  bool is_heavy(const NodeList& nodes) const;
  bool has_function(const NodeList& nodes) const;
  void choose_step(const NodeList& nodes, size_t rows);

  // body.cpp: what a walk does at some vectors.
  void emit_body(const std::vector<Row*>& rows, const NodeList& nodes, int phase, const std::vector<Lanes>& lanes);
  void emit_lane_group(const std::vector<Row*>& rows, const NodeList& nodes, int phase, const std::vector<Lanes>& lanes,
                       const std::vector<ElementValues>& loaded, size_t first, size_t count);
  void emit_root(const std::vector<Row*>& rows, RootState& root, int phase, const std::vector<Lanes>& lanes, size_t first,
                 const std::vector<Values>& operands);
  llvm::Value* kept_address(const Row& row, kernel::NodeIndex node, const Lanes& lanes);
  llvm::Value* kept_or_computed(Row& row, kernel::NodeIndex node, int phase, const Lanes& lanes, const ElementValues& known);

  // walks.cpp: over a row's elements.
  using Body = std::function<void(const std::vector<Lanes>&)>;
  void walk_inner(const std::vector<Row*>& rows, const Body& body, const std::function<void()>& flush);
  void walk_segments(const std::vector<Row*>& rows, size_t dim, const Body& body, const std::function<void()>& after_segment);
  void walk_run(const Row& row, llvm::Value* begin, int64_t count, const Body& body);
  llvm::Value* walk_begin() { return schedule_.split ? inner_begin_ : i64(0); }
  llvm::Value* walk_end() { return schedule_.split ? inner_end_ : i64(kernel_.row_size()); }
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
  kernel::Type lane_type() const { return wide_ ? kernel::Type::f64 : kernel::Type::f32; }
  void append_to_stream(const Row& row, int arg, llvm::Value* value, const Lanes& at, bool begins_row);
  void end_streams();
  void walk_realigned(const Body& body);

  // prefetch.cpp: what is asked for early.
  void hint(llvm::Value* address, int level, bool writes = false);
  std::vector<int> usual_walks() const;
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
  llvm::Value* bytes_to_next_row(int arg);
  std::vector<Lanes> positions_from(llvm::Value* offset, int count);
  void walk_positions(llvm::Value* begin, int64_t count, const Body& body);
  void walk_in_order(llvm::Value* begin, int64_t count, const Body& body);
  void walk_lanes(llvm::Value* begin, int64_t count, const Body& body);
  void walk_chunks(llvm::Value* at, int64_t chunks, const Body& body);
  void walk_tail_chunk(llvm::Value* begin, llvm::Value* lane, int64_t live, const Body& body);
  void walk_position_range(llvm::Value* begin, llvm::Value* end, const Body& body);
  void transpose(Values& square);
  llvm::Value* positions_mask(size_t count);
  llvm::Value* has_row(int r);
  llvm::Value* row_address(llvm::Value* first_row, int arg, int r);
  std::vector<ElementValues> transposed_loads(const Row& row, const NodeList& nodes, int phase,
                                              const std::vector<Lanes>& positions);

  // values.cpp: a value per node.
  llvm::Value* element_value(Row& row, kernel::NodeIndex node, const Lanes& lanes, const ElementValues& known);
  void emit_row_values(Row& row, int phase);
  llvm::Value* map_value(const kernel::Node& node, std::vector<llvm::Value*> operands);
  // At lanes.offset steps of `stride` from `pointer`; lanes follow each other at that stride too or, across rows, at the row's.
  llvm::Value* load_arg(llvm::Value* pointer, int arg, const Lanes& lanes, int64_t stride);
  void store_arg(llvm::Value* pointer, int arg, llvm::Value* value, kernel::Type type, const Lanes& lanes, int64_t stride);
  llvm::Value* load_vector(llvm::Value* pointer, int arg, const Lanes& lanes);  // neighbouring elements
  void store_vector(llvm::Value* pointer, int arg, llvm::Value* value, kernel::Type type, const Lanes& lanes);
  LaneStep lane_step(int arg, int64_t stride) const;
  llvm::Value* lane_addresses(llvm::Value* first, int arg, const Lanes& lanes, int64_t stride);
  Lanes row_lanes() const { return {row_lanes_, nullptr, row_mask_}; }  // for a value per row
  bool stores_in_twos(int arg) const;
  llvm::Value* side_by_side(llvm::Value* a, llvm::Value* b);
  void mark_non_temporal(llvm::StoreInst* store);
  llvm::Value* to_compute(DataType dtype, llvm::Value* raw);
  llvm::Value* to_storage(DataType dtype, kernel::Type type, llvm::Value* value);
  llvm::Value* round_trip(DataType dtype, kernel::Type type, llvm::Value* value);
  llvm::Value* cast_value(llvm::Value* value, kernel::Type from, kernel::Type to);
  llvm::Value* widen(llvm::Value* scalar, int width);
  llvm::Type* llvm_type(kernel::Type type, int width) const;
  llvm::Value* maximum(llvm::Value* a, llvm::Value* b);
  llvm::Value* minimum(llvm::Value* a, llvm::Value* b);
  llvm::Value* fma(llvm::Value* a, llvm::Value* b, llvm::Value* c);

  // byte_stores.cpp
  bool stores_whole_chunks(const kernel::Node& store, const std::vector<Lanes>& chunk) const;
  void store_chunk(llvm::Value* pointer, int arg, const std::vector<llvm::Value*>& vectors, const Lanes& first);

  // nibbles.cpp: elements of four bits.
  struct Nibble {
    llvm::Value* byte;
    llvm::Value* shift;  // i8: 0 or 4
  };
  llvm::Value* nibble_address(llvm::Value* byte_pointer);
  Nibble nibble_at(llvm::Value* address, llvm::Value* element);
  llvm::Value* load_nibbles(llvm::Value* address, const kernel::Arg& arg, const Lanes& lanes, int64_t stride);
  void store_nibbles(llvm::Value* address, const kernel::Arg& arg, llvm::Value* raw, const Lanes& lanes, int64_t stride);
  void store_packed(llvm::Value* to, llvm::Value* raw, const Lanes& lanes);
  llvm::Value* load_byte(llvm::Value* at, llvm::Value* live);
  void store_byte(llvm::Value* value, llvm::Value* at, llvm::Value* live);
  llvm::Value* lane_of(llvm::Value* vector, int lane);

  // reductions.cpp: accumulators.
  enum class Combine { sum, product, maximum, minimum };
  static Combine combine_of(kernel::Reduction reduction);
  struct Accumulator {
    Combine combine;
    kernel::Type type;
    std::vector<llvm::AllocaInst*> lanes;  // one per vector of the 64 lanes; across rows one array of 64 vectors
    std::vector<llvm::AllocaInst*> held;   // across rows: the few lanes that are gone through now
    int in_memory = 0;                     // across rows: the first lanes of the array, to which all are joined
  };
  // A reduction in flight. Of moments a walk gives {sum, squares} of the differences from a shift, or from a mean; where the
  // row has several blocks, each block comes to {mean, deviations}, and so do the totals.
  struct RootState {
    kernel::NodeIndex node;
    std::vector<Accumulator> accumulators;  // none: a store or a column sum
    std::vector<llvm::AllocaInst*> totals;  // of the blocks so far; f64 for sums and products
    llvm::Value* shift = nullptr;
    bool by_block = false;
    std::vector<Values> chunk;  // a store of whole chunks, or transposed: per row, the vectors so far
  };
  struct BlockResult {
    RootState* root;
    Values values;
  };
  struct OneWalk {  // f64; is_far: i1
    llvm::Value *mean, *deviations, *is_far;
  };
  void finish_transpose(const Row& row, RootState& root, llvm::Value* first_position);
  void add_rows_to_columns(kernel::NodeIndex root, const Values& rows, const Lanes& along);
  struct ColumnSums {
    llvm::Value *address, *so_far;
  };
  ColumnSums column_sums(kernel::NodeIndex root, llvm::Type* type, const Lanes& lanes);
  void store_column_sums(const ColumnSums& sums, llvm::Value* sum, const Lanes& lanes);
  int lanes_in_use() const;
  llvm::Value* lane_slot(const Accumulator& accumulator, llvm::Value* lane);
  void reset_lane_array(Accumulator& accumulator);
  llvm::Value* fold_lane_array(Accumulator& accumulator);
  void for_each_lane(int count, const std::function<void(llvm::Value*)>& body);
  void hold_lanes(Accumulator& accumulator);
  void start_held(const Accumulator& accumulator);
  void join_held(Accumulator& accumulator, llvm::Value* first);
  // Replaces the lanes at `vector` (of the chunk) by `next` of them.
  void update(Accumulator& accumulator, size_t vector, llvm::Type* type, const Lanes& lanes,
              const std::function<llvm::Value*(llvm::Value*)>& next);
  Accumulator make_accumulator(Combine combine, kernel::Type type);
  void add_totals(RootState& root);
  void reset_lanes(Accumulator& accumulator);
  bool has_dead_elements(const Lanes& lanes) const { return lanes.mask != nullptr && !rows_in_lanes(); }
  void accumulate(Accumulator& accumulator, size_t vector, llvm::Value* value, const Lanes& lanes);
  void accumulate_product(Accumulator& accumulator, size_t vector, llvm::Value* a, const Lanes& lanes);  // += a * a
  llvm::Value* fold(Accumulator& accumulator);          // the lanes' result; starts them anew
  llvm::Value* fold_vectors(Accumulator& accumulator);  // as far as one vector
  llvm::Value* fold_lanes(Combine how, llvm::Value* vector, int count);
  Values fold_all(RootState& root);
  void begin_roots(Row& row, const NodeList& roots, int phase);
  RootState begin_root(Row& row, kernel::NodeIndex node, int phase);
  void begin_moments(Row& row, RootState& root);
  int shift_elements() const;
  llvm::Value* add_shift_elements(Row& row, kernel::NodeIndex moments);
  llvm::Value* shift_from(kernel::NodeIndex moments, llvm::Value* average);
  void accumulate_root(Row& row, RootState& root, int phase, size_t vector, llvm::Value* operand, const Lanes& lanes);
  bool roots_reduce() const;
  bool has_reductions(const NodeList& roots) const;
  // Whether this phase's stores go past the caches, and its walk therefore begins its chunks where the output's lines do.
  bool streams() const { return !schedule_.streamed.empty() && !roots_reduce(); }
  bool streams(int arg) const;
  bool follows_lines() const { return streams() && schedule_.follows_lines; }
  void flush_roots();
  std::vector<BlockResult> emit_block(Row& row, int phase, const Body& body, llvm::Value* start, int64_t count);
  Values block_moments(Row& row, RootState& root, int phase, llvm::Value* start, int64_t count);
  OneWalk one_walk(const RootState& root, const Values& sums, llvm::Value* count);
  Values second_walk(Row& row, const RootState& root, const Values& sums, llvm::Value* count);
  void combine_block(const RootState& root, const Values& values, llvm::Value* before, llvm::Value* count);
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
  llvm::Value* combine(Combine how, llvm::Value* a, llvm::Value* b);
  llvm::Value* identity(Combine how, llvm::Type* type);
  llvm::Value* centered(Row& row, kernel::NodeIndex moments, llvm::Value* value, llvm::Value* scale = nullptr);
  Values elements(Row& row, kernel::NodeIndex node, const std::vector<Lanes>& positions);

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
  llvm::Value* join(Values parts);
  bool is_computed_here(kernel::NodeIndex node) const;
  void in_batch(const std::function<void()>& emission);

  size_t inner_rank() const { return kernel_.extents.size() - static_cast<size_t>(kernel_.outer_rank); }
  // Rows of several blocks: a second walk over the whole row would come from beyond the first-level cache.
  bool moments_by_block() const { return inner_rank() == 1 && kernel_.row_size() > kBlock; }
  const kernel::Node& node(kernel::NodeIndex i) const { return kernel_.nodes[static_cast<size_t>(i)]; }
  llvm::Value* call_word(size_t i) { return b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstGEP1_64(b_.getInt64Ty(), call_, i)); }
  llvm::Value* i64(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }
  llvm::AllocaInst* alloca_at_entry(llvm::Type* type);
  llvm::Type* row_type(kernel::Type type) const { return llvm_type(type, row_lanes_); }
  llvm::Value* any_row(llvm::Value* flag) { return row_lanes_ == 1 ? flag : b_.CreateOrReduce(flag); }
  bool rows_in_lanes() const { return schedule_.transposed; }

  const kernel::Kernel& kernel_;
  const Schedule& schedule_;
  TargetFeatures target_;
  llvm::LLVMContext& context_;
  llvm::Module& module_;
  llvm::Function* function_ = nullptr;
  llvm::IRBuilder<> b_;
  llvm::Value* call_ = nullptr;
  llvm::Value* inner_begin_ = nullptr;
  llvm::Value* inner_end_ = nullptr;
  llvm::Value* partials_ = nullptr;
  llvm::Value* split_states_ = nullptr;  // under the split schedule, the rows' own memory
  llvm::Value* rows_ahead_ = nullptr;    // and how far away the rows are that come next
  bool stores_row_values_ = true;
  llvm::Value* strip_ = nullptr;              // where the strip of columns at hand begins; null: whole rows
  llvm::Value* segment_index_ = nullptr;      // position of the current segment among the row's, null: 0
  llvm::Value* first_of_partials_ = nullptr;  // i1: the tile that starts a column block overwrites its partial sums
  std::vector<int> store_loop_;               // per store of elements: the phase in whose loop it runs
  std::vector<int> kept_since_;  // per node: the phase whose loop puts it into the row buffer, -1: computed anew each time
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
  Values saved_;                                // in the order of for_each_row_value: what its slot holds of the batch
  std::vector<int> column_slot_;                // per node: position among the column sums
  std::vector<RootState> roots_;                // of the phase being emitted
  int step_ = kVirtualLanes;                    // elements of one iteration of the loop being emitted
  int width_ = 16;                              // lanes of a vector of the kernel's widest float type
  int row_lanes_ = 1;                           // of a value per row: rows of a group or, just then, rows of a batch
  llvm::Value* rows_in_group_ = nullptr;        // i64, how many of them there are, and
  llvm::Value* row_mask_ = nullptr;             // <i1>; both null: all
  std::vector<llvm::AllocaInst*> stream_ends_;  // per arg that is realigned: its last vector so far
  bool begins_row_ = false;                     // of the chunk being emitted
  size_t first_held_ = 0;                       // of the held lanes, that of the first position at hand
  std::vector<llvm::Value*> next_group_;        // where it begins in each arg; empty: not known
  bool wide_ = false;                           // f64 kernel
};

}  // namespace lamina::cpu
