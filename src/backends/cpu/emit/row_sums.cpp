#include "backends/cpu/emit/row_sums.h"

#include <algorithm>
#include <numeric>

#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;

namespace {

// The shuffle that joins two vectors of `rows` rows each. Each half of a register's lanes, or of all lanes, comes from one of
// them. Lists the rows of the first (0 and up) and of the second (`rows` and up) in the resulting order.
std::vector<int> joined_rows(int rows, int per_group) {
  std::vector<int> order;
  for (int group = 0; group < rows; group += per_group) {
    for (const int source : {0, rows}) {
      for (int i = 0; i < per_group; ++i) order.push_back(source + group + i);
    }
  }
  return order;
}

// Rows whose lanes fit one 128-bit register are joined there, because shuffles across registers are slow.
int rows_per_group(int rows, int lanes_of_row, int lanes_of_register) {
  return lanes_of_row > lanes_of_register ? rows : std::min(rows, lanes_of_register / lanes_of_row);
}

// The lane of each of `count` vectors in the result.
std::vector<int> order_of_rows(int count, int lanes, int lanes_of_register) {
  std::vector<std::vector<int>> vectors;
  for (int i = 0; i < count; ++i) vectors.push_back({i});
  for (int of_row = lanes; of_row > 1 && vectors.size() > 1; of_row /= 2) {
    const auto rows = static_cast<int>(vectors[0].size());
    for (size_t i = 0; i < vectors.size() / 2; ++i) {
      std::vector<int> joined;
      for (const int r : joined_rows(rows, rows_per_group(rows, of_row, lanes_of_register))) {
        joined.push_back(vectors[2 * i + static_cast<size_t>(r >= rows)][static_cast<size_t>(r % rows)]);
      }
      vectors[i] = joined;
    }
    vectors.resize(vectors.size() / 2);
  }
  std::vector<int> order;
  for (const auto& rows : vectors) order.insert(order.end(), rows.begin(), rows.end());
  return order;
}

}  // namespace

RowSums::RowSums(Emission& emission) : Part(emission) {
  int64_t bytes = 0;
  for (int phase = 0; phase < plan_.count(); ++phase) bytes = std::max(bytes, end_of(places_of(plan_.roots(phase))));
  memory_ = e_.alloca_at_entry(llvm::ArrayType::get(b_.getInt8Ty(), static_cast<uint64_t>(bytes)));
  memory_->setAlignment(llvm::Align(kLiveAlignment));
}

// The memory of the rows' vectors for these roots' accumulators, one after the other, in whole lines.
std::vector<RowSums::Place> RowSums::places_of(const NodeList& roots) const {
  std::vector<Place> places;
  for (const NodeIndex root : roots) {
    const Node& n = node(root);
    if (!reduces_rows(n)) continue;
    for (int i = 0; i < (n.kind == NodeKind::moments ? 2 : 1); ++i) {
      places.push_back({n.kind == NodeKind::moments ? Combine::sum : combine_of(n.reduction), n.type, end_of(places)});
    }
  }
  return places;
}

int64_t RowSums::end_of(const std::vector<Place>& places) const {
  using tuning::kLine;
  if (places.empty()) return 0;
  const auto bits = static_cast<int64_t>(e_.type(places.back().type, e_.width)->getPrimitiveSizeInBits().getFixedValue());
  return places.back().begin + (bits / 8 * schedule_.rows_per_tile + kLine - 1) / kLine * kLine;
}

llvm::Value* RowSums::address(const Place& sums, llvm::Value* place) {
  return b_.CreateGEP(e_.type(sums.type, e_.width), b_.CreateGEP(b_.getInt8Ty(), memory_, i64(sums.begin)), place);
}

// The rest of the tree over the first `lanes` lanes of the vectors of all rows. The result has one lane per row.
llvm::Value* RowSums::fold(const Place& sums, int lanes) {
  const int rows = schedule_.rows_per_tile, lanes_of_register = std::min(lanes, sums.type == kernel::Type::f64 ? 2 : 4);
  ValueList vectors(static_cast<size_t>(rows));
  const std::vector<int> order = order_of_rows(rows, lanes, lanes_of_register);
  for (int lane = 0; lane < rows; ++lane) {
    vectors[static_cast<size_t>(order[static_cast<size_t>(lane)])] =
        b_.CreateLoad(e_.type(sums.type, lanes), address(sums, i64(lane)));
  }
  for (int of_row = lanes, rows_of_vector = 1; of_row > 1; of_row /= 2) {
    const bool joins = vectors.size() > 1;
    std::vector<int> halves(static_cast<size_t>(rows_of_vector));
    std::iota(halves.begin(), halves.end(), 0);
    if (joins) halves = joined_rows(rows_of_vector, rows_per_group(rows_of_vector, of_row, lanes_of_register));
    std::vector<int> low, high;
    for (const int r : halves) {
      for (int lane = r * of_row; lane < r * of_row + of_row / 2; ++lane) {
        low.push_back(lane);
        high.push_back(lane + of_row / 2);
      }
    }
    const size_t step = joins ? 2 : 1, left = vectors.size() / step;
    for (size_t v = 0; v < left; ++v) {
      llvm::Value *const a = vectors[v * step], *const b = vectors[v * step + step - 1];
      vectors[v] = combine(e_, sums.how, b_.CreateShuffleVector(a, b, low), b_.CreateShuffleVector(a, b, high));
    }
    vectors.resize(left);
    rows_of_vector = static_cast<int>(halves.size());
  }
  return b_.CreateFreeze(join(vectors));  // lanes without a row may never have been written
}

// Concatenates the lanes into one vector.
llvm::Value* RowSums::join(ValueList parts) {
  if (!parts[0]->getType()->isVectorTy()) {
    llvm::Value* all =
        llvm::PoisonValue::get(llvm::FixedVectorType::get(parts[0]->getType(), static_cast<unsigned>(parts.size())));
    for (size_t i = 0; i < parts.size(); ++i) all = b_.CreateInsertElement(all, parts[i], i64(static_cast<int64_t>(i)));
    return all;
  }
  while (parts.size() > 1) {
    for (size_t i = 0; i < parts.size() / 2; ++i) parts[i] = e_.side_by_side(parts[2 * i], parts[2 * i + 1]);
    parts.resize(parts.size() / 2);
  }
  return parts[0];
}

}  // namespace lamina::cpu
