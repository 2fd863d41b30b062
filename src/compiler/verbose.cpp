#include "compiler/verbose.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>

#include "backends/cache/code_cache.h"
#include "compiler/compiled_partition.h"
#include "handles/locks.h"
#include "interface/json/json.h"
#include "interface/number_text.h"
#include "interface/status.h"

namespace lamina::compiler {

namespace {

constexpr int kAsEnvironment = -1;
std::atomic<int> asked_level{kAsEnvironment};

int verbosity() {
  const int asked = asked_level.load(std::memory_order_relaxed);
  if (asked != kAsEnvironment) return asked;
  static const int level = [] {
    const char* text = std::getenv("LAMINA_VERBOSE");
    return text == nullptr ? 0 : std::atoi(text);
  }();
  return level;
}
bool verbose() { return verbosity() > 0; }

struct DumpModes {
  std::atomic<bool> graph = false, pass = false, subgraph = false;
};

// An unknown token clears everything before it, as in oneDNN.
void read_dump_modes(std::string text, DumpModes& modes) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view token = std::string_view(text).substr(begin, end - begin);
    if (token == "graph")
      modes.graph = true;
    else if (token == "pass")
      modes.pass = true;
    else if (token == "subgraph")
      modes.subgraph = true;
    else
      modes.graph = modes.pass = modes.subgraph = false;
    begin = end + 1;
  }
}

DumpModes& dump_modes() {
  static DumpModes modes;
  static const bool is_read = [] {
    if (const char* const text = std::getenv("LAMINA_GRAPH_DUMP"); text != nullptr) read_dump_modes(text, modes);
    return true;
  }();
  static_cast<void>(is_read);
  return modes;
}

// The destination of lines; null: stdout.
struct Sink {
  Mutex mutex{LockRow::verbose};
  VerboseWriter write = nullptr;
  void* user = nullptr;
};
Sink& sink() {
  static Sink* const one = new Sink;  // never destroyed: threads may still print when the process ends
  return *one;
}

// Writes each line with one call, so that lines of several threads do not interleave.
void print_line(const std::string& line) {
  const std::string text = "lamina," + line;
  const std::lock_guard lock(sink().mutex);
  if (sink().write != nullptr) {
    sink().write(sink().user, text.data(), text.size());
    return;
  }
  std::fputs((text + "\n").c_str(), stdout);
  std::fflush(stdout);
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw Error(Status::runtime_error, "LAMINA_GRAPH_DUMP: cannot write " + path + " in the working directory");
  if (verbose()) print_line("dump," + path);
}

// FNV-1a over the ports: a partition compiled for two shapes is dumped to two files.
uint64_t hash_of(const std::string& text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

std::string describe_ports(const std::vector<LogicalTensor>& ports) {
  std::string text;
  for (const LogicalTensor& port : ports) text += join(text.empty() ? "" : " ", port.id, ":", describe(port));
  return text;
}

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

// Prints once per process, with the first compile.
void report_code_cache() {
  static const bool reported = [] {
    const CodeCache* const cache = CodeCache::from_environment();
    if (cache != nullptr && !cache->warning().empty())
      print_line(join("code_cache,", cache->why_off().empty() ? "on" : "off", ",", cache->warning()));
    return true;
  }();
  static_cast<void>(reported);
}

}  // namespace

void set_verbosity(int level) { asked_level = level; }

void set_verbose_output(int level, VerboseWriter write, void* user) {
  const std::lock_guard lock(sink().mutex);
  sink().write = write;
  sink().user = user;
  asked_level = level;
}

void set_dumps(bool graphs, bool subgraphs) {
  dump_modes().graph = graphs;
  dump_modes().subgraph = subgraphs;
}

void report_compile(const CompiledPartition& compiled) {
  if (!verbose()) return;
  report_code_cache();
  const ExecutableInfo& info = compiled.info();
  print_line(join("compile,", info.backend, ",", compiled.label(), ",in ", describe_ports(compiled.inputs()), ",out ",
                  describe_ports(compiled.outputs()), ",kernels ", list(info.kernels), ",",
                  compiled.from_cache() ? "from cache," : "", fixed_text(compiled.compile_ms(), 3), " ms"));
}

ExecutionTimer::ExecutionTimer(const CompiledPartition& compiled) : compiled_(verbose() ? &compiled : nullptr) {
  if (compiled_ != nullptr) start_ = std::chrono::steady_clock::now();
}

ExecutionTimer::~ExecutionTimer() {
  if (compiled_ == nullptr) return;
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start_;
  const ExecutableInfo& info = compiled_->info();
  const double gigabytes_per_second = static_cast<double>(info.required_bytes) / spent.count() * 1e-6;
  try {
    print_line(join("exec,", info.backend, ",", compiled_->label(), ",", fixed_text(spent.count(), 4), " ms,",
                    fixed_text(gigabytes_per_second, 2), " GB/s"));
  } catch (...) {
    // The execution itself has succeeded: if formatting runs out of memory or the writer throws, the line is omitted.
  }
}

void dump_graph(const Graph& graph, uint64_t graph_id) {
  if (dump_modes().graph) write_file(join("graph-", graph_id, ".json"), write_graph_json(graph));
}

bool dumps_subgraphs() { return dump_modes().subgraph; }

void dump_subgraph(const Graph& graph, uint64_t partition_id) {
  if (!dumps_subgraphs()) return;
  const std::string text = write_graph_json(graph);
  write_file(join("graph-", partition_id, "-", hash_of(text), ".json"), text);
}

PassObserver pass_observer(uint64_t graph_id) {
  if (verbosity() < 2 && !dump_modes().pass) return nullptr;
  return [graph_id](const PassReport& pass) {
    if (verbosity() >= 2) {
      print_line(join("pass,", pass.name, ",", pass.changed ? "changed" : "kept", ",", pass.graph.ops().size(), " ops,",
                      fixed_text(pass.milliseconds, 3), " ms"));
    }
    if (dump_modes().pass && pass.changed)
      write_file(join("graph-", graph_id, '-', pass.position, '-', pass.name, ".json"), write_graph_json(pass.graph));
  };
}

}  // namespace lamina::compiler
