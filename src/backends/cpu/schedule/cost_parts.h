// What the parts of the cost model share: rows along lanes (cost_model.cpp), and rows that are lanes (cost_across_rows.cpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "backends/cpu/schedule/cost_model.h"
#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

inline constexpr double kLineBytes = static_cast<double>(tuning::kLine);
// If a core does two things at the same time, the longer one does not hide this fraction of the shorter one. The fraction is
// smaller if data from distant caches were prefetched.
inline constexpr double kSeen = 0.3, kSeenIfPrefetched = 0.2;

inline bool contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// The time of two things that a core does at the same time.
inline double both(double a, double b) { return std::max(a, b) + kSeen * std::min(a, b); }

// A third of a gather does not depend on the number of its lanes.
inline constexpr double kFullVector = 16;  // lanes of the vectors to which the costs of gathers and transpositions belong
inline double of_gathered_vector(const Costs& costs, double lanes) { return costs.gather * (1 + 2 * lanes / kFullVector) / 3; }

// The properties of a row under a schedule.
struct CostModel::Row {
  double read = 0, written = 0, streamed = 0;  // lines that are not shared with other rows
  double split = 0;                            // of the written ones, those that are stored in parts, in turns with other rows
  double received = 0, sent = 0;  // nanoseconds to move these from the level of the tensors to the caches, and back
  size_t level = 0;               // the level of the tensors: 0 is the first cache, 2 the last one or memory
  double from_memory = 0;         // the fraction of their lines that is in memory
  bool is_in_own_caches = false;  // they fit the first two levels of all threads together
  double rows = 1;                // rows per tile
  double bytes = 0, live_bytes = 0, shared_bytes = 0;  // bytes per row that a thread reads, keeps, and reads of shared data
  double tile_bytes = 0;                               // bytes read between two walks over the row
  // the number of args with elements to be converted that are kept, counted from the first
  int live_args = 0;
  bool keeps_functions = false;
  bool prefetches = false, first_holds_next = false;  // prefetches the next rows; they fit the first level too
  // bytes of these that are loaded into the first level while this row is walked again
  double next_in_first = 0;
};

}  // namespace lamina::cpu
