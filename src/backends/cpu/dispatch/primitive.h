// Steps over whole tensors that are no kernels.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "backends/cpu/program/tuning.h"
#include "kernels/parts.h"

namespace lamina::cpu {

class Executor;
class ProgramWriter;

// `bytes` rounded up, so that the next block in scratch or packed memory starts at a cache line.
template <std::integral Bytes>
constexpr Bytes aligned(Bytes bytes) {
  constexpr auto line = static_cast<Bytes>(tuning::kLine);
  return (bytes + line - 1) / line * line;
}

using kernel::parts;

// Rows and columns of a result that is one dense matrix in memory.
struct ResultPart {
  int64_t first_row, rows, first_column, columns;
};

// Immutable. Many threads may call run at the same time.
class Primitive {
 public:
  virtual ~Primitive() = default;
  virtual const std::string& name() const = 0;        // for reports
  virtual size_t scratch_bytes() const { return 0; }  // in addition to its args, 64-byte aligned
  // `args`: the step's, null for absent ports. Runs on threads of `executor`, at most as many as it was compiled for.
  virtual void run(std::span<void* const> args, void* scratch, const Executor& executor) const = 0;

  // If the result is written in parts, of which there are enough for all threads: its columns; else 0. Then run_in_parts calls
  // `ended` after each part, on the thread that wrote it.
  virtual int64_t columns_of_parts() const { return 0; }
  virtual void run_in_parts(std::span<void* const> args, void* scratch, const Executor& executor,
                            const std::function<void(const ResultPart&)>& /*ended*/) const {
    run(args, scratch, executor);
  }

  // Whether it computes PrimitiveUse::following.
  virtual bool has_following() const { return false; }

  // The size of weights (input 1) after `pack`. It is greater than 0 if the primitive was compiled for packed weights, which
  // run then gets instead. `args`: the step's, of which only the weights and the operands that dequantise them are read.
  virtual size_t packed_bytes() const { return 0; }
  virtual void pack(std::span<void* const> /*args*/, void* /*packed*/, void* /*scratch*/, const Executor& /*executor*/) const {}

  // What packed weights depend on besides the weights: primitives with the same text pack the same. "": unknown.
  virtual std::string packing() const { return ""; }

  // Writes what a runtime needs to run it (program/program_writer.h). Throws Error(unimplemented) if it has no such form.
  virtual void write(ProgramWriter& to) const;

  // For a product: whether each element is a chain in the order of k (kernels/contraction.h), and one that was compiled like it
  // (Use::like) with fewer columns or entries of k reads the first ones of its packed weights.
  virtual bool sums_in_order() const { return false; }
};

}  // namespace lamina::cpu
