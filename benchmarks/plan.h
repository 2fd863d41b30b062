// Which cases are measured at which sizes.
#pragma once

#include <vector>

#include "contenders.h"

namespace bench {

// Where the data of a problem are before a run.
enum class Tier {
  tiny,     // less than 1 MiB per tensor: first- and second-level caches
  cache,    // last-level cache
  between,  // too large for the last-level cache with all tensors, too small for `memory`
  memory,   // 128 MiB per tensor or more, and everything is evicted before each run
};
const char* name_of(Tier tier);
Tier tier_of(const Problem& problem);

struct PlanItem {
  Problem problem;
  std::vector<Case> cases;
};

std::vector<PlanItem> quick_plan();
std::vector<PlanItem> full_plan(const std::vector<Type>& types);
std::vector<PlanItem> smoke_plan();  // every case and type, a few elements
std::vector<Case> cases_for(Type type);

}  // namespace bench
