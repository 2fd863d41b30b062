// The transpose writes every element to the right position for all block sizes, and changes no other memory.
#include "backends/cpu/library/windows/transpose.h"

#include <gtest/gtest.h>

#include <vector>

namespace lamina::cpu {
namespace {

TEST(Transpose, PutsEveryElementInItsPlaceAndWritesNothingElse) {
  for (const int64_t rows : {1, 3, 4, 9, 15, 16, 17, 40})
    for (const int64_t columns : {1, 2, 4, 7, 16, 19, 33}) {
      const int64_t from_stride = columns + 3, to_stride = rows + 2;
      std::vector<float> from(static_cast<size_t>(rows * from_stride)), to(static_cast<size_t>(columns * to_stride), -1);
      for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
      transpose(from.data(), from_stride, to.data(), to_stride, rows, columns);
      for (int64_t column = 0; column < columns; ++column)
        for (int64_t row = 0; row < to_stride; ++row) {
          const float expected = row < rows ? static_cast<float>(row * from_stride + column) : -1;
          ASSERT_EQ(to[static_cast<size_t>(column * to_stride + row)], expected) << rows << " x " << columns;
        }
    }
}

}  // namespace
}  // namespace lamina::cpu
