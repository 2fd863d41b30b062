// Rows that are copied to local memory while the row before is computed. Each thread copies the chunks that it reads, so that
// no thread waits for another.
#pragma once

#include <string>

#include "backends/gpu/emit/rows.h"
#include "backends/gpu/emit/values.h"

namespace lamina::gpu {

class NextRow : private Part {
 public:
  NextRow(Emission& emission, const Values& values, Rows& rows) : Part(emission), values_(values), rows_(rows) {}

  void begin();    // before the loop over a team's rows: starts to copy row 0
  void advance();  // at the beginning of row `r`: starts to copy the next one, and waits for the copies of this one

 private:
  void fetch(const std::string& side, const std::string& wanted);
  void copy_chunks();

  const Values& values_;
  Rows& rows_;
};

}  // namespace lamina::gpu
