// Measures a machine's costs for scripts/simulate_scaling.py: an atomic increment, alone and contended; the transfer of a
// cache line between cores; starting threads and waiting for them; and rows of some kernels, in cache and from memory, on one
// thread and on two. Each figure is the minimum of some rounds, because disturbances only add time. Prints JSON, including
// the fraction of the machine that other programs used. Takes about ten seconds. With --smoke it runs one round, as a test.
//
//   scaling_costs [--smoke]
#include <omp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <thread>
#include <vector>

#include "contenders.h"
#include "machine.h"
#include "measure.h"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

bool smoke = false;

double nanoseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

// The minimum of the results of `once`.
template <typename Once>
double least(int rounds, const Once& once) {
  double best = once();
  for (int round = 1; round < (smoke ? 1 : rounds); ++round) best = std::min(best, once());
  return best;
}

struct alignas(128) Counter {
  std::atomic<int64_t> value = 0;
};

// The time of one increment as the counter sees it: the total time over the number of increments of all threads.
double increment(int threads) {
  const int64_t each = smoke ? 1000 : 2'000'000;
  return least(9, [&] {
    Counter counter;
    std::atomic<int> ready = 0;
    std::vector<double> times(static_cast<size_t>(threads));
    const auto work = [&](int thread) {
      ++ready;
      while (ready < threads) {
      }
      const auto start = Clock::now();
      for (int64_t i = 0; i < each; ++i) counter.value.fetch_add(1);
      times[static_cast<size_t>(thread)] = nanoseconds_since(start);
    };
    std::vector<std::thread> others;
    for (int thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
    work(0);
    for (std::thread& other : others) other.join();
    return *std::ranges::max_element(times) / static_cast<double>(each * threads);
  });
}

// The time to move a cache line from one core's cache to the other's: half of a round trip.
double handover() {
  const int64_t rounds = smoke ? 100 : 200'000;
  return least(9, [&] {
    Counter ball;
    std::thread other([&] {
      for (int64_t i = 0; i < rounds; ++i) {
        while (ball.value.load(std::memory_order_acquire) != 2 * i + 1) {
        }
        ball.value.store(2 * i + 2, std::memory_order_release);
      }
    });
    const auto start = Clock::now();
    for (int64_t i = 0; i < rounds; ++i) {
      ball.value.store(2 * i + 1, std::memory_order_release);
      while (ball.value.load(std::memory_order_acquire) != 2 * i + 2) {
      }
    }
    const double time = nanoseconds_since(start);
    other.join();
    return time / static_cast<double>(2 * rounds);
  });
}

// The time of an empty OpenMP region.
double region(int threads) {
  const int regions = smoke ? 10 : 20'000;
  return least(9, [&] {
    const auto start = Clock::now();
    for (int i = 0; i < regions; ++i) {
#pragma omp parallel num_threads(threads)
      asm volatile("" : : : "memory");
    }
    return nanoseconds_since(start) / regions;
  });
}

// The time to add 64 partial column sums of one block of rows to those of other blocks, as the tree does: f32 in a near
// cache, f64 sums.
double partial_sums() {
  constexpr size_t kColumns = 64, kBlocks = 64;
  const std::vector<float> partials(kColumns * kBlocks, 1.0F);
  std::array<double, kColumns> sums{};
  const int rounds = smoke ? 1 : 20'000;
  return least(9, [&] {
    const auto start = Clock::now();
    for (int round = 0; round < rounds; ++round) {
      for (size_t block = 0; block < kBlocks; ++block) {
        for (size_t c = 0; c < kColumns; ++c) sums[c] += static_cast<double>(partials[block * kColumns + c]);
      }
      asm volatile("" : : "r"(sums.data()) : "memory");
    }
    return nanoseconds_since(start) / (static_cast<double>(kBlocks) * rounds);
  });
}

// The time of a row on `threads` threads.
double row(Case which, const Problem& problem, int threads) {
  const Inputs inputs(problem);
  const Outputs outputs(problem);
  const Contender lamina = lamina_contender(which, problem, inputs, outputs);
  omp_set_num_threads(threads);
  lamina.run();
  const double bytes = static_cast<double>(problem.bytes());
  const int repeats = smoke ? 1 : std::max(1, static_cast<int>(1e8 / bytes));
  const double time = least(9, [&] {
    const auto start = Clock::now();
    for (int i = 0; i < repeats; ++i) lamina.run();
    return nanoseconds_since(start) / repeats;
  });
  omp_set_num_threads(omp_get_num_procs());
  return time / static_cast<double>(problem.rows);
}

Json rows_of(Case which, Type type) {
  constexpr int64_t kColumns = 768;
  const Problem near{smoke ? 64 : 128, kColumns, type}, far{smoke ? 256 : 65536, kColumns, type};
  return {{"case", name_of(which)},
          {"type", name_of(type)},
          {"columns", kColumns},
          {"bytes_a_row", static_cast<double>(moved_bytes(which, far)) / static_cast<double>(far.rows)},
          {"ns_in_cache", row(which, near, 1)},
          {"ns_in_cache_two_threads", row(which, near, 2)},
          {"ns_from_memory", row(which, far, 1)},
          {"ns_from_memory_two_threads", row(which, far, 2)}};
}

Json all_costs() {
  return {{"increment_ns", increment(1)},
          {"increment_of_two_ns", increment(2)},
          {"handover_ns", handover()},
          {"region_of_two_ns", region(2)},
          {"partial_sums_ns", partial_sums()},
          {"kernels", Json::array({rows_of(Case::forward, Type::f32), rows_of(Case::backward, Type::f32),
                                   rows_of(Case::chain, Type::bf16)})}};
}

}  // namespace
}  // namespace bench

int main(int count, char** arguments) {
  bench::smoke = count == 2 && std::strcmp(arguments[1], "--smoke") == 0;
  if (count > 2 || (count == 2 && !bench::smoke)) {
    std::fprintf(stderr, "usage: scaling_costs [--smoke]\n");
    return 2;
  }
  if (omp_get_num_procs() < 2) {
    std::fprintf(stderr, "scaling_costs: this machine has one CPU, needed are two\n");
    return 1;
  }
  const bench::Json machine = bench::describe_machine();
  const bench::BusyWatch watch;
  bench::Json costs = {{"machine", machine}, {"costs", bench::all_costs()}};
  costs["others"] = watch.others();
  std::cout << costs.dump(1) << '\n';
  return 0;
}
