// Compares lamina with oneDNN and with the machine's memory bandwidth on normalisations (contenders.h defines the cases).
//
//   norm_vs_onednn [--full | --smoke] [--types f32,bf16,f16,f64] [--case NAME]... [--threads N] [--seconds S] [--json FILE]
//                  [--memory as-given,huge-pages,small-pages,lines] [--tune MS] [--search S] [ROWSxCOLUMNS...]
//
// All contenders of a case take turns in one process. Each figure is the median of its rounds. GB/s count the bytes that must
// move: each tensor once, without statistics. Out of cache (128 MiB per tensor or more), everything is evicted before each
// run. --smoke runs each case once on a few elements and fails if lamina and oneDNN differ; this is a test, not a
// measurement. --memory selects the placement of tensors (buffers.h); with several, each case is measured in each.
//
// lamina runs with its default schedules, with those that tuning finds in --tune milliseconds per kernel (200; 0: no tuning),
// and with the best of the legal schedules that a search of --search seconds per kernel finds (2; 0: no search; see
// schedule_search.h). --json records these schedules. Environment variables about tuning and the cache on disk are ignored.
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "caches.h"
#include "lamina_choices.h"
#include "machine.h"
#include "measure.h"
#include "plan.h"

namespace bench {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  enum class Mode { quick, full, smoke } mode = Mode::quick;
  int threads = omp_get_num_procs();
  double seconds = 0.3;  // at least, per case
  std::string json;
  std::vector<Type> types;
  std::vector<Case> cases;  // empty: all
  std::vector<Memory> memories = {Memory::as_given};
  ChoiceBudget choices;
  std::vector<std::pair<int64_t, int64_t>> sizes;
};

struct Result {
  Case which;
  Problem problem;
  Memory memory;
  Timing lamina = {}, tuned = {}, best = {};  // with default schedules, with tuned ones, with the best ones found
  Timing onednn = {}, roofline = {};
  Choices choices = {};
  double difference = -1;    // from oneDNN; -1: there is nothing to compare
  double others = 0;         // fraction of the machine's time that other programs used meanwhile
  std::string refused = "";  // lamina's reason
};

constexpr double kBusy = 0.03;  // with more time taken by other programs, figures are unreliable

// The allowed difference of two correct implementations: a few units in the last place of the result's type, to which oneDNN
// rounds values between its primitives.
double tolerance(Type type) {
  switch (type) {
    case Type::bf16: return 4.0 / 128;
    case Type::f16: return 4.0 / 1024;
    case Type::s8: return 1.0;
    default: return 1e-4;
  }
}

// The largest difference of any output. Statistics and column sums are compared if the case has them.
double difference_of(Case which, const Problem& problem, const Outputs& ours, const Outputs& theirs) {
  double worst = largest_difference(type_of_dst(which, problem), ours.big, theirs.big, problem.count());
  if (which == Case::residual_sum)
    worst = std::max(worst, largest_difference(problem.type, ours.sum, theirs.sum, problem.count()));
  if (which != Case::forward_stats && which != Case::backward) return worst;
  const auto smalls = static_cast<size_t>(which == Case::backward ? problem.columns : problem.rows);
  for (const auto& [a, b] : {std::pair(&ours.first_small, &theirs.first_small), {&ours.second_small, &theirs.second_small}}) {
    worst = std::max(worst, difference_in_norm(problem.small_type(), *a, *b, smalls));
  }
  return worst;
}

// Measures again, a few times, if other programs kept the machine busy: a spinning thread that loses its CPU costs a whole
// time slice. The least disturbed attempt counts.
std::pair<std::vector<Timing>, double> measure_in_peace(const std::vector<std::vector<Contender>>& groups,
                                                        const Measurement& how) {
  std::pair<std::vector<Timing>, double> best{{}, std::numeric_limits<double>::infinity()};
  for (int attempt = 0; attempt < how.attempts && best.second > kBusy; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    const BusyWatch watch;
    std::vector<Timing> timings = measure(groups, how);
    if (const double others = watch.others(); others < best.second) best = {std::move(timings), others};
  }
  return best;
}

// The best schedule of the search may not be the fastest in these rounds.
Timing fastest_found(const Result& result, const Timing& searched) {
  Timing best = result.lamina;
  for (const Timing& other : {result.tuned, searched}) {
    if (other.seconds > 0 && other.seconds < best.seconds) best = other;
  }
  return best;
}

