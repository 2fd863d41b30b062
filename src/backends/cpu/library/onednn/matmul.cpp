// MatMul in tiles of dst. Each tile is one matrix product by oneDNN, on one thread. Weights that several tiles read are first
// packed into the layout that the product requires.
#include <algorithm>
#include <array>

#include "backends/cpu/library/onednn/families.h"
#include "backends/cpu/library/onednn/matmul_problem.h"
#include "backends/cpu/library/onednn/post_op_attributes.h"
#include "backends/cpu/library/onednn/primitive_call.h"
#include "backends/cpu/library/onednn/tile_copy.h"
#include "interface/status.h"

namespace lamina::cpu::onednn {

namespace {

using Description = dnnl::matmul::primitive_desc;

int64_t tiles_of(int64_t extent, int64_t tile) { return (extent + tile - 1) / tile; }

Matrix dense(const Matrix& matrix, int64_t width) { return {matrix.rows, matrix.columns, width, 1, matrix.dtype}; }

// The part of dst that one thread computes at a time, only from shapes and types. A row's bits must not depend on the number
// of rows: oneDNN's blocked kernels sum in the order of k for any number of rows; its older ones may not, and always get the
// same number of rows (`fixed_rows`).
struct TileShape {
  int64_t rows, columns;
};

constexpr int64_t kMaxRows = 128, kGoodRows = 64, kMinRows = 32, kFixedRows = 32;
constexpr int64_t kMinColumns = 64;
constexpr int64_t kLargeWeights = 1 << 20;  // elements
constexpr int64_t kTilesWanted = 16;        // so that there are enough tiles to balance threads
// multiplications and additions that justify a separate tile
constexpr double kMinTileWork = 4.0e6;

// Prefers few rows to few columns: oneDNN writes whole rows of dst, and parts of rows need a copy. But each tile of rows
// reads weights again that exceed a second-level cache. Then a tile has few columns, whose weights fit, and many rows.
TileShape tile_shape(const MatmulProblem& problem, bool fixed_rows, bool one_thread) {
  const auto products = static_cast<int64_t>(problem.products.size());
  TileShape tile{fixed_rows ? kFixedRows : std::min(problem.m, kMaxRows), problem.n};
  if (fixed_rows || one_thread) return tile;
  const double least_work =
      bytes_of(problem.weights.dtype, 1) == 1 ? 4 * kMinTileWork : kMinTileWork;  // products of bytes are four times as fast
  const auto is_split_further = [&] {
    const double work =
        2.0 * static_cast<double>(tile.rows) * static_cast<double>(tile.columns) * static_cast<double>(problem.k);
    return products * tiles_of(problem.m, tile.rows) * tiles_of(problem.n, tile.columns) < kTilesWanted &&
           work > 2 * least_work;
  };
  const auto split_columns = [&] {
    while (is_split_further() && tile.columns >= 2 * kMinColumns) tile.columns = (tile.columns / 2 + 63) / 64 * 64;
  };
  const auto split_rows = [&](int64_t least) {
    while (is_split_further() && tile.rows >= 2 * least) tile.rows = (tile.rows / 2 + 7) / 8 * 8;
  };
  if (problem.k * problem.n > kLargeWeights) split_columns();
  split_rows(kGoodRows);
  split_columns();
  split_rows(kMinRows);
  return tile;
}

class Matmul final : public Primitive {
 public:
  Matmul(const kernel::LibraryStep& step, const PrimitiveUse& use)
      : problem_(matmul_problem(step)),
        like_(dynamic_cast<const Matmul*>(use.like)),
        packs_weights_(use.packs_weights),
        is_in_a_tile_(use.in_a_tile),
        adds_(step.adds),
        slots_(use.threads),
        ports_(step.inputs.size()) {
    if (step.quantized) take_scales(*step.quantized);
    post_ops_ = PostOpAttributes(step);
    LAMINA_CHECK(!adds_ || (problem_.dst.dtype == DataType::f32 && !problem_.has_bias && scales_.empty() && !step.post_ops),
                 join(lamina::describe(step.op), " adds to a value that is not a plain sum in f32"));
    made_for(step.op, [&] { choose(); });
    like_ = nullptr;
    place_scratch();
  }

