#include "backends/cpu/emit/emit_kernel.h"

#include "backends/cpu/emit/schedules.h"

namespace lamina::cpu {

void emit_kernel(llvm::Module& module, const std::string& symbol, const kernel::Kernel& kernel, const Schedule& schedule,
                 const Instructions& target) {
  Emission emission(module, symbol, kernel, schedule, target);
  if (schedule.split)
    emit_split_rows(emission);
  else if (schedule.transposed)
    emit_across_rows(emission);
  else
    emit_along_rows(emission);
  emission.b.CreateRetVoid();
}

}  // namespace lamina::cpu
