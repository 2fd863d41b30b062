// lamina by the schedules that its rules choose, by those that tuning finds, and by the best that a search finds.
#pragma once

#include <optional>
#include <string>

#include "contenders.h"

namespace bench {

struct ChoiceBudget {
  double tuning_milliseconds = 200;  // of each kernel; 0: nothing is tuned
  double search_seconds = 2;         // of each kernel; 0: nothing is searched
};

struct Choices {
  Contender by_default;
  std::optional<Contender> tuned, best;  // where they run by other schedules than the default and than each other
  // The schedules in words, kernel after kernel; empty where nothing was looked for.
  std::string default_text, tuned_text, best_text;
  bool searched_all = false;  // each kernel's whole list was timed
};

// What lamina knows of tuned schedules in this process is forgotten first. Throws lamina::error, with lamina's reason, for what
// it refuses.
Choices lamina_choices(Case which, const Problem& problem, const Inputs& inputs, const Outputs& outputs,
                       const ChoiceBudget& budget);

}  // namespace bench
