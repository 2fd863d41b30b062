// Casts round exactly once, where the user wrote them: chains of casts between all types, with values near the middle of two
// neighbours. Each result is compared with the reference bit by bit.
#include <gtest/gtest.h>

#include "interface/op_schema.h"
#include "interface/status.h"
#include "random/find_fault.h"
#include "random/random_op.h"
#include "random/recipe_builder.h"

namespace lamina::testing {
namespace {

struct Cast {
  DataType from, to;
};

std::vector<Cast> all_casts() {
  std::vector<Cast> casts;
  for (const Types& types : type_combinations(schema_of(OpKind::TypeCast)))
    casts.push_back({types.find("T1")->second, types.find("T2")->second});
  return casts;
}

// src ──> cast ──> cast ──> dst
std::string fault_of(DataType src, const std::vector<DataType>& types, uint64_t seed) {
  Rng rng(seed);
  RecipeBuilder graph(rng, 16000);
  uint64_t value = graph.input(src, {40, 130});
  for (const DataType type : types) value = graph.add(OpKind::TypeCast, {}, {value}, type).value();
  return find_fault(graph.finish(), cpu_backend(), seed).fault;
}

TEST(Casts, RoundOnce) {
  for (const Cast& cast : all_casts()) {
    for (const uint64_t seed : {1, 2, 3, 4})
      EXPECT_EQ(fault_of(cast.from, {cast.to}, seed), "") << name_of(cast.from) << " to " << name_of(cast.to);
  }
}

TEST(Casts, RoundAlsoWhereTheNextCastIsInTheSameKernel) {
  uint64_t seed = 0;
  for (const Cast& first : all_casts()) {
    for (const Cast& second : all_casts()) {
      if (second.from != first.to) continue;
      EXPECT_EQ(fault_of(first.from, {first.to, second.to}, ++seed), "")
          << name_of(first.from) << " to " << name_of(first.to) << " to " << name_of(second.to);
    }
  }
}

}  // namespace
}  // namespace lamina::testing
