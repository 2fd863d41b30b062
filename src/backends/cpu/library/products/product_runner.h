// Compiles a matrix product under a schedule for its execution (dispatch/product_dispatch.h), with the functions of
// product/emit_product.h.
#pragma once

#include <cstdint>
#include <functional>

#include "backends/cpu/code/code_source.h"
#include "backends/cpu/code/jit.h"
#include "backends/cpu/dispatch/product_dispatch.h"
#include "backends/cpu/product/product_code.h"
#include "backends/cpu/product/product_schedule.h"
#include "kernels/contraction.h"

namespace lamina::cpu {

// Where the weights of a product come from. By default, they are a matrix in memory.
struct ProductWeights {
  bool are_packed_ahead = false;       // `run` gets those that `pack` wrote
  const PanelMaker* source = nullptr;  // must outlive the runner; the schedule copies panels
  // The register tile that reads its panels, in place of one that reads panels of floats; null: it makes such.
  std::function<CodeSource(const ProductTile& of_floats)> tile = nullptr;
  // Extents of the matrix that `pack` wrote, whose first entries the product reads; 0: those of the product. The schedule has
  // the vectors of the one that packed it.
  int64_t packed_k = 0, packed_n = 0;
};

// Whether register tiles may map results: they write dst.
bool may_map_results(const kernel::Contraction& contraction, const ProductWeights& weights);

class ProductRunner : public ProductDispatch {
 public:
  // Compiles for `machine`, or gets the code from the cache. Factors, bias and dst have the type of the sums or, if that is not
  // f64, f32 or 16 bits; or the factors are of integers. The schedule is legal. `threads`: at most.
  // `rows`: in place of a matrix src, whose batch strides are then 0; it must outlive the runner. The schedule copies rows, or
  // its k_block consists of whole parts. `map`: only if may_map_results.
  ProductRunner(const kernel::Contraction& contraction, const Machine& machine, const ProductSchedule& schedule, int threads,
                const ProductWeights& weights = {}, const RowSource* rows = nullptr, const ResultMap& map = {});

  const ProductSchedule& schedule() const { return schedule_; }

 private:
  class Compiler;
  ProductRunner(const Compiler& compiler, const ProductSchedule& schedule, const ProductWeights& weights,
                const RowSource* rows);

  const ProductSchedule schedule_;
};

// From and to: the types are equal, or one of them is f32 and the other one has 16 bits.
MatrixCopy matrix_copy(DataType from, DataType to, const Machine& machine, int vector_bits);
// From u8 or s8 to integers of 16 bits, without the zero point.
MatrixCopy copy_of_integers(DataType from, int32_t zero_point, const Machine& machine, int vector_bits);

}  // namespace lamina::cpu
