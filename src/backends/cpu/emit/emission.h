// An emission: the function under construction, its kernel, schedule, loop plan and target, and the builder. Every part of the
// emitter derives from Part, which gives access to these.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/cpu/llvm/headers.h"
#include "backends/cpu/schedule/live_values.h"
#include "backends/cpu/schedule/loop_policy.h"
#include "backends/cpu/schedule/schedule.h"
#include "kernels/kernel_ir.h"
#include "kernels/numerics.h"

namespace lamina::cpu {

using numerics::kBlock, numerics::kShiftElements, numerics::kVirtualLanes;

using ValueList = std::vector<llvm::Value*>;
using kernel::NodeList;

class Emission {
 public:
  Emission(llvm::Module& module, const std::string& symbol, const kernel::Kernel& kernel, const Schedule& schedule,
           const Instructions& target);

  const kernel::Kernel& kernel;
  const Schedule& schedule;
  const kernel::LoopPlan plan;
  const LiveValues live;
  const Instructions target;
  llvm::LLVMContext& context;
  const bool wide;  // f64 kernel
  const int width;  // lanes of a vector of the kernel's widest float type
  const int group;  // rows that are computed together, one lane each; 1 along rows
  llvm::Function* const function;
  llvm::IRBuilder<> b;

  // The call's arguments, as emit_kernel.h describes them. The split schedule gets its column sums from a SplitCall.
  llvm::Value *const call, *const row_begin, *const row_end, *const inner_begin, *const inner_end;
  llvm::Value* column_sums;
  llvm::Value* live_memory;
  llvm::Value* rows_ahead = nullptr;  // under the split schedule: the distance to the rows that come next
  llvm::Value* call_word(size_t i) { return call_word(i, b.getInt64Ty()); }
  llvm::Value* call_word(size_t i, llvm::Type* type);

  bool across_rows() const { return schedule.transposed; }
  size_t inner_rank() const { return kernel.extents.size() - static_cast<size_t>(kernel.outer_rank); }
  LaneStep lane_step(int arg, int64_t stride) const;  // for an arg that has `stride` along the row

  // for (i = begin; i < end; i += step) body(i)
  void loop(llvm::Value* begin, llvm::Value* end, llvm::Value* step, const std::function<void(llvm::Value*)>& body);
  void when(llvm::Value* condition, const std::function<void()>& body);
  // The value of the branch that `condition`, an i1, selects.
  llvm::Value* choose(llvm::Value* condition, const std::function<llvm::Value*()>& then,
                      const std::function<llvm::Value*()>& otherwise);
  llvm::AllocaInst* alloca_at_entry(llvm::Type* type);

  llvm::Type* type(kernel::Type type, int lanes) const;
  llvm::Value* i64(int64_t value) { return b.getInt64(static_cast<uint64_t>(value)); }
  llvm::Value* widen(llvm::Value* scalar, int lanes);
  llvm::Value* smaller(llvm::Value* x, llvm::Value* y) { return b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, y); }
  llvm::Value* fma(llvm::Value* x, llvm::Value* y, llvm::Value* z);
  llvm::Value* maximum(llvm::Value* x, llvm::Value* y);
  llvm::Value* minimum(llvm::Value* x, llvm::Value* y);
  llvm::Value* side_by_side(llvm::Value* x, llvm::Value* y);  // concatenates the lanes of both
  llvm::Value* side_by_side(ValueList vectors);               // of all; their number is a power of two

  // The start of a row: its position along each outer dim, its address in an arg, the outer dims' part of an index.
  ValueList row_position(llvm::Value* row);
  llvm::Value* row_pointer(int arg, const ValueList& position);
  llvm::Value* row_index(const kernel::Node& index, const ValueList& position);
  llvm::Value* bytes_to_next_row(int arg);  // for a group
};

// The members that each part of the emitter uses.
class Part {
 protected:
  explicit Part(Emission& emission)
      : e_(emission), b_(emission.b), kernel_(emission.kernel), schedule_(emission.schedule), plan_(emission.plan) {}
  const kernel::Node& node(kernel::NodeIndex i) const { return kernel_.node(i); }
  llvm::Value* i64(int64_t value) const { return e_.i64(value); }

  Emission& e_;
  llvm::IRBuilder<>& b_;
  const kernel::Kernel& kernel_;
  const Schedule& schedule_;
  const kernel::LoopPlan& plan_;
};

llvm::Type* with_lanes(llvm::Type* scalar, int lanes);  // a scalar's type for one lane
int lanes_of(const llvm::Type* type);                   // 1 for a scalar
inline int lanes_of(const llvm::Value* value) { return lanes_of(value->getType()); }

}  // namespace lamina::cpu
