// Which cases are measured at which sizes.
#pragma once

#include <vector>

#include "contenders.h"

namespace bench {

// Where the data of a problem are when a run begins.
enum class Tier {
  tiny,     // a tensor has less than 1 MiB: first- and second-level caches
  cache,    // last-level cache
  between,  // too large for the last-level cache with all its companions, too small to be called out of cache
  memory,   // 128 MiB a tensor or more, and everything evicted before each run
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