Result run_case(Case which, const Problem& problem, Memory memory, const Inputs& inputs, const ChoiceBudget& budget,
                const Measurement& how) {
  Result result{which, problem, memory};
  const Outputs ours(problem, memory), theirs(problem, memory), scratch(problem, memory);
  enum Group : size_t { lamina, tuned, best, onednn, roofline, count };
  std::vector<std::vector<Contender>> groups(count);
  try {
    result.choices = lamina_choices(which, problem, inputs, ours, budget);
    groups[lamina] = {result.choices.by_default};
    if (result.choices.tuned) groups[tuned] = {*result.choices.tuned};
    if (result.choices.best) groups[best] = {*result.choices.best};
  } catch (const std::exception& error) {
    result.refused = error.what();
  }
  groups[onednn] = onednn_contenders(which, problem, inputs, theirs);
  groups[roofline] = roofline_contenders(which, problem, inputs, scratch);
  const auto [timings, others] = measure_in_peace(groups, how);
  result.others = how.attempts > 1 ? others : 0;  // a smoke run measures nothing
  result.lamina = timings[lamina];
  result.tuned = groups[tuned].empty() ? result.lamina : timings[tuned];
  result.best = fastest_found(result, timings[best]);
  result.onednn = timings[onednn];
  result.roofline = timings[roofline];
  if (groups[lamina].empty() || groups[onednn].empty()) return result;
  for (const Contender& way : groups[onednn]) {
    if (way.name == result.onednn.way) way.run();
  }
  result.difference = difference_of(which, problem, ours, theirs);
  return result;
}

void print_head() {
  std::printf("%-23s %-18s %-11s %-7s %10s %10s %10s %7s  %-22s %-20s %-18s %-26s %s\n", "", "", "", "", "by rules", "", "",
              "by rules", "over oneDNN by", "of roofline by", "", "", "");
  std::printf("%-23s %-18s %-11s %-7s %10s %10s %10s %7s  %6s %7s %7s  %5s %6s %6s  %-18s %-26s %s\n", "case", "problem",
              "memory", "data in", "lamina us", "oneDNN us", "roofline us", "GB/s", "rules", "tuning", "best", "rules",
              "tuning", "best", "best of oneDNN", "best roofline", "difference");
}

void print_row(const Result& r) {
  std::printf("%-23s %-18s %-11s %-7s ", name_of(r.which), describe(r.problem).c_str(), name_of(r.memory),
              name_of(tier_of(r.problem)));
  if (!r.refused.empty()) {
    std::printf("refused: %s\n", r.refused.c_str());
    return;
  }
  const double gbs = static_cast<double>(moved_bytes(r.which, r.problem)) / r.lamina.seconds * 1e-9;
  const std::string peer = r.onednn.seconds > 0 ? std::to_string(r.onednn.seconds * 1e6) : "-";
  std::printf("%10.1f %10.8s %10.1f %7.1f ", r.lamina.seconds * 1e6, peer.c_str(), r.roofline.seconds * 1e6, gbs);
  for (const Timing& lamina : {r.lamina, r.tuned, r.best}) {
    if (r.onednn.seconds > 0)
      std::printf("%6.2fx ", r.onednn.seconds / lamina.seconds);
    else
      std::printf("%7s ", "-");
  }
  for (const Timing& lamina : {r.lamina, r.tuned, r.best}) std::printf("%5.0f%% ", 100 * r.roofline.seconds / lamina.seconds);
  std::printf(" %-18s %-26s ", r.onednn.way.c_str(), r.roofline.way.c_str());
  std::printf(r.difference < 0 ? "-" : "%.1e", r.difference);
  std::printf("%s%s\n", r.lamina.way == "lamina" ? "" : (", " + r.lamina.way).c_str(),
              r.others > kBusy ? ", machine busy" : "");
  std::fflush(stdout);
}

Json json_of(const Timing& timing) {
  if (timing.seconds == 0) return nullptr;
  return {{"way", timing.way}, {"us", timing.seconds * 1e6}, {"spread", timing.spread}};
}

Json json_of(const Timing& timing, const std::string& schedule) {
  Json json = json_of(timing);
  if (!json.is_null()) json["schedule"] = schedule;
  return json;
}

