#include "measure.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <thread>

namespace bench {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double time_of(const Contender& contender, int repeats) {
  const auto start = Clock::now();
  for (int i = 0; i < repeats; ++i) contender.run();
  return seconds_since(start) / repeats;
}

// The state of one contender during the rounds.
struct Runner {
  const Contender* contender;
  size_t group;
  int repeats = 1;  // runs per sample
  std::vector<double> samples;
  bool has_left = false;

  double quantile(double part) {
    const auto at = static_cast<std::ptrdiff_t>(part * static_cast<double>(samples.size() - 1));
    std::nth_element(samples.begin(), samples.begin() + at, samples.end());
    return samples[static_cast<size_t>(at)];
  }
};

// Runs until sleeping threads are awake and stay so, because the first calls may end before they wake up; and until the caches
// hold of this contender's data what they will hold, instead of another contender's.
void warm_up(const Contender& contender, int calls) {
  const auto start = Clock::now();
  for (int i = 0; i < calls || seconds_since(start) < 5e-4; ++i) contender.run();
}

// Enough runs that a sample takes a few hundred microseconds, so that the cost of reading the clock is negligible.
int repeats_for(const Contender& contender, bool evicts) {
  warm_up(contender, contender.settling_calls);
  if (evicts) return 1;
  return std::clamp(static_cast<int>(3e-4 / time_of(contender, 1)), 1, 1000);
}

std::vector<double> best_of_groups(std::vector<Runner>& runners, size_t groups) {
  std::vector<double> best(groups, std::numeric_limits<double>::infinity());
  for (Runner& each : runners) {
    if (!each.has_left) best[each.group] = std::min(best[each.group], each.quantile(0.5));
  }
  return best;
}

void send_slow_ones_away(std::vector<Runner>& runners, size_t groups) {
  const std::vector<double> best = best_of_groups(runners, groups);
  for (Runner& each : runners) each.has_left = each.quantile(0.5) > 1.3 * best[each.group];
}

// Whether another thread runs or waits for a core. The process's CPU clock does not show this: it counts other threads' time
// only from tick to tick.
bool another_thread_runs() {
  const std::string own = std::to_string(gettid());
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    if (thread.path().filename() == own) continue;
    std::ifstream file(thread.path() / "stat");
    std::string text;
    std::getline(file, text);  // the format is: number (name) state ...
    const size_t name_end = text.rfind(')');
    if (name_end != std::string::npos && text.compare(name_end, 3, ") R") == 0) return true;
  }
  return false;
}

}  // namespace

void wait_for_idle_threads() {
  constexpr int kLooks = 2;  // a thread may be between two waits
  for (int looks = 0, i = 0; looks < kLooks && i < 200; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(500));
    looks = another_thread_runs() ? 0 : looks + 1;
  }
}

std::vector<Timing> measure(const std::vector<std::vector<Contender>>& groups, const Measurement& how) {
  std::vector<Runner> runners;
  for (size_t group = 0; group < groups.size(); ++group) {
    for (const Contender& contender : groups[group]) {
      runners.push_back({&contender, group, repeats_for(contender, how.evictor != nullptr), {}});
    }
  }
  const auto start = Clock::now();
  for (int round = 0; round < how.rounds || seconds_since(start) < how.seconds; ++round) {
    if (round == 3) send_slow_ones_away(runners, groups.size());
    for (Runner& each : runners) {
      if (each.has_left) continue;
      if (how.evictor != nullptr) (*how.evictor)();
      if (how.rounds > 1) wait_for_idle_threads();
      if (how.evictor == nullptr) warm_up(*each.contender, kSettlingCalls);
      each.samples.push_back(time_of(*each.contender, each.repeats));
    }
  }
  std::vector<Timing> timings(groups.size());
  for (Runner& each : runners) {
    Timing& timing = timings[each.group];
    const double median = each.quantile(0.5);
    if (each.has_left || (timing.seconds > 0 && timing.seconds <= median)) continue;
    timing = {each.contender->name, median, (each.quantile(0.75) - each.quantile(0.25)) / median};
  }
  return timings;
}

// ---- BusyWatch

BusyWatch::BusyWatch() : start_(read()) {}

BusyWatch::Reading BusyWatch::read() {
  Reading reading;
  reading.wall = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  std::ifstream stat("/proc/stat");
  std::string cpu;
  double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
  if (stat >> cpu >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal) {
    reading.machine = (user + nice + system + irq + softirq + steal) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  reading.own = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  return reading;
}

double BusyWatch::others() const {
  const Reading now = read();
  if (now.machine == 0 || now.wall <= start_.wall) return 0;
  const double capacity = (now.wall - start_.wall) * static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  return std::max(0.0, (now.machine - start_.machine - (now.own - start_.own)) / capacity);
}

}  // namespace bench
