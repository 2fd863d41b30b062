#include <string>

#include "backends/cpu/dispatch/packed_weights.h"
#include "runtime/model.h"

namespace lamina::runtime {

void SharedWeights::share(const ExportedModel::Partition& ports, const cpu::ProgramRunner& program,
                          cpu::PackedConstants& constants) {
  for (const cpu::PackedWeights& weights : cpu::packed_weights(ports, program)) {
    if (weights.key.empty()) continue;
    const auto [found, is_new] = known_.try_emplace(weights.key, &constants, weights.constant);
    if (!is_new) constants.share(weights.constant, *found->second.first, found->second.second);
  }
}

}  // namespace lamina::runtime
