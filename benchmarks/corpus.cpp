// Compares lamina with oneDNN's graph interface on dumps of graphs.
//
//   corpus [--seconds S] [--most-seconds S] [--threads N] [--only-class f32|bf16|f16|int8] [--json FILE] [--smoke] DUMP...
//
// Both run each dump in turns, in one process, on the same inputs. Each figure is the median of its rounds, after warm-up
// runs. Both cache what they compute from constant inputs. A dump that one of them does not run is reported with the reason
// and is not part of the means. --smoke runs each dump once, and fails if lamina refuses it or differs from oneDNN.
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "corpus_contenders.h"
#include "corpus_table.h"
#include "lamina/load.h"
#include "machine.h"
#include "measure.h"

namespace bench {
namespace {

using lamina::driver::Buffers;
// The driver's buffer. This program's own class is for rows and columns.
using TensorBuffer = lamina::driver::Buffer;

struct Options {
  double seconds = 0.5;      // at least, per contender and file
  double most_seconds = 20;  // a contender whose first run takes longer is measured only by that run
  int threads = omp_get_num_procs();
  bool is_smoke = false;
  std::string json;
  const TypeClass* only_class = nullptr;
  std::vector<std::string> files;
};

// ---- inputs and results

Buffers filled_inputs(const lamina::Graph& graph) {
  Buffers inputs;
  for (const lamina::ValueIndex input : graph.inputs()) {
    const lamina::LogicalTensor& tensor = graph.tensor(input);
    inputs[tensor.id] = std::make_shared<TensorBuffer>(tensor);
  }
  lamina::driver::fill_inputs(graph, graph.inputs(), /*seed=*/0, inputs);
  return inputs;
}

std::vector<double> values_of(const TensorBuffer& buffer) {
  std::vector<double> values;
  values.reserve(static_cast<size_t>(buffer.element_count()));
  lamina::driver::for_each_element(buffer.tensor(), 0, buffer.element_count(),
                                   [&](int64_t, int64_t offset) { values.push_back(buffer.load(offset)); });
  return values;
}

// The norm of all differences over the norm of the tensor, which single elements at a discontinuity do not decide. A number
// that is finite in only one of the tensors counts as infinite.
double difference_of(const TensorBuffer& ours, const TensorBuffer& theirs) {
  const std::vector<double> a = values_of(ours), b = values_of(theirs);
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double distance = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) {
      if (std::isfinite(b[i])) size += b[i] * b[i];
      continue;
    }
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return std::numeric_limits<double>::infinity();
    distance += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return distance == 0 ? 0 : std::sqrt(distance / std::max(size, 1e-30));
}

bool draws_numbers(const lamina::Graph& graph) {
  return std::ranges::any_of(graph.ops(), [](const lamina::Op& op) { return op.kind == lamina::OpKind::Dropout; });
}

// The allowed difference: both round values between their kernels, but at different points.
double tolerance(TypeClass type) {
  switch (type) {
    case TypeClass::int8: return 0.1;
    case TypeClass::bf16: return 0.05;
    case TypeClass::f16: return 0.01;
    default: return 1e-3;
  }
}

void compare(const lamina::Graph& graph, const GraphContender& ours, const GraphContender& theirs, FileResult& result) {
  if (draws_numbers(graph)) return;
  for (const lamina::ValueIndex output : graph.outputs()) {
    const uint64_t id = graph.tensor(output).id;
    result.difference = std::max(result.difference, difference_of(*ours.tensors.at(id), *theirs.tensors.at(id)));
  }
  result.is_wrong = result.difference > tolerance(result.type);
}

// ---- one file

double seconds_of_a_run(const GraphContender& contender) {
  const auto start = std::chrono::steady_clock::now();
  contender.run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Contenders whose first run took too long are measured already. The others take turns.
void measure_runs(const GraphContender& ours, const GraphContender& theirs, const Options& options, FileResult& result) {
  const GraphContender* const contenders[] = {&ours, &theirs};
  Figures* const figures[] = {&result.lamina, &result.onednn};
  std::vector<std::vector<Contender>> groups(2);
  double a_round = 0;
  for (size_t i = 0; i < 2; ++i) {
    figures[i]->seconds = seconds_of_a_run(*contenders[i]);
    figures[i]->is_once = figures[i]->seconds > options.most_seconds;
    if (figures[i]->is_once) continue;
    groups[i].push_back({"", contenders[i]->run});
    a_round += figures[i]->seconds;
  }
  if (a_round == 0) return;
  Measurement how;
  how.seconds = options.seconds * (groups[0].empty() || groups[1].empty() ? 1 : 2);
  how.rounds = static_cast<int>(std::clamp(how.seconds / a_round, 3.0, 11.0));
  const BusyWatch watch;
  const std::vector<Timing> timings = measure(groups, how);
  result.others = watch.others();
  for (size_t i = 0; i < 2; ++i) {
    if (groups[i].empty()) continue;
    figures[i]->seconds = timings[i].seconds;
    figures[i]->spread = timings[i].spread;
  }
}

GraphContender made(const char* who, Figures& figures, const std::function<GraphContender()>& make) {
  try {
    GraphContender contender = make();
    figures.partitions = contender.partitions;
    figures.compile_ms = contender.compile_ms;
    return contender;
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string(who) + ": " + error.what());
  }
}

// Throws with the reason if one of them does not run the dump.
void run_both(const lamina::GraphDump& dump, const Options& options, FileResult& result) {
  const lamina::Graph graph = lamina::driver::load_graph(result.file, {});
  const Buffers inputs = filled_inputs(graph);
  const GraphContender ours = made("lamina", result.lamina, [&] { return lamina_graph(graph, inputs); });
  const GraphContender theirs = made("oneDNN", result.onednn, [&] { return onednn_graph(dump, inputs); });
  result.remark = theirs.remark;
  if (options.is_smoke) {
    ours.run();
    theirs.run();
  } else {
    measure_runs(ours, theirs, options, result);
  }
  compare(graph, ours, theirs, result);
}

FileResult run_file(const std::string& file, const lamina::GraphDump& dump, const Options& options) {
  FileResult result;
  result.file = file;
  result.type = class_of(dump);
  try {
    run_both(dump, options, result);
  } catch (const std::exception& error) {
    result.refusal = error.what();
  }
  return result;
}

// ---- all files

void write_json(const Options& options, const std::vector<FileResult>& results) {
  nlohmann::ordered_json content = json_of(results);
  content["seconds_per_contender"] = options.seconds;
  std::ofstream out(options.json);
  out << content.dump(1) << '\n';
  if (!out.flush()) throw std::runtime_error("cannot write " + options.json);
}

std::vector<FileResult> run_all(const Options& options) {
  double load = 0;
  if (!options.is_smoke && is_busy_now(load)) {
    std::printf("warning: other programs run (load %.1f); figures are not to be trusted\n", load);
  }
  omp_set_num_threads(options.threads);
  print_machine();
  std::printf("\n");
  print_head();
  std::vector<FileResult> results;
  for (const std::string& file : options.files) {
    const lamina::GraphDump dump = lamina::parse_graph_json(lamina::read_dump_file(file), file);
    if (options.only_class != nullptr && class_of(dump) != *options.only_class) continue;
    results.push_back(run_file(file, dump, options));
    print_row(results.back());
    if (!options.json.empty()) write_json(options, results);
  }
  print_sums(results);
  return results;
}

// ---- the command line

[[noreturn]] void fail_usage(const std::string& what) {
  std::fprintf(stderr,
               "corpus: %s; usage: [--seconds S] [--most-seconds S] [--threads N] [--only-class f32|bf16|f16|int8] "
               "[--json FILE] [--smoke] DUMP...\n",
               what.c_str());
  std::exit(2);
}

const TypeClass* class_named(const std::string& name) {
  const auto* const found = std::ranges::find_if(kTypeClasses, [&](TypeClass each) { return name == name_of(each); });
  if (found == std::end(kTypeClasses)) fail_usage("class '" + name + "' is none of f32, bf16, f16, int8");
  return found;
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    const auto value = [&]() -> const char* {
      if (i + 1 == count) fail_usage(argument + " needs a value");
      return arguments[++i];
    };
    if (argument == "--seconds") {
      options.seconds = std::atof(value());
    } else if (argument == "--most-seconds") {
      options.most_seconds = std::atof(value());
    } else if (argument == "--threads") {
      options.threads = std::atoi(value());
    } else if (argument == "--only-class") {
      options.only_class = class_named(value());
    } else if (argument == "--json") {
      options.json = value();
    } else if (argument == "--smoke") {
      options.is_smoke = true;
    } else if (argument.starts_with("--")) {
      fail_usage("unknown option " + argument);
    } else {
      options.files.push_back(argument);
    }
  }
  if (options.files.empty()) fail_usage("no dump given");
  if (options.threads < 1 || options.seconds < 0) fail_usage("a count of threads below 1, or a negative time");
  return options;
}

}  // namespace
}  // namespace bench

int main(int count, char** arguments) {
  try {
    const bench::Options options = bench::parse(count, arguments);
    const std::vector<bench::FileResult> results = bench::run_all(options);
    const auto bad = std::ranges::count_if(
        results, [](const bench::FileResult& each) { return each.is_wrong || each.refusal.starts_with("lamina: "); });
    if (!options.is_smoke || bad == 0) return 0;
    std::fprintf(stderr, "corpus: lamina refuses %td dumps or differs from oneDNN's results\n", bad);
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "corpus: %s\n", error.what());
    return 1;
  }
}
