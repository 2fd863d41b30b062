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
  const bool may_be_index = arg.dtype == DataType::s32 || arg.dtype == DataType::s64;
  const auto range = may_be_index ? kernel::index_range(kernel, static_cast<int>(&arg - kernel.args.data())) : std::nullopt;
  const double last = range ? static_cast<double>(range->last) : 2;
  std::uniform_real_distribution<double> values(range ? 0 : 0.5, last);
  std::vector<std::byte> bytes(static_cast<size_t>(bytes_of(arg.dtype, count)));
  for (int64_t i = 0; i < count; ++i) {
    const bool is_of_table = static_cast<size_t>(i) < arg.table.size();
    const bool is_sorted = range && range->sorted;
    store_from_double(arg.dtype, bytes.data(), i,
                      is_of_table ? static_cast<double>(arg.table[static_cast<size_t>(i)])
                      : is_sorted ? last * static_cast<double>(i) / static_cast<double>(count)
                                  : values(random));
  }
  return bytes;
}

}  // namespace lamina