Json json_of(const Result& r) {
  return {{"case", name_of(r.which)},
          {"type", name_of(r.problem.type)},
          {"rows", r.problem.rows},
          {"columns", r.problem.columns},
          {"memory", name_of(r.memory)},
          {"tier", name_of(tier_of(r.problem))},
          {"tensor_bytes", r.problem.bytes()},
          {"moved_bytes", moved_bytes(r.which, r.problem)},
          {"lamina", json_of(r.lamina, r.choices.default_text)},
          {"tuned", r.choices.tuned_text.empty() ? Json(nullptr) : json_of(r.tuned, r.choices.tuned_text)},
          {"best", r.choices.best_text.empty() ? Json(nullptr) : json_of(r.best, r.choices.best_text)},
          {"searched_all", r.choices.searched_all},
          {"onednn", json_of(r.onednn)},
          {"roof", json_of(r.roofline)},
          {"difference", r.difference < 0 ? Json(nullptr) : Json(r.difference)},
          {"others", r.others},
          {"refused", r.refused}};
}

std::vector<PlanItem> plan_for(const Options& options) {
  using Mode = Options::Mode;
  const std::vector<Type> all = {Type::f32, Type::bf16, Type::f16, Type::f64};
  const std::vector<Type>& types = options.types.empty() ? all : options.types;
  std::vector<PlanItem> plan;
  if (!options.sizes.empty()) {
    for (const Type type : options.types.empty() ? std::vector<Type>{Type::f32} : options.types) {
      for (const auto& [rows, columns] : options.sizes) plan.push_back({{rows, columns, type}, cases_for(type)});
    }
  } else {
    plan = options.mode == Mode::smoke ? smoke_plan() : options.mode == Mode::full ? full_plan(types) : quick_plan();
  }
  std::erase_if(plan, [&](const PlanItem& item) { return std::ranges::find(types, item.problem.type) == types.end(); });
  for (PlanItem& item : plan) {
    std::erase_if(item.cases, [&](Case which) {
      return !options.cases.empty() && std::ranges::find(options.cases, which) == options.cases.end();
    });
  }
  return plan;
}

// Writes the file atomically: an interrupted run keeps the results after its last complete problem.
void write_json(const Options& options, const Json& results) {
  const Json content = {{"machine", describe_machine()}, {"seconds_per_case", options.seconds}, {"results", results}};
  const std::string unfinished = options.json + ".new";
  std::ofstream out(unfinished);
  out << content.dump(1) << '\n';
  if (!out.flush() || std::rename(unfinished.c_str(), options.json.c_str()) != 0) {
    throw std::runtime_error("cannot write " + options.json);
  }
}

