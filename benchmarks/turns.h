// Contenders in turns, and the bandwidth of reading: what the benchmarks of products share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

namespace bench {

// In seconds. `of_thread`: the processor time of this thread, which other programs disturb less.
inline double now(bool of_thread) {
  timespec time;
  clock_gettime(of_thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// The minimum time of each contender, in turns, for `seconds`. Each round begins with the next contender, so that of two
// contenders each follows the other and itself as often, and finds the same data in caches. One thread is measured by its
// processor time. `before`, if there is one, runs before each, and is not timed.
inline std::vector<double> best_times(const std::vector<std::function<void()>>& contenders, double seconds, int threads,
                                      const std::function<void()>& before = nullptr) {
  std::vector<double> best(contenders.size(), 1e9);
  const double begin = now(false);
  size_t first = 0;
  do {
    for (size_t turn = 0; turn < contenders.size(); ++turn) {
      const size_t i = (first + turn) % contenders.size();
      if (before) before();
      const double start = now(threads == 1);
      contenders[i]();
      best[i] = std::min(best[i], now(threads == 1) - start);
    }
    ++first;
  } while (now(false) - begin < seconds);
  return best;
}

// The options that these benchmarks share. They have a default for the shapes.
struct TurnOptions {
  int threads = 1;
  double seconds = 0.5;
  std::vector<std::string> shapes;
};

// Reads [--threads N] [--seconds S] [--smoke] [SHAPE...] into `options`. `smoke`: the shapes of --smoke. `other` takes the
// value of another option, and returns whether there is one with this name.
inline void read_options(int argc, char** argv, TurnOptions& options, const std::vector<std::string>& smoke,
                         const std::function<bool(const std::string& name, char* value)>& other = nullptr) {
  std::vector<std::string> shapes;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const bool has_value = i + 1 < argc;
    if (name == "--smoke") {
      options.seconds = 0, options.shapes = smoke;
    } else if (name == "--threads" && has_value) {
      options.threads = std::atoi(argv[++i]);
    } else if (name == "--seconds" && has_value) {
      options.seconds = std::atof(argv[++i]);
    } else if (other != nullptr && has_value && other(name, argv[i + 1])) {
      ++i;
    } else {
      shapes.push_back(name);
    }
  }
  if (!shapes.empty()) options.shapes = shapes;
}

// Reads whole blocks of 4 KiB and returns a sum, so that the reads are not left out.
inline uint64_t read_all(const void* data, size_t bytes, int threads) {
  constexpr size_t kWords = 1024;
  const auto* const words = static_cast<const uint32_t*>(data);
  uint64_t sum = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : sum)
  for (size_t block = 0; block < bytes / sizeof(uint32_t) / kWords; ++block) {
    uint32_t part = 0;
    for (size_t i = 0; i < kWords; ++i) part += words[block * kWords + i];
    sum += part;
  }
  return sum;
}

}  // namespace bench
