// An emission: the program under construction, its kernel, order of summation, schedule and loop plan. Every part of the
// emitter derives from Part, which gives access to these.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "backends/gpu/emit/text.h"
#include "backends/gpu/schedule/schedule.h"

namespace lamina::gpu {

using kernel::NodeList;

struct Emission {
  Emission(const kernel::Kernel& of, const Schedule& under, std::string named);

  const kernel::Kernel& kernel;
  const Schedule& schedule;
  const SumOrder order;
  const std::string symbol;
  const kernel::LoopPlan plan;
  const size_t outer;
  const int64_t row_size;
  const bool wide;                   // some value of the program is a double
  const bool one_block;              // the row is one block; else walks run block by block
  std::vector<bool> known;           // per node: whether its row value is already in the text
  std::vector<int> copied_ahead;     // args whose next row is copied to local memory
  std::vector<bool> is_taken_ahead;  // per node: a load of which all threads read the row's first element, one row ahead
  bool stores_rows = true;           // row values are stored as soon as they are computed
  std::vector<std::string> symbols;  // of the functions so far
  Text out;

  bool is_copied_ahead(int a) const { return std::find(copied_ahead.begin(), copied_ahead.end(), a) != copied_ahead.end(); }
  int chunks() const { return chunks_of_thread(order, schedule); }  // of a thread in a block
  int elements() const { return schedule.vector * chunks(); }       // of a thread in a block
  int lanes_of_thread() const { return order.lanes / schedule.team; }
  // The beginning of a loop over a thread's chunks.
  std::string for_chunks() const {
    return join(unrolls_chunks(order, schedule) ? "LM_UNROLL " : "", "for (int k = 0; k < ", chunks(), "; ++k)");
  }
  bool shares_bytes(int a) const { return bits_of(kernel.arg(a).dtype) < 8; }
  bool is_vector_access(int a) const { return schedule.vector > 1 && kernel.arg(a).strides.back() == 1 && !shares_bytes(a); }
  // The sum of positions `x0`, `x1`, ... along dims [first, last) times steps.
  std::string place_sum(const Dims& steps, size_t first, size_t last, const char* prefix) const;
  // Declares the positions along several dims from `first` on, given `rest`, their position in the order of memory. `cast`
  // converts an extent; extents are numbers of the text, or parameters for the outer dims.
  void emit_positions(std::string rest, size_t first, size_t last, const std::string& type, const std::string& cast);
};

class Part {
 protected:
  explicit Part(Emission& emission)
      : e_(emission), out_(emission.out), kernel_(emission.kernel), schedule_(emission.schedule), plan_(emission.plan) {}
  const kernel::Node& node(kernel::NodeIndex i) const { return kernel_.node(i); }
  const kernel::Arg& arg(int a) const { return kernel_.arg(a); }
  bool is_reduction(kernel::NodeIndex i) const {
    return node(i).kind == kernel::NodeKind::reduce || node(i).kind == kernel::NodeKind::moments;
  }

  Emission& e_;
  Text& out_;
  const kernel::Kernel& kernel_;
  const Schedule& schedule_;
  const kernel::LoopPlan& plan_;
};

}  // namespace lamina::gpu
