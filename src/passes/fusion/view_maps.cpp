// Maps from the dims of a port to the dims of the loop nest, by the port's role.
#include "interface/op_schema.h"
#include "passes/fusion/view_builder.h"

namespace lamina {

DimMap identity_map(size_t rank) {
  DimMap map(rank);
  for (size_t i = 0; i < rank; ++i) map[i] = {static_cast<int>(i), 1};
  return map;
}

size_t ViewBuilder::first_output() const {
  for (size_t i = 0; i < op_.outputs.size(); ++i)
    if (has_output(i)) return i;
  LAMINA_CHECK(false, join(describe(op_), " has no output"));
  return 0;
}

// Numpy's rule: dims are aligned at the right. An operand is broadcast along dims where its extent is 1 and the result's is
// not.
DimMap ViewBuilder::broadcast_map(const Dims& operand) {
  const size_t rank = view_.extents.size();
  DimMap map(operand.size(), kNoRun);
  for (size_t i = 0; i < operand.size(); ++i) {
    if (operand[i] == 1) continue;
    const size_t dim = i + rank - operand.size();
    const bool fits =
        dim < rank && (view_.extents[dim] == operand[i] || view_.extents[dim] == kUnknownDim || operand[i] == kUnknownDim);
    if (!fits) {
      refuse(join("an operand ", describe(operand), " does not fit ", describe(view_.extents)));
      continue;
    }
    map[i] = {static_cast<int>(dim), 1};
  }
  return map;
}

// Statistics have the leading dims, possibly followed by dims of extent 1.
DimMap ViewBuilder::leading_map(const Dims& statistics, size_t count) {
  DimMap map(statistics.size(), kNoRun);
  if (statistics.size() < count) refuse(join("statistics ", describe(statistics), " do not fit ", describe(view_.extents)));
  for (size_t i = 0; i < statistics.size(); ++i) {
    if (i < count) {
      map[i] = {static_cast<int>(i), 1};
    } else if (statistics[i] != 1) {
      refuse(join("statistics ", describe(statistics), " do not fit ", describe(view_.extents)));
    }
  }
  return map;
}

// gamma and beta have the trailing dims, or one dim for all of them.
DimMap ViewBuilder::trailing_map(const Dims& affine, size_t begin) {
  const size_t count = view_.extents.size() - begin;
  if (affine.size() == 1) return {{static_cast<int>(begin), static_cast<int>(count)}};
  DimMap map(affine.size(), kNoRun);
  if (affine.size() != count) {
    refuse(join("gamma or beta ", describe(affine), " does not fit ", describe(view_.extents)));
    return map;
  }
  for (size_t i = 0; i < count; ++i) map[i] = {static_cast<int>(begin + i), 1};
  return map;
}

// A table with one entry per channel: one of its dims has the channels' extent, the others are 1.
DimMap ViewBuilder::channel_map(const Dims& operand, AxisRun channel) {
  DimMap map(operand.size(), kNoRun);
  bool found = false;
  for (size_t i = 0; i < operand.size(); ++i) {
    if (operand[i] == 1) continue;
    if (found) refuse(join("a table ", describe(operand), " per channel has more than one dim"));
    if (static_cast<size_t>(channel.first) >= view_.extents.size()) {
      refuse(join("a table ", describe(operand), " per channel does not fit ", describe(view_.extents), ", which has none"));
      continue;
    }
    map[i] = channel;
    found = true;
  }
  return map;
}

size_t ViewBuilder::channel_axis(size_t rank) const {
  if (rank == 0) return 0;
  return has_channels_last(op_) ? rank - 1 : std::min<size_t>(1, rank - 1);
}

}  // namespace lamina