double in_mib(size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// Returns the number of wrong results (different from oneDNN's, or refused).
int run_all(const Options& options) {
  double load = 0;
  if (options.mode != Options::Mode::smoke && is_busy_now(load)) {
    std::printf("warning: other programs run (load %.1f); figures are not to be trusted\n", load);
  }
  omp_set_num_threads(options.threads);
  std::printf(
      "%d threads, at least %.2g s per case; times are medians; over oneDNN = oneDNN / lamina; of roofline = roofline / "
      "lamina\n"
      "oneDNN is %s; the last cache counts as %.0f MiB (sysfs tells %.0f, sysconf %.0f, loads %.0f)\n\n",
      options.threads, options.seconds, onednn_version().empty() ? "absent" : onednn_version().c_str(),
      in_mib(last_level_cache()), in_mib(told_by_sysfs().last), in_mib(told_by_sysconf().last),
      in_mib(size_by_latencies(measured_latencies())));
  print_head();
  Evictor evictor;
  Json results = Json::array();
  int wrong = 0, busy = 0;
  for (const PlanItem& item : plan_for(options)) {
    if (item.cases.empty()) continue;
    // One placement after the other: in turns they would evict each other from the caches.
    for (const Memory memory : options.memories) {
      const Inputs inputs(item.problem, memory);
      for (const Case which : item.cases) {
        Measurement how{options.seconds};
        if (options.mode == Options::Mode::smoke) how.rounds = how.attempts = 1;
        if (tier_of(item.problem) == Tier::memory) how.evictor = &evictor;
        const Result result = run_case(which, item.problem, memory, inputs, options.choices, how);
        print_row(result);
        results.push_back(json_of(result));
        wrong += !result.refused.empty() || result.difference > tolerance(type_of_dst(which, item.problem));
        busy += result.others > kBusy;
      }
    }
    if (!options.json.empty()) write_json(options, results);
  }
  if (busy > 0)
    std::printf("\nwarning: the machine was busy with other programs during %d of %zu cases\n", busy, results.size());
  return wrong;
}

[[noreturn]] void fail_usage(const std::string& what) {
  std::fprintf(stderr,
               "norm_vs_onednn: %s; usage: [--full | --smoke] [--types f32,bf16,f16,f64] [--case NAME]... [--threads N] "
               "[--seconds S] [--json FILE] [--memory as-given,huge-pages,small-pages,lines] [--tune MS] [--search S] "
               "[ROWSxCOLUMNS...]\n",
               what.c_str());
  std::exit(2);
}

std::vector<Type> types_of(const std::string& list) {
  std::vector<Type> types;
  std::istringstream names(list);
  for (std::string name; std::getline(names, name, ',');) {
    const auto known = {Type::f32, Type::bf16, Type::f16, Type::f64};
    const auto type = std::ranges::find_if(known, [&](Type each) { return name == name_of(each); });
    if (type == known.end()) fail_usage("type '" + name + "' is none of f32, bf16, f16, f64");
    types.push_back(*type);
  }
  return types;
}

Case case_of(const std::string& name) {
  std::string allowed;
  for (const CaseTraits& each : kCases) {
    if (name == each.name) return each.which;
    allowed += (allowed.empty() ? "" : ", ") + std::string(each.name);
  }
  fail_usage("case '" + name + "' is none of " + allowed);
}

// The names of buffers.h, with hyphens for spaces.
std::vector<Memory> memories_of(const std::string& list) {
  std::vector<Memory> memories;
  std::istringstream names(list);
  for (std::string name; std::getline(names, name, ',');) {
    std::ranges::replace(name, '-', ' ');
    const auto memory = std::ranges::find_if(kMemories, [&](Memory each) { return name == name_of(each); });
    if (memory == std::end(kMemories)) fail_usage("memory '" + name + "' is none of as-given, huge-pages, small-pages, lines");
    memories.push_back(*memory);
  }
  return memories;
}

std::pair<int64_t, int64_t> size_of(const char* argument) {
  long long rows = 0, columns = 0;
  char rest = 0;
  const bool good = std::sscanf(argument, "%lldx%lld%c", &rows, &columns, &rest) == 2 && rows > 0 && columns > 0;
  if (!good) fail_usage(std::string("cannot use '") + argument + "'");
  return {rows, columns};
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    const auto value = [&]() -> const char* {
      if (i + 1 == count) fail_usage(argument + " needs a value");
      return arguments[++i];
    };
    if (argument == "--full") {
      options.mode = Options::Mode::full;
    } else if (argument == "--smoke") {
      options.mode = Options::Mode::smoke;
      options.seconds = 0;
      options.choices = {.tuning_milliseconds = 1, .search_seconds = 0.01};
    } else if (argument == "--threads") {
      options.threads = std::atoi(value());
    } else if (argument == "--seconds") {
      options.seconds = std::atof(value());
    } else if (argument == "--tune") {
      options.choices.tuning_milliseconds = std::atof(value());
    } else if (argument == "--search") {
      options.choices.search_seconds = std::atof(value());
    } else if (argument == "--json") {
      options.json = value();
    } else if (argument == "--types") {
      options.types = types_of(value());
    } else if (argument == "--memory") {
      options.memories = memories_of(value());
    } else if (argument == "--case") {
      options.cases.push_back(case_of(value()));
    } else {
      options.sizes.push_back(size_of(arguments[i]));
    }
  }
  if (options.threads < 1 || options.seconds < 0 || options.choices.tuning_milliseconds < 0 ||
      options.choices.search_seconds < 0)
    fail_usage("a count of threads below 1, or a negative time");
  return options;
}

}  // namespace
}  // namespace bench

int main(int count, char** arguments) {
  for (const char* const variable : {"LAMINA_CACHE_DIR", "LAMINA_TUNE"}) unsetenv(variable);
  try {
    const bench::Options options = bench::parse(count, arguments);
    const int wrong = bench::run_all(options);
    if (options.mode != bench::Options::Mode::smoke || wrong == 0) return 0;
    std::fprintf(stderr, "norm_vs_onednn: %d cases are refused or differ from oneDNN's results\n", wrong);
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "norm_vs_onednn: %s\n", error.what());
    return 1;
  }
}
