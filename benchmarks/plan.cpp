#include "plan.h"

#include <algorithm>

#include "caches.h"

namespace bench {

namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kOutOfCache = 128 * kMiB;  // bytes per tensor

// Bytes of a tensor that fits the cache together with the other tensors of all contenders.
int64_t in_cache() { return std::min(16 * kMiB, static_cast<int64_t>(last_level_cache()) / 6); }

// Rows of `columns` elements with at least `bytes` bytes.
Problem filling(int64_t bytes, int64_t columns, Type type) {
  const int64_t row = columns * static_cast<int64_t>(bytes_of(type));
  return {(bytes + row - 1) / row, columns, type};
}

}  // namespace

const char* name_of(Tier tier) {
  switch (tier) {
    case Tier::tiny: return "tiny";
    case Tier::cache: return "cache";
    case Tier::between: return "between";
    case Tier::memory: return "memory";
  }
  return "?";
}

Tier tier_of(const Problem& problem) {
  const size_t bytes = problem.bytes();
  if (bytes >= static_cast<size_t>(kOutOfCache)) return Tier::memory;
  if (bytes < static_cast<size_t>(kMiB)) return Tier::tiny;
  // The tensors are two inputs and one output of each of three contenders.
  return bytes * 5 <= last_level_cache() ? Tier::cache : Tier::between;
}

std::vector<Case> cases_for(Type type) {
  if (type == Type::f64) return {Case::forward, Case::forward_stats, Case::backward, Case::chain};
  std::vector<Case> cases;
  for (const CaseTraits& each : kCases) {
    if (!each.to_s8 || type == Type::f32) cases.push_back(each.which);
  }
  return cases;
}

std::vector<PlanItem> quick_plan() {
  std::vector<PlanItem> plan;
  for (const Problem& problem : {Problem{1, 64, Type::f32}, Problem{128, 768, Type::f32}, filling(in_cache(), 768, Type::f32),
                                 filling(in_cache(), 1021, Type::f32), filling(in_cache(), 16384, Type::f32),
                                 filling(kOutOfCache, 1024, Type::f32), filling(kOutOfCache, 16384, Type::f32)}) {
    plan.push_back({problem, cases_for(Type::f32)});
  }
  plan.push_back({{1, int64_t{1} << 25, Type::f32}, {Case::forward, Case::backward}});
  for (const Type type : {Type::bf16, Type::f16}) {
    for (const int64_t bytes : {in_cache(), kOutOfCache}) {
      plan.push_back({filling(bytes, 1024, type), {Case::forward, Case::backward, Case::chain}});
    }
  }
  return plan;
}

std::vector<PlanItem> full_plan(const std::vector<Type>& types) {
  std::vector<PlanItem> plan;
  for (const Type type : types) {
    const auto add = [&](const Problem& problem) { plan.push_back({problem, cases_for(type)}); };
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1, 64}, {1, 1024}, {16, 256}, {128, 768}, {37, 1021}}) {
      add({rows, columns, type});
    }
    for (const int64_t bytes : {in_cache(), kOutOfCache}) {
      for (const int64_t columns : {64, 256, 768, 1024, 4096, 16384, 65536}) add(filling(bytes, columns, type));
      // Primes, and lengths that no vector length divides; except 31, each is near a multiple of 16 from the list above.
      for (const int64_t columns : {31, 257, 769, 1000, 1021, 4093, 65521}) add(filling(bytes, columns, type));
    }
    add({262144, 64, type});
    add({1, int64_t{1} << 25, type});
    if (type == Type::bf16 || type == Type::f16) add({1, int64_t{1} << 26, type});
  }
  return plan;
}

std::vector<PlanItem> smoke_plan() {
  std::vector<PlanItem> plan;
  for (const Type type : {Type::f32, Type::bf16, Type::f16, Type::f64}) {
    plan.push_back({{3, 64, type}, cases_for(type)});
    plan.push_back({{5, 37, type}, cases_for(type)});
  }
  return plan;
}

}  // namespace bench
