#include "backends/tune/tune_plan.h"

#include <algorithm>
#include <random>
#include <variant>

#include "interface/data_type.h"

namespace lamina {

size_t tune_kernels(const kernel::Plan& plan, const TuningRequest& request,
                    const std::function<bool(const kernel::Kernel& kernel)>& is_known,
                    const std::function<void(const kernel::Kernel& kernel, const TuningProgress& progress)>& tune) {
  std::vector<const kernel::Kernel*> kernels;
  for (const kernel::PlanStep& step : plan.steps) {
    const auto* const generated = std::get_if<kernel::KernelStep>(&step);
    if (generated == nullptr || generated->kernel.row_count() * generated->kernel.row_size() == 0) continue;
    if (request.again || !is_known(generated->kernel)) kernels.push_back(&generated->kernel);
  }
  for (size_t i = 0; i < kernels.size(); ++i) {
    tune(*kernels[i], [&](double done) {
      if (request.progress) request.progress(i, kernels.size(), done);
    });
  }
  return kernels.size();
}

std::vector<std::byte> ordinary_values(const kernel::Kernel& kernel, const kernel::Arg& arg, int64_t count) {
  std::mt19937 random(7);
  const int64_t entries = kernel.fewest_entries();
  const bool may_be_index = entries != INT64_MAX && (arg.dtype == DataType::s32 || arg.dtype == DataType::s64);
  std::uniform_real_distribution<double> values(may_be_index ? 0 : 0.5,
                                                may_be_index ? static_cast<double>(std::max<int64_t>(entries - 1, 0)) : 2.0);
  std::vector<std::byte> bytes(static_cast<size_t>(bytes_of(arg.dtype, count)));
  for (int64_t i = 0; i < count; ++i) {
    const bool is_of_table = static_cast<size_t>(i) < arg.table.size();
    store_from_double(arg.dtype, bytes.data(), i,
                      is_of_table ? static_cast<double>(arg.table[static_cast<size_t>(i)]) : values(random));
  }
  return bytes;
}

}  // namespace lamina
