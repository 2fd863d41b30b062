#include "lamina/replay.h"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <set>

#include "compiler/compile.h"
#include "interface/op_schema.h"
#include "interface/status.h"
#include "lamina/bar.h"
#include "lamina/device_tensors.h"
#include "lamina/files.h"
#include "lamina/fill.h"
#include "lamina/load.h"
#include "lamina/npy.h"
#include "lamina/report.h"
#include "lamina/report_table.h"
#include "passes/pipeline.h"

namespace lamina::driver {
namespace {

namespace fs = std::filesystem;

struct LoadedFile {
  std::string name;
  std::string folder;  // subfolder of --in and --out: one per file if several files are replayed
  Graph graph;
};

// All files are loaded before the first one runs, so that bad input is reported before anything is written.
std::vector<LoadedFile> load_all(const ReplayOptions& options) {
  std::vector<LoadedFile> files;
  std::set<std::string> folders;
  for (const std::string& name : options.files) {
    const std::string stem = fs::path(name).stem().string();
    const std::string folder = options.files.size() > 1 ? stem : "";
    const bool uses_folders = !options.in_folder.empty() || !options.out_folder.empty();
    if (uses_folders && !folders.insert(stem).second)
      throw Error(Status::invalid_arguments,
                  join(name, ": two files are called ", stem, ", allowed with --in or --out are different names"));
    files.push_back({name, folder, load_graph(name, options.overrides)});
  }
  return files;
}

// A dangling link counts as present: reading it reports an error, instead of silently using generated data.
bool is_there(const std::string& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() != fs::file_type::not_found;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class FileReplay {
 public:
  FileReplay(const ReplayOptions& options, const LoadedFile& file, OutputFiles& output_files, Bar& bar)
      : options_(options),
        file_(file),
        output_files_(output_files),
        bar_(bar),
        backend_(backend_of(file.graph, file.name, options.engine, options.device)) {}

  FileReport run() {
    report_.file = file_.name;
    report_.engine = backend_.name();
    report_.op_count = file_.graph.ops().size();
    report_.warnings = file_.graph.warnings();
    const auto policy = options_.policy == "debug" ? PartitionPolicy::debug : PartitionPolicy::fusion;
    partitions_ = partition_graph(file_.graph, policy, backend_);
    for (const Partition& partition : partitions_) report_.partitions.push_back(describe(partition));
    choose_backends();
    if (!report_.good()) return std::move(report_);
    prepare_inputs();
    plan_releases();
    for (size_t i = 0; i < partitions_.size(); ++i)
      if (!run_partition(i)) return std::move(report_);
    if (!options_.out_folder.empty()) write_outputs();
    return std::move(report_);
  }

 private:
  static PartitionReport describe(const Partition& partition) {
    PartitionReport report;
    report.id = partition.id;
    report.ops = op_ids(partition);
    for (const int position : partition.ops)
      report.kinds.emplace_back(name_of(partition.graph->ops()[static_cast<size_t>(position)].kind));
    return report;
  }

  // A partition that the engine does not support runs on the reference backend if that is allowed, else it is reported as a
  // problem.
  void choose_backends() {
    for (size_t i = 0; i < partitions_.size(); ++i) {
      const Partition& partition = partitions_[i];
      chosen_.push_back(&backend_);
      if (partition.supported) continue;
      const Op& op = partition.graph->ops()[static_cast<size_t>(partition.ops.front())];
      const bool fallback = options_.allow_reference && reference_backend().why_unsupported(*partition.graph, op).empty();
      if (fallback) {
        chosen_.back() = &reference_backend();
      } else {
        fail_partition(i, backend_.why_unsupported(*partition.graph, op));
      }
    }
  }

  void fail_partition(size_t index, const std::string& reason) {
    const Partition& partition = partitions_[index];
    report_.partitions[index].problem = join(front_op(partition), ": ", reason);
    bar_.clear();
    std::cerr << place_of(file_.name, partition) << "not supported by the " << chosen_[index]->name() << " backend: " << reason
              << '\n';
  }

  static std::string front_op(const Partition& partition) {
    return lamina::describe(partition.graph->ops()[static_cast<size_t>(partition.ops.front())]);
  }

  // Messages about a partition start with its first op, so an error about this op need not repeat its name.
  static std::string reason_of(const Error& error, const Partition& partition) {
    const bool is_named = error.place() && lamina::describe(*error.place()) == front_op(partition);
    return is_named ? std::string(error.message()) : error.what();
  }

  // ---- tensors

  std::string npy_path(const std::string& folder, uint64_t id) const {
    return (fs::path(folder) / file_.folder / join(id, ".npy")).string();
  }

  void prepare_inputs() {
    std::vector<ValueIndex> missing;
    for (const ValueIndex input : file_.graph.inputs()) {
      const LogicalTensor& tensor = file_.graph.tensor(input);
      const auto buffer = std::make_shared<Buffer>(tensor);
      buffers_[tensor.id] = buffer;
      const std::string path = npy_path(options_.in_folder, tensor.id);
      if (!options_.in_folder.empty() && is_there(path)) {
        read_npy(path, *buffer);
      } else {
        missing.push_back(input);
      }
    }
    fill_inputs(file_.graph, missing, options_.seed, buffers_);
  }

  // Determines the last partition that uses each tensor; tensors written to --out are kept to the end.
  void plan_releases() {
    for (size_t i = 0; i < partitions_.size(); ++i)
      for (const auto& ports : {partitions_[i].inputs, partitions_[i].outputs})
        for (const ValueIndex port : ports) last_use_[partitions_[i].graph->tensor(port).id] = i;
    if (options_.out_folder.empty()) return;
    for (const ValueIndex output : file_.graph.outputs()) last_use_[file_.graph.tensor(output).id] = partitions_.size();
  }
  void release_after(size_t partition) {
    std::erase_if(buffers_, [&](const auto& entry) {
      const auto last = last_use_.find(entry.first);
      return last != last_use_.end() && last->second == partition;
    });
  }

  void write_outputs() {
    for (const ValueIndex output : file_.graph.outputs()) {
      const uint64_t id = file_.graph.tensor(output).id;
      const auto found = buffers_.find(id);
      LAMINA_CHECK(found != buffers_.end(), join("graph output ", id, " is produced by no partition"));
      output_files_.add(npy_path(options_.out_folder, id), [&](std::ostream& out) { write_npy(out, *found->second); });
    }
  }

  // ---- one partition

  void show(size_t index, const char* what) { bar_.show(join("partition ", index + 1, '/', partitions_.size(), ", ", what)); }

  bool run_partition(size_t index) {
    PartitionReport& report = report_.partitions[index];
    try {
      show(index, "compiling");
      CompileBar progress(bar_, partitions_.size());
      progress.next(index);
      compiler::CompileRecord record;
      const auto compiled =
          compiler::compile_partition(partitions_[index], *chosen_[index], options_.check ? &record : nullptr);
      take_info(*compiled, report);
      if (!options_.source_folder.empty()) write_sources(index, compiled->info());
      if (options_.bench || !options_.report_file.empty())
        report.cached_compile_ms = time_of_compiling_again(*compiled, partitions_[index], *chosen_[index]);
      run_compiled(index, *compiled, record.subgraph, report);
    } catch (const Error& error) {
      fail_partition(index, reason_of(error, partitions_[index]));
      return false;
    }
    release_after(index);
    return true;
  }

  // The time of compiling an already compiled partition again, as frameworks do.
  static double time_of_compiling_again(const compiler::CompiledPartition& compiled, const Partition& partition,
                                        const Backend& backend) {
    return compiler::compile_partition(partition, compiled.inputs(), compiled.outputs(), backend)->compile_ms();
  }

  static void take_info(const compiler::CompiledPartition& compiled, PartitionReport& report) {
    const ExecutableInfo& info = compiled.info();
    report.backend = info.backend;
    report.kernels = info.kernels;
    report.schedules = info.schedules;
    report.required_bytes = info.required_bytes;
    report.moved_bytes = info.moved_bytes;
    report.arena_bytes = info.arena_bytes;
    report.workspace_bytes = info.workspace_bytes;
    report.compile_ms = compiled.compile_ms();
  }

  // DIR[/FILE]/PARTITION-STEP-SYMBOL.cl
  void write_sources(size_t index, const ExecutableInfo& info) {
    for (size_t i = 0; i < info.sources.size(); ++i) {
      const auto& [name, text] = info.sources[i];
      const fs::path path = fs::path(options_.source_folder) / file_.folder / join(index, "-", i, "-", name);
      output_files_.add(path.string(), [&](std::ostream& out) { out << text; });
    }
  }

  void run_compiled(size_t index, const compiler::CompiledPartition& compiled, const Subgraph& subgraph,
                    PartitionReport& report) {
    std::vector<std::shared_ptr<Buffer>> sources, results;
    for (const LogicalTensor& tensor : compiled.inputs()) sources.push_back(buffers_.at(tensor.id));
    for (const LogicalTensor& tensor : compiled.outputs()) {
      results.push_back(std::make_shared<Buffer>(tensor));
      buffers_[tensor.id] = results.back();
    }
    show(index, "executing");
    const DeviceTensors tensors(*chosen_[index], sources, results);
    const Execution execution(compiled, tensors, options_.threads);
    execution.run();
    tensors.copy_outputs();
    if (options_.check) {
      show(index, "checking");
      std::vector<const void*> inputs;
      for (const auto& source : sources) inputs.push_back(source->data());
      report.check = check_partition(subgraph, inputs, results);
    }
    if (!options_.bench) return;
    show(index, "timing");
    report.median_us = time(execution, tensors);
  }

  double time(const Execution& execution, const DeviceTensors& tensors) const {
    using Clock = std::chrono::steady_clock;
    constexpr size_t kMaxRuns = 100'000;
    const double seconds = options_.repeat_seconds / static_cast<double>(partitions_.size());
    std::vector<double> runs;
    const Clock::time_point start = Clock::now();
    do {
      const Clock::time_point before = Clock::now();
      execution.run();
      tensors.wait();
      runs.push_back(std::chrono::duration<double, std::micro>(Clock::now() - before).count());
    } while (std::chrono::duration<double>(Clock::now() - start).count() < seconds && runs.size() < kMaxRuns);
    return median(std::move(runs));
  }

  const ReplayOptions& options_;
  const LoadedFile& file_;
  OutputFiles& output_files_;
  Bar& bar_;
  const Backend& backend_;
  std::vector<Partition> partitions_;
  std::vector<const Backend*> chosen_;  // the backend of each partition
  FileReport report_;
  Buffers buffers_;
  std::map<uint64_t, size_t> last_use_;
};

void print_warnings(const std::vector<FileReport>& reports) {
  for (const FileReport& report : reports)
    for (const std::string& warning : report.warnings) std::cerr << report.file << ": warning: " << warning << '\n';
}

void print_summary(const std::vector<FileReport>& reports) {
  if (reports.size() < 2) return;
  std::map<std::string, size_t> counts;
  for (const FileReport& report : reports) ++counts[report.verdict()];
  std::cout << reports.size() << " files:";
  for (const auto& [verdict, count] : counts) std::cout << ' ' << count << ' ' << verdict;
  std::cout << '\n';
}

}  // namespace

int replay(const ReplayOptions& options) {
  backend_for(options.engine, options.device);  // reports a missing engine before anything is read
  if (!options.in_folder.empty() && !is_directory(options.in_folder))
    throw Error(Status::invalid_arguments, join("--in ", options.in_folder, ": is not a directory"));
  const std::vector<LoadedFile> files = load_all(options);
  if (options.threads > 0) omp_set_num_threads(options.threads);

  OutputFiles output_files;
  Bar bar(files.size());
  std::vector<FileReport> reports;
  for (const LoadedFile& file : files) {
    bar.next_file(file.name);
    try {
      reports.push_back(FileReplay(options, file, output_files, bar).run());
    } catch (const Error& error) {
      throw error.in_file(file.name);
    }
  }
  bar.clear();
  if (!options.report_file.empty())
    output_files.add(options.report_file, [&](std::ostream& out) {
      write_report(out, reports, {engines_of(reports), options.policy, options.threads, options.seed});
    });
  output_files.commit();
  print_warnings(reports);
  print_table(std::cout, reports, options.wide);
  print_summary(reports);
  return std::all_of(reports.begin(), reports.end(), [](const FileReport& report) { return report.good(); }) ? 0 : 1;
}

}  // namespace lamina::driver
