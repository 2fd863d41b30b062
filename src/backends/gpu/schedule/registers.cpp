#include "backends/gpu/schedule/registers.h"

#include <algorithm>

#include "backends/gpu/schedule/tuning.h"

namespace lamina::gpu {

namespace {

using kernel::LoopPlan;
using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;

class RegisterCount {
 public:
  RegisterCount(const LoopPlan& plan, const SumOrder& order, const Schedule& schedule)
      : plan_(plan),
        kernel_(plan.kernel()),
        schedule_(schedule),
        elements_(elements_of_thread(order, schedule)),
        lanes_(order.lanes / schedule.team) {}

  int of_walk(int phase) const {
    int count = tuning::kScalarRegisters;
    for (size_t i = 0; i < kernel_.nodes.size(); ++i)
      if (is_live(static_cast<NodeIndex>(i), phase)) count += elements_ * words_of(kernel_.nodes[i].type);
    for (const NodeIndex i : plan_.nodes(phase))
      if (kernel_.node(i).kind == NodeKind::load && plan_.live_since(i) < 0) count += of_chunk(kernel_.node(i));
    for (const NodeIndex root : plan_.roots(phase)) count += of_root(root, phase);
    return count;
  }

  // Sums of columns are live in all walks, together with what the loop over rows needs.
  int of_row_loop() const {
    if (!schedule_.column_registers) return 0;
    int sums = 0;
    for (const Node& n : kernel_.nodes) sums += n.kind == NodeKind::column_sum ? elements_ * words_of(n.type) : 0;
    const int walks = schedule_.split ? 1 : static_cast<int>(plan_.usual_walks().size());
    return sums + tuning::kRowLoopRegisters + walks * tuning::kRowLoopWalkRegisters;
  }

 private:
  bool is_live(NodeIndex i, int phase) const {
    if (plan_.live_since(i) < 0 || plan_.live_since(i) > phase) return false;
    for (int reader = phase; reader < plan_.count(); ++reader) {
      const kernel::NodeList& nodes = plan_.nodes(reader);
      if (plan_.is_read_back(i, reader) && std::find(nodes.begin(), nodes.end(), i) != nodes.end()) return true;
    }
    return plan_.live_since(i) == phase;
  }

  // A chunk's elements in memory, before or after their conversion.
  int of_chunk(const Node& n) const {
    const auto bytes = static_cast<int>(bytes_of(kernel_.arg(n.arg).dtype, schedule_.vector));
    return std::max(1, bytes / 4);
  }

  int of_root(NodeIndex root, int phase) const {
    const Node& n = kernel_.node(root);
    if (n.kind == NodeKind::store) return of_chunk(n);
    if (n.kind == NodeKind::reduce) return lanes_ * words_of(n.type);
    if (n.kind != NodeKind::moments) return 0;
    if (!plan_.moments_by_block()) return (plan_.loop_of(root) == phase ? 1 : 2) * lanes_ * words_of(n.type);
    const int held = is_live(n.operands[0], phase) ? 0 : elements_;
    return (held + 3 * lanes_) * words_of(n.type);  // both walks are one, and the block is in registers
  }

  const LoopPlan& plan_;
  const kernel::Kernel& kernel_;
  const Schedule& schedule_;
  const int elements_, lanes_;
};

}  // namespace

int words_of(kernel::Type type) { return bits_of(kernel::data_type_of(type)) == 64 ? 2 : 1; }

int registers_of(const LoopPlan& plan, const SumOrder& order, const Schedule& schedule) {
  const RegisterCount count(plan, order, schedule);
  int most = 0;
  for (int phase = 0; phase < plan.count(); ++phase) most = std::max(most, count.of_walk(phase));
  return most + count.of_row_loop();
}

int threads_with(int registers) {
  for (const int threads : {tuning::kThreadsOfFewRegisters, tuning::kThreadsOfManyRegisters})
    if (registers * threads <= tuning::kRegisters) return threads;
  return tuning::kRegisters / registers;
}

bool fits_registers(const kernel::Kernel& kernel, const Schedule& schedule) {
  const kernel::LoopPlan plan(kernel, loop_policy(kernel, schedule));
  const int threads = threads_with(registers_of(plan, sum_order(kernel), schedule)), group = schedule.group_size();
  return threads / group * group >= tuning::kLeastResidentThreads;
}

}  // namespace lamina::gpu
