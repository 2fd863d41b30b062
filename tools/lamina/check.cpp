#include "lamina/check.h"

#include <algorithm>
#include <cmath>

#include "backends/reference/run.h"
#include "interface/number_text.h"
#include "interface/status.h"
#include "lamina/disturbed_runs.h"
#include "lamina/lines.h"
#include "lamina/tensor_check.h"
#include "lamina/tolerance.h"

namespace lamina::driver {
namespace {

using reference::Tensor;

void add_all(Elements& all, const Elements& more) {
  if (all.empty()) all = more;
  for (size_t i = 0; i < more.size(); ++i) all[i] = all[i] || more[i];
}

// The outputs of one partition beside those of the reference.
class PartitionCheck {
 public:
  PartitionCheck(const Subgraph& subgraph, std::span<const void* const> inputs,
                 std::span<const std::shared_ptr<Buffer>> outputs)
      : subgraph_(subgraph), inputs_(inputs), outputs_(outputs), left_out_(outputs.size()) {
    std::vector<ValueIndex> wanted = subgraph.outputs;
    for (const ValueIndex output : subgraph.outputs) {
      tolerances_.push_back(tolerance_of(subgraph.graph, output));
      if (tolerances_.back().averaged != kNoValue) wanted.push_back(tolerances_.back().averaged);
    }
    expected_ = reference::run(subgraph.graph, subgraph.inputs, wanted, inputs);
  }

  // Each step takes more time than the one before, and is needed only where that one finds an error.
  CheckResult run() {
    CheckResult result = judge();
    if (!result.good && leave_out(depend_on_storage(subgraph_, inputs_, expected_))) result = judge();
    if (result.good) return result;
    Disturbed disturbed = run_disturbed(subgraph_, inputs_, expected_);
    leave_out(disturbed.poles);
    spreads_ = std::move(disturbed.spreads);
    return judge();
  }

 private:
  // False where there is none.
  bool leave_out(const std::vector<Elements>& elements) {
    for (size_t i = 0; i < elements.size(); ++i) add_all(left_out_[i], elements[i]);
    return !elements.empty();
  }

  CheckResult judge() const {
    CheckResult total;
    size_t next_averaged = outputs_.size();
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Tensor* averaged = tolerances_[i].averaged != kNoValue ? &expected_[next_averaged++] : nullptr;
      TensorCheck check(*outputs_[i], expected_[i], tolerances_[i], averaged);
      if (!spreads_.empty()) check.allow(spreads_[i]);
      check.leave_out(left_out_[i]);
      merge(total, check.run());
    }
    return total;
  }

  const Subgraph& subgraph_;
  std::span<const void* const> inputs_;
  std::span<const std::shared_ptr<Buffer>> outputs_;
  std::vector<Tolerance> tolerances_;
  std::vector<Tensor> expected_;  // of the outputs, then what some of them are averages of
  std::vector<Elements> left_out_;
  std::vector<std::vector<double>> spreads_;  // empty until they are needed
};

}  // namespace

CheckResult check_partition(const Subgraph& subgraph, std::span<const void* const> inputs,
                            std::span<const std::shared_ptr<Buffer>> outputs) {
  return PartitionCheck(subgraph, inputs, outputs).run();
}

void merge(CheckResult& total, const CheckResult& part) {
  const bool first = total.elements == 0;
  total.good = total.good && part.good;
  total.elements += part.elements;
  total.failed += part.failed;
  total.forgiven += part.forgiven;
  total.left_out += part.left_out;
  const bool worse_kind = !part.good && total.worst.of_allowed <= 1;
  if (first || worse_kind || part.worst.of_allowed > total.worst.of_allowed) total.worst = part.worst;
}

std::string CheckResult::text() const {
  if (elements == 0) return "ok, nothing to compare";
  const double magnitude = std::abs(worst.expected);
  const bool is_relative = magnitude > 0 && std::isfinite(magnitude) && std::isfinite(worst.error);
  const std::string place =
      join(is_relative ? "relative error " : "error ", general_text(is_relative ? worst.error / magnitude : worst.error, 2),
           ", ", share_of_allowed(worst.of_allowed), " of the allowed, at tensor ", worst.tensor_id, ' ', describe(worst.at));
  const std::string beyond = left_out > 0 ? join(", ", left_out, " that depend on values beyond the range of their types") : "";
  if (good) return join("worst ", place, forgiven > 0 ? join(", ", forgiven, " near a jump") : "", beyond);
  return join(failed, " of ", elements, " elements are WRONG, worst ", place, ": ", general_text(worst.given, 9), ", expected ",
              general_text(worst.expected, 9));
}

}  // namespace lamina::driver