  const std::string& name() const override { return name_; }
  size_t scratch_bytes() const override { return scratch_bytes_; }

  void run(std::span<void* const> args, void* scratch, const Executor& executor) const override {
    auto* const own = static_cast<char*>(scratch);
    const Memory memory{args[0],
                        args[1],
                        problem_.has_bias ? args[2] : nullptr,
                        args[ports_],
                        args.subspan(ports_ + 1),
                        packs_ahead_ ? static_cast<char*>(args[1]) : own,
                        packs_ahead_ ? own : own + packed_bytes_in_all()};
    const Executor team = executor.at_most(slots_);
    if (packs_ && !packs_ahead_) pack_weights(memory, team);
    const int64_t row_tiles = tiles_of(problem_.m, tile_.rows), column_tiles = tiles_of(problem_.n, tile_.columns);
    const int64_t tiles = row_tiles * column_tiles;
    for_each_tile(static_cast<int64_t>(problem_.products.size()) * tiles, team, [&](int64_t i, int thread) {
      run_tile(memory, static_cast<size_t>(i / tiles), i % tiles % row_tiles, i % tiles / row_tiles, thread);
    });
  }

  size_t packed_bytes() const override { return packs_ahead_ ? packed_bytes_in_all() : 0; }
  void pack(std::span<void* const> args, void* packed, void* scratch, const Executor& executor) const override {
    pack_weights({nullptr, args[1], nullptr, nullptr, {}, static_cast<char*>(packed), static_cast<char*>(scratch)},
                 executor.at_most(slots_));
  }

 private:
  struct Memory {
    const void *src, *weights, *bias;
    void* dst;
    std::span<void* const> operands;  // of the following ops
    char *packed, *threads;           // in scratch: packed weights, the memory of each thread
  };

  // A product with `rows` rows and `columns` columns, and its weights if they are packed for it.
  struct Product {
    PrimitiveCall call;
    dnnl::memory::desc weights;
  };

  // The scales of both factors are moved out of the sum as one factor.
  void take_scales(const QuantizedProduct& quantized) {
    for (const float scale : quantized.weights.scales) scales_.push_back(scale * quantized.src.scales.front());
    zero_point_ = static_cast<int32_t>(quantized.src.zero_point);
    weights_zero_point_ = static_cast<int32_t>(quantized.weights.zero_point - (shifts_weights() ? kShift : 0));
  }

  // oneDNN multiplies only by s8: weights of u8 and their zero point are shifted to s8.
  bool shifts_weights() const { return problem_.weights.dtype == DataType::u8; }
  DataType weights_type() const { return shifts_weights() ? DataType::s8 : problem_.weights.dtype; }

