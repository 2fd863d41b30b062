// lamina with its default schedules, with those that tuning finds, and with the best that a search finds.
#pragma once

#include <optional>
#include <string>

#include "contenders.h"

namespace bench {

struct ChoiceBudget {
  double tuning_milliseconds = 200;  // per kernel; 0: no tuning
  double search_seconds = 2;         // per kernel; 0: no search
};

struct Choices {
  Contender by_default;
  std::optional<Contender> tuned, best;  // set if their schedules differ from the default and from each other
  // The schedules as text, one per kernel; empty if not searched.
  std::string default_text, tuned_text, best_text;
  bool searched_all = false;  // all legal schedules of each kernel were timed
};

// First drops the tuned schedules that lamina has in this process. Throws lamina::error with lamina's reason if it refuses
// the case.
Choices lamina_choices(Case which, const Problem& problem, const Inputs& inputs, const Outputs& outputs,
                       const ChoiceBudget& budget);

}  // namespace bench