  // oneDNN's blocked kernels require matrices without gaps between rows, depending on the machine. Matrices that they do not
  // accept are copied tile by tile.
  bool takes_blocked_product() {
    const bool src_as_it_is = problem_.src.is_plain(), dst_as_it_is = problem_.dst.is_row_major();
    for (const auto& [copies_src, copies_dst] : {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
      if ((!copies_src && !src_as_it_is) || (!copies_dst && (!dst_as_it_is || !lie_as_dst()))) continue;
      tile_ = shape_of_tiles(false);
      see(copies_src, copies_dst);
      if (is_blocked_product(describe(tile_.rows, tile_.columns, true).impl_info_str())) return true;
    }
    return false;
  }

  // Whether operands with rows have the row stride of dst, which oneDNN requires. If dst is copied, they are copied too.
  bool lie_as_dst() const {
    return std::all_of(problem_.operands.begin(), problem_.operands.end(), [this](const Matrix& operand) {
      return operand.row_stride == 0 || (operand.column_stride == 1 && operand.row_stride == problem_.dst.row_stride);
    });
  }

  TileShape shape_of_tiles(bool fixed_rows) const {
    TileShape tile = tile_shape(problem_, fixed_rows, is_in_a_tile_);
    if (like_ != nullptr) tile.columns = like_->tile_.columns;
    return tile;
  }

  // The layouts of src and dst for the product.
  void see(bool copies_src, bool copies_dst) {
    copies_src_ = copies_src, copies_dst_ = copies_dst;
    src_ = copies_src ? dense(problem_.src, problem_.k) : problem_.src;
  }

  Matrix dst_of(int64_t columns) const { return copies_dst_ ? dense(problem_.dst, columns) : problem_.dst; }

  void choose() {
    // A bias with one value per row has none for additional rows.
    const bool may_add_rows = problem_.bias.row_stride == 0;
    is_blocked_ = takes_blocked_product();
    if (!is_blocked_) {
      fixed_rows_ = may_add_rows;
      tile_ = shape_of_tiles(fixed_rows_);
      see(true, true);
    }
    packs_ahead_ = like_ != nullptr ? like_->packs_ahead_ : packs_weights_;
    const bool is_shared = tiles_of(problem_.m, tile_.rows) > 1 || problem_.distinct_weights.size() < problem_.products.size();
    packs_ = packs_ahead_ || shifts_weights() || !problem_.weights.is_plain() || is_shared ||
             (!fixed_rows_ && !is_blocked_product(describe(tile_.rows, tile_.columns, false).impl_info_str()));
    for (size_t c = 0; c < 2; ++c) {
      const int64_t columns = c == 0 ? tile_.columns : problem_.n % tile_.columns;
      if (columns > 0) make_products(c, columns);
    }
    name_ = join("matmul ", products_[0][0].call.implementation(), ", tiles of ", tile_.rows, "x", tile_.columns,
                 packs_ ? ", weights packed" : "", post_ops_.text());
  }

  void make_products(size_t c, int64_t columns) {
    for (size_t r = 0; r < 2; ++r) {
      const int64_t rows = r == 0 ? tile_.rows : problem_.m % tile_.rows;
      if (rows == 0) continue;
      const bool has_such_tiles = rows <= problem_.m;  // fixed rows may exceed the existing ones
      copies_in_[r] = copies_src_ && has_such_tiles ? TileCopy(problem_.src, src_, rows, problem_.k) : TileCopy{};
      copies_out_[c][r] = copies_dst_ && has_such_tiles ? TileCopy(dst_of(columns), problem_.dst, rows, columns) : TileCopy{};
      copies_operands_[c][r].clear();
      for (const Matrix& operand : problem_.operands) {
        const bool is_copied = copies_dst_ && operand.row_stride != 0 && has_such_tiles;
        copies_operands_[c][r].push_back(is_copied ? TileCopy(operand, dense(operand, columns), rows, columns) : TileCopy{});
      }
      if (r > 0 && fixed_rows_) continue;
      const Product* const model = r > 0 ? &products_[c][0] : like_ != nullptr ? &like_->products_[c][0] : nullptr;
      products_[c][r] = product(rows, columns, model == nullptr ? dnnl::memory::desc() : model->weights);
    }
    if (!packs_) return;
    // oneDNN packs integers, whose sums it corrects, only from matrices without gaps.
    Matrix weights = problem_.weights;
    const bool by_rows = weights.column_stride == 1 && weights.row_stride == columns;
    const bool by_columns = weights.row_stride == 1 && weights.column_stride == problem_.k;
    if (!scales_.empty() && (shifts_weights() || (!by_rows && !by_columns))) {
      weights = dense(problem_.weights, columns);
      gathers_[c] = onednn::copy(tile_desc(problem_.weights, problem_.k, columns), tile_desc(weights, problem_.k, columns));
      weights.dtype = weights_type();
    }
    packings_[c] = copy(tile_desc(weights, problem_.k, columns), products_[c][0].weights);
  }

  // `any`: weights in the layout that the product requires.
  Description describe(int64_t rows, int64_t columns, bool any, const dnnl::memory::desc& packed = {}) const {
    using tag = dnnl::memory::format_tag;
    const dnnl::memory::desc src = tile_desc(src_, rows, problem_.k), dst = tile_desc(dst_of(columns), rows, columns);
    dnnl::memory::desc weights = packed;
    if (weights.is_zero() && any) weights = {{problem_.k, columns}, type_of(weights_type()), tag::any};
    if (weights.is_zero()) {
      Matrix plain = problem_.weights;
      plain.dtype = weights_type();
      weights = tile_desc(plain, problem_.k, columns);
    }
    dnnl::primitive_attr attr = attributes();
    if (!scales_.empty()) attr.set_scales_mask(DNNL_ARG_WEIGHTS, scales_.size() > 1 ? kByColumn : 0);
    if (zero_point_ != 0) attr.set_zero_points_mask(DNNL_ARG_SRC, 0);
    if (weights_zero_point_ != 0) attr.set_zero_points_mask(DNNL_ARG_WEIGHTS, 0);
    dnnl::post_ops after;
    if (problem_.has_bias && adds_bias_last()) after.append_binary(dnnl::algorithm::binary_add, bias_desc(rows, columns));
    if (adds_ && !copies_dst_) after.append_sum();
    if (after.len() > 0) attr.set_post_ops(after);
    post_ops_.add_to(attr, operand_descs(rows, columns));
    if (problem_.has_bias && !adds_bias_last()) return {engine(), src, weights, bias_desc(rows, columns), dst, attr};
    return {engine(), src, weights, dst, attr};
  }

  // oneDNN's bias is a row. Others are added by an operation after the product.
  bool adds_bias_last() const { return problem_.bias.row_stride != 0 || problem_.bias.column_stride != 1; }
  dnnl::memory::desc bias_desc(int64_t rows, int64_t columns) const {
    const Matrix& bias = problem_.bias;
    const bool by_row = bias.row_stride != 0, by_column = bias.column_stride != 0;
    const int64_t width = by_column ? columns : 1;
    return {{by_row ? rows : 1, width},
            type_of(bias.dtype),
            {by_row ? bias.row_stride : width * (by_column ? bias.column_stride : 1), by_column ? bias.column_stride : 1}};
  }

  std::vector<dnnl::memory::desc> operand_descs(int64_t rows, int64_t columns) const {
    std::vector<dnnl::memory::desc> descs;
    for (const Matrix& operand : problem_.operands) {
      const int64_t width = operand.column_stride == 0 ? 1 : columns;
      const bool has_rows = operand.row_stride != 0;
      descs.push_back(
          {{has_rows ? rows : 1, width}, type_of(operand.dtype), {has_rows && !copies_dst_ ? operand.row_stride : width, 1}});
    }
    return descs;
  }

  Product product(int64_t rows, int64_t columns, const dnnl::memory::desc& packed) const {
    const Description made = describe(rows, columns, packs_, packed);
    // Not only for speed: sums in another order would depend on the number of rows.
    LAMINA_CHECK(fixed_rows_ || !is_blocked_ || is_blocked_product(made.impl_info_str()),
                 join("a tile of ", rows, "x", columns, "x", problem_.k, " is multiplied by ", made.impl_info_str()));
    PrimitiveCall::Arguments arguments = {
        {DNNL_ARG_SRC, made.src_desc()}, {DNNL_ARG_WEIGHTS, made.weights_desc()}, {DNNL_ARG_DST, made.dst_desc()}};
    if (problem_.has_bias)
      arguments.emplace_back(adds_bias_last() ? DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1 : DNNL_ARG_BIAS,
                             bias_desc(rows, columns));
    const auto list = [](int64_t count, dnnl::memory::data_type type) {
      return dnnl::memory::desc({count}, type, dnnl::memory::format_tag::a);
    };
    if (!scales_.empty())
      arguments.emplace_back(DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS,
                             list(scales_.size() > 1 ? columns : 1, dnnl::memory::data_type::f32));
    if (zero_point_ != 0)
      arguments.emplace_back(DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, list(1, dnnl::memory::data_type::s32));
    if (weights_zero_point_ != 0)
      arguments.emplace_back(DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_WEIGHTS, list(1, dnnl::memory::data_type::s32));
    post_ops_.add_to(arguments, operand_descs(rows, columns), problem_.has_bias && adds_bias_last() ? 1 : 0);
    return {{made, dnnl::matmul(made), std::move(arguments)}, made.weights_desc()};
  }

  // Packed weights, one block per matrix and tile of columns; then the memory of each thread: a tile of src, a tile of dst,
  // and the scratch of its calls.
  void place_scratch() {
    if (packs_) packed_bytes_ = aligned(products_[0][0].weights.get_size());
    src_bytes_ = copies_src_ ? aligned(static_cast<size_t>(bytes_of(src_.dtype, tile_.rows * problem_.k))) : 0;
    dst_bytes_ = copies_dst_ ? aligned(static_cast<size_t>(bytes_of(problem_.dst.dtype, tile_.rows * tile_.columns))) : 0;
    if (gathers_[0] || gathers_[1]) src_bytes_ = std::max(src_bytes_, aligned(static_cast<size_t>(problem_.k * tile_.columns)));
    operand_bytes_ = 0;
    for (const Matrix& operand : problem_.operands) {
      if (copies_dst_ && operand.row_stride != 0)
        operand_bytes_ += aligned(static_cast<size_t>(bytes_of(operand.dtype, tile_.rows * tile_.columns)));
    }
    for (const PrimitiveCall* call : calls()) call_bytes_ = std::max(call_bytes_, call->scratch_bytes());
    for (const TileCopy* copy : tile_copies()) call_bytes_ = std::max(call_bytes_, copy->scratch_bytes());
    thread_bytes_ = src_bytes_ + dst_bytes_ + operand_bytes_ + call_bytes_;
    scratch_bytes_ = (packs_ahead_ ? 0 : packed_bytes_in_all()) + static_cast<size_t>(slots_) * thread_bytes_;
  }

  std::vector<const PrimitiveCall*> calls() const {
    std::vector<const PrimitiveCall*> all;
    for (size_t c = 0; c < 2; ++c) {
      all.insert(all.end(), {&packings_[c], &gathers_[c], &products_[c][0].call, &products_[c][1].call});
    }
    return all;
  }

  std::vector<const TileCopy*> tile_copies() const {
    std::vector<const TileCopy*> all = {&copies_in_[0], &copies_in_[1]};
    for (size_t c = 0; c < 2; ++c) {
      for (size_t r = 0; r < 2; ++r) {
        all.push_back(&copies_out_[c][r]);
        for (const TileCopy& copy : copies_operands_[c][r]) all.push_back(&copy);
      }
    }
    return all;
  }

  size_t packed_bytes_in_all() const {
    return static_cast<size_t>(tiles_of(problem_.n, tile_.columns)) * problem_.distinct_weights.size() * packed_bytes_;
  }
  char* packed(const Memory& memory, int64_t matrix, int64_t column_tile) const {
    return memory.packed + static_cast<size_t>(matrix * tiles_of(problem_.n, tile_.columns) + column_tile) * packed_bytes_;
  }
  char* own_scratch(const Memory& memory, int thread) const {
    return memory.threads + static_cast<size_t>(thread) * thread_bytes_;
  }
  size_t tail(int64_t extent, int64_t tile, int64_t index) const { return (index + 1) * tile > extent ? 1 : 0; }

  void pack_weights(const Memory& memory, const Executor& team) const {
    const int64_t column_tiles = tiles_of(problem_.n, tile_.columns);
    for_each_tile(static_cast<int64_t>(problem_.distinct_weights.size()) * column_tiles, team, [&](int64_t i, int thread) {
      const int64_t matrix = i / column_tiles, column = i % column_tiles;
      const int64_t at =
          problem_.distinct_weights[static_cast<size_t>(matrix)] + column * tile_.columns * problem_.weights.column_stride;
      const size_t c = tail(problem_.n, tile_.columns, column);
      char* const own = own_scratch(memory, thread);
      void* const scratch = own + src_bytes_ + dst_bytes_ + operand_bytes_;
      void* weights = element(memory.weights, problem_.weights.dtype, at);
      if (gathers_[c]) {
        gathers_[c].run({weights, own}, scratch);
        if (shifts_weights()) shift(own, problem_.k * std::min(tile_.columns, problem_.n - column * tile_.columns));
        weights = own;
      }
      packings_[c].run({weights, packed(memory, matrix, column)}, scratch);
    });
  }

  // Subtracts 128: u8 becomes s8. The reorder of oneDNN 3.2 can do that while it copies, but gives wrong results if it
  // transposes a matrix of 64, 128 or 256 rows whose number of columns is not a multiple of 4.
  static void shift(char* numbers, int64_t count) {
    for (int64_t i = 0; i < count; ++i) numbers[i] = static_cast<char>(numbers[i] ^ kShift);
  }

  // The start of a tile, and which of the four kinds of tiles it is.
  struct Place {
    int64_t row, column;
    size_t c, r;
  };
  void add_operands(const Memory& memory, const MatmulProblem::Offsets& at, const Place& place, char* own, void** pointers,
                    size_t& count) const {
    char* copied = own + src_bytes_ + dst_bytes_;
    void* const scratch = copied + operand_bytes_;
    for (size_t i = 0; i < problem_.operands.size(); ++i) {
      const Matrix& operand = problem_.operands[i];
      const int64_t first = at.operands[i] + place.row * operand.row_stride + place.column * operand.column_stride;
      void* pointer = element(memory.operands[i], operand.dtype, first);
      if (const TileCopy& copy = copies_operands_[place.c][place.r][i]; copy) {
        copy.run(pointer, copied, scratch);
        pointer = copied;
        copied += aligned(static_cast<size_t>(bytes_of(operand.dtype, tile_.rows * tile_.columns)));
      }
      pointers[count++] = pointer;
    }
  }

  static void* element(const void* base, DataType dtype, int64_t index) { return offset(base, bytes_of(dtype, index)); }

  void run_tile(const Memory& memory, size_t product, int64_t row_tile, int64_t column_tile, int thread) const {
    const MatmulProblem::Offsets& at = problem_.products[product];
    const int64_t row = row_tile * tile_.rows, column = column_tile * tile_.columns;
    const size_t r = tail(problem_.m, tile_.rows, row_tile), c = tail(problem_.n, tile_.columns, column_tile);
    char* const own = own_scratch(memory, thread);
    void* const scratch = own + src_bytes_ + dst_bytes_ + operand_bytes_;
    void* src = element(memory.src, problem_.src.dtype, at.src + row * problem_.src.row_stride);
    void* const result =
        element(memory.dst, problem_.dst.dtype, at.dst + row * problem_.dst.row_stride + column * problem_.dst.column_stride);
    void* const dst = copies_dst_ ? own + src_bytes_ : result;
    if (copies_src_) {
      copies_in_[r].run(src, own, scratch);
      src = own;
    }
    void* const weights =
        packs_ ? packed(memory, problem_.weights_of_product[product], column_tile)
               : element(memory.weights, problem_.weights.dtype, at.weights + column * problem_.weights.column_stride);
    std::array<void*, 7 + PostOpAttributes::kMaxPointers> pointers = {src, weights, dst};
    size_t count = 3;
    if (problem_.has_bias) {
      const int64_t shift = at.bias + row * problem_.bias.row_stride + column * problem_.bias.column_stride;
      pointers[count++] = element(memory.bias, problem_.bias.dtype, shift);
    }
    if (!scales_.empty())
      pointers[count++] = const_cast<float*>(&scales_[scales_.size() > 1 ? static_cast<size_t>(column) : 0]);
    if (zero_point_ != 0) pointers[count++] = const_cast<int32_t*>(&zero_point_);
    if (weights_zero_point_ != 0) pointers[count++] = const_cast<int32_t*>(&weights_zero_point_);
    add_operands(memory, at, {row, column, c, r}, own, pointers.data(), count);
    post_ops_.add_to(pointers.data(), count);
    products_[c][fixed_rows_ ? 0 : r].call.run(std::span<void* const>(pointers.data(), count), scratch);
    if (!copies_dst_) return;
    if (adds_)
      add(static_cast<const float*>(dst), static_cast<float*>(result), std::min(tile_.rows, problem_.m - row),
          std::min(tile_.columns, problem_.n - column));
    else
      copies_out_[c][r].run(dst, result, scratch);
  }

  void add(const float* tile, float* sum, int64_t rows, int64_t columns) const {
    for (int64_t i = 0; i < rows; ++i) {
      const float* const from = tile + i * columns;
      float* const to = sum + i * problem_.dst.row_stride;
      for (int64_t j = 0; j < columns; ++j) to[j * problem_.dst.column_stride] += from[j];
    }
  }

  static constexpr int32_t kShift = 128;    // from u8 to s8
  static constexpr int kByColumn = 1 << 1;  // mask of the axes along which scales differ
  MatmulProblem problem_;
  std::vector<float> scales_;  // for a product of integers: one, or one per column
  int32_t zero_point_ = 0, weights_zero_point_ = 0;
  PostOpAttributes post_ops_;
  const Matmul* like_;  // only during construction
  bool packs_weights_, packs_ahead_ = false;
  bool is_in_a_tile_;  // of a tiled step, which runs on a single thread
  bool adds_;          // to the content of dst, which is then f32
  int slots_;          // the largest number of threads
  size_t ports_;       // number of inputs
  std::string name_;
  TileShape tile_{};
  Matrix src_;  // in the layout for the product
  bool is_blocked_ = false, fixed_rows_ = false, packs_ = false, copies_src_ = false, copies_dst_ = false;
  // First index: full tiles of columns, or the last one; second index: the same for rows.
  std::array<std::array<Product, 2>, 2> products_;
  std::array<std::array<TileCopy, 2>, 2> copies_out_;
  std::array<std::array<std::vector<TileCopy>, 2>, 2> copies_operands_;  // if dst is copied
  std::array<TileCopy, 2> copies_in_;
  std::array<PrimitiveCall, 2> gathers_, packings_;
  size_t packed_bytes_ = 0, src_bytes_ = 0, dst_bytes_ = 0, operand_bytes_ = 0, call_bytes_ = 0, thread_bytes_ = 0;
  size_t scratch_bytes_ = 0;
};

}  // namespace

std::vector<LibraryOp> matmul_ops() {
  const auto tiled = [](const kernel::LibraryStep& step, const PrimitiveUse& use) -> std::unique_ptr<const Primitive> {
    const bool is_fast = step.quantized ? multiplies_integers() : computes_fast_in(step.inputs[0].dtype);
    if (step.inputs[0].dtype == DataType::f64 || step.dequantized || !is_fast) return nullptr;
    if (!step.post_ops && !has_factors_apart(step)) return nullptr;  // a generated product takes them
    return std::make_unique<Matmul>(step, use);
  };
  return {{.kind = OpKind::MatMul, .compile = tiled, .takes_integers = multiplies_integers}};
}

}  // namespace lamina::cpu::onednn
