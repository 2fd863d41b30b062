// The command line of `lamina`. Exit codes: 0 success; 1 a check failed or a partition is not supported; 2 bad input or
// usage.
#include <omp.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "backends/exported_model.h"
#include "interface/status.h"
#include "lamina/command_texts.h"
#include "lamina/escaped.h"
#include "lamina/explain.h"
#include "lamina/export.h"
#include "lamina/files.h"
#include "lamina/help_format.h"
#include "lamina/lines.h"
#include "lamina/load.h"
#include "lamina/ops.h"
#include "lamina/overrides.h"
#include "lamina/profile.h"
#include "lamina/replay.h"
#include "lamina/show.h"
#include "lamina/tune.h"
#include "lamina/version.h"

namespace {

using lamina::driver::ExplainOptions;
using lamina::driver::ExportCommand;
using lamina::driver::Overrides;
using lamina::driver::ProfileOptions;
using lamina::driver::ReplayOptions;
using lamina::driver::ShowOptions;
using lamina::driver::TuneOptions;

constexpr int kFailed = 1;
constexpr int kBadInput = 2;
constexpr int kMaxThreads = 4096;

// Unlike CLI::Range, rejects NaN, which compares neither below nor above the bounds.
CLI::Validator in_range(double least, double most) {
  const std::string range = lamina::join(least, " to ", most);
  const auto check = [=](std::string& text) {
    double value = 0;
    const bool good = CLI::detail::lexical_cast(text, value) && value >= least && value <= most;
    return good ? std::string() : lamina::join("is ", text, ", allowed is ", range);
  };
  return {check, range};
}

// CLI11 accepts a negative number for an unsigned option, and reads an empty text as 0.
std::string why_no_seed(const std::string& text) {
  uint64_t value = 0;
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return digits && CLI::detail::lexical_cast(text, value) ? "" : "is \"" + text + "\", allowed is 0 to 18446744073709551615";
}

void add_overrides(CLI::App& command, Overrides& given) {
  command.add_option("--set-shape", given.shapes, "shapes of graph inputs: ID:4x8,ID:16 (ID: alone is a scalar)")
      ->allow_extra_args(false);
  command.add_option("--set-attr", given.attributes, "attributes: OP:NAME=VALUE,... (OP an id or a name; lists as 1x2x3)")
      ->allow_extra_args(false);
  command.add_option("--set-dtype", given.dtypes, "types: ID:bf16,... or all:bf16 (norms keep f32 gamma, beta, statistics)")
      ->allow_extra_args(false);
}

Overrides split(const Overrides& given) {
  using lamina::driver::split_at_commas;
  return {split_at_commas(given.shapes), split_at_commas(given.attributes), split_at_commas(given.dtypes)};
}

void add_engine(CLI::App& command, std::string& engine, std::string& device, std::string& policy) {
  command
      .add_option("--engine", engine,
                  "cpu, gpu or reference; by default the file's engine_kind, or the GPU that --device names")
      ->check(CLI::IsMember(lamina::driver::engine_names()));
  command.add_option("--device", device,
                     "which GPU: cuda, opencl, or one of them with a number, as in cuda:1; by default the first");
  command.add_option("--policy", policy, "fusion, or debug: one op a partition")->check(CLI::IsMember({"fusion", "debug"}));
}

void add_replay(CLI::App& app, ReplayOptions& options) {
  CLI::App& command = *app.add_subcommand("replay", "run graph dumps; optionally check, time and write the results");
  command.add_option("FILE", options.files, "graph dumps (JSON)")->required();
  add_engine(command, options.engine, options.device, options.policy);
  command.add_flag("--check", options.check, "compare every output with the reference engine");
  command.add_flag("--bench", options.bench, "time every partition");
  command.add_flag("--wide", options.wide, "all columns, whole names and details, in lines as long as they need");
  command.add_option("--in", options.in_folder, "read ID.npy for graph inputs (DIR/NAME/ID.npy with several files)");
  command.add_option("--out", options.out_folder, "write ID.npy for graph outputs (DIR/NAME/ID.npy with several files)");
  command.add_option("--report", options.report_file, "write the results as JSON");
  command.add_option("--source", options.source_folder, "write the source of every generated GPU kernel");
  command.add_option("--threads", options.threads, "number of threads; 0: the default number")
      ->check(CLI::Range(0, kMaxThreads));
  command.add_option("--seed", options.seed, "seed of the data of inputs without a file in --in")
      ->check(CLI::Validator([](std::string& text) { return why_no_seed(text); }, ""));
  command.add_option("--repeat", options.repeat_seconds, "seconds to repeat for --bench")->check(in_range(0, 3600));
  command.add_flag("--allow-reference", options.allow_reference, "run unsupported partitions on the reference engine");
  add_overrides(command, options.overrides);
}

void add_profile(CLI::App& app, ProfileOptions& options) {
  CLI::App& command =
      *app.add_subcommand("profile", "time each step, and compare it with the bandwidth and the arithmetic of the machine");
  command.add_option("FILE", options.file, "graph dump (JSON)")->required();
  add_engine(command, options.engine, options.device, options.policy);
  command.add_option("--json", options.json_file, "write the profile as JSON");
  command.add_option("--trace", options.trace_file, "write all executions in Chrome's trace format, which Perfetto opens");
  command.add_option("--threads", options.threads, "number of threads; 0: the default number")
      ->check(CLI::Range(0, kMaxThreads));
  command.add_option("--seed", options.seed, "seed of the data of inputs")
      ->check(CLI::Validator([](std::string& text) { return why_no_seed(text); }, ""));
  command.add_option("--repeat", options.repeat_seconds, "seconds to repeat, 1 by default")->check(in_range(0, 3600));
  add_overrides(command, options.overrides);
}

void add_explain(CLI::App& app, ExplainOptions& options) {
  CLI::App& command = *app.add_subcommand("explain", "each op: its partition, its kernel, and why it is fused or not");
  command.add_option("FILE", options.file, "graph dump (JSON)")->required();
  command.add_flag("-v,--kernels", options.kernel_texts, "print the kernels and their loops too");
  add_engine(command, options.engine, options.device, options.policy);
  add_overrides(command, options.overrides);
}

void add_show(CLI::App& app, ShowOptions& options) {
  CLI::App& command =
      *app.add_subcommand("show", "draw graphs: partitions, kernels and tiles, and the times of a report or a profile");
  command.add_option("FILE", options.files, "graph dumps (JSON)")->required();
  command.add_option("-o,--out", options.out,
                     "the picture: NAME.html, NAME.dot, or NAME.svg where Graphviz' dot is found; or a folder for NAME.html of "
                     "each file, by default the working directory");
  command.add_option(
      "--report", options.report,
      "the JSON of `lamina replay --bench --report`: partitions' times; or of `lamina profile --json`: also steps' times");
  command.add_flag("!--no-compile", options.compile, "omit kernels, schedules and tiles, which need compilation");
  add_engine(command, options.choice.engine, options.choice.device, options.choice.policy);
  add_overrides(command, options.choice.overrides);
}

void add_tune(CLI::App& app, TuneOptions& options) {
  CLI::App& command =
      *app.add_subcommand("tune", "time kernels under several schedules; keep the fastest in LAMINA_CACHE_DIR for later runs");
  command.add_option("FILE", options.files, "graph dumps (JSON)")->required();
  add_engine(command, options.engine, options.device, options.policy);
  command.add_option("--budget", options.milliseconds, "milliseconds per kernel, 200 by default")->check(in_range(1, 3600'000));
  command.add_flag("--again", options.again, "also time kernels with a stored schedule");
  command.add_option("--threads", options.threads, "number of threads; 0: the default number")
      ->check(CLI::Range(0, kMaxThreads));
  add_overrides(command, options.overrides);
}

void add_export(CLI::App& app, ExportCommand& command) {
  CLI::App& subcommand = *app.add_subcommand("export", "write a graph, its weights and its code as one file for the runtime");
  subcommand.add_option("FILE", command.file, "graph dump (JSON)")->required();
  subcommand.add_option("-o,--out", command.out, "the file: NAME.lamina")->required();
  subcommand
      .add_option("--isa", command.isas,
                  "instruction sets, the best first, separated by commas; by default the best of this machine")
      ->check(CLI::IsMember(lamina::exported_isas()))
      ->delimiter(',');
  subcommand
      .add_option("--shapes", command.shapes,
                  "shapes of inputs for which the model runs: ID:1..8x64,ID:1..8, ranges vary together; may be repeated")
      ->allow_extra_args(false);
  subcommand.add_option("--weights", command.weights_folder, "read ID.npy for graph inputs that become part of the file");
  subcommand.add_option("--threads", command.threads, "the most threads that the model uses, 16 by default")
      ->check(CLI::Range(1, kMaxThreads));
  subcommand.add_flag("--packed", command.packed, "write weights also as they are packed, so that the first run packs none");
  add_overrides(subcommand, command.overrides);
}

void add_completion(CLI::App& app, std::string& what) {
  app.add_subcommand("completion", "print the completion of a shell, or the manual page")
      ->add_option("KIND", what, "bash, zsh, fish, or man")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish", "man"}));
}

void print_completion(const CLI::App& app, const std::string& what) {
  using namespace lamina::driver;
  std::cout << (what == "bash"   ? bash_completion(app)
                : what == "zsh"  ? zsh_completion(app)
                : what == "fish" ? fish_completion(app)
                                 : man_page(app));
}

// A word in the place of a subcommand that is none: CLI11 would only miss a subcommand.
void require_known_subcommand(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || *argv[1] == '-') return;
  std::vector<std::string> names;
  for (const CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return;
  const std::string nearest = lamina::driver::nearest(argv[1], names);
  throw lamina::Error(
      lamina::Status::invalid_arguments,
      lamina::join("lamina: there is no subcommand '", argv[1], "'",
                   nearest.empty() ? "; `lamina --help` lists them" : lamina::join("; did you mean '", nearest, "'?")));
}

int run(int argc, char** argv) {
  CLI::App app("lamina: replay, explain and draw graphs of deep-learning operations", "lamina");
  app.formatter(std::make_shared<lamina::driver::HelpFormatter>());
  app.require_subcommand(1);
  app.set_version_flag("--version", lamina::driver::version_text, "print the versions of lamina and LLVM, and the backends");
  ReplayOptions replay_options;
  ExplainOptions explain_options;
  ShowOptions show_options;
  TuneOptions tune_options;
  ProfileOptions profile_options;
  std::string kind;
  add_replay(app, replay_options);
  add_explain(app, explain_options);
  add_show(app, show_options);
  add_tune(app, tune_options);
  add_profile(app, profile_options);
  ExportCommand export_command;
  add_export(app, export_command);
  app.add_subcommand("ops", "the op schemas")->add_option("KIND", kind, "an op kind; prints its whole schema");
  std::string completion;
  add_completion(app, completion);
  require_known_subcommand(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadInput;
  }
  replay_options.overrides = split(replay_options.overrides);
  explain_options.overrides = split(explain_options.overrides);
  show_options.choice.overrides = split(show_options.choice.overrides);
  tune_options.overrides = split(tune_options.overrides);
  profile_options.overrides = split(profile_options.overrides);
  if (app.got_subcommand("replay")) return lamina::driver::replay(replay_options);
  if (app.got_subcommand("explain")) return lamina::driver::explain(explain_options);
  if (app.got_subcommand("show")) return lamina::driver::show(show_options);
  if (app.got_subcommand("tune")) return lamina::driver::tune(tune_options);
  export_command.overrides = split(export_command.overrides);
  if (app.got_subcommand("export")) return lamina::driver::export_graph(export_command);
  if (app.got_subcommand("profile")) return lamina::driver::profile(profile_options);
  if (app.got_subcommand("completion")) {
    print_completion(app, completion);
    return 0;
  }
  lamina::driver::print_ops(std::cout, kind);
  return 0;
}

// The OpenMP runtime terminates or crashes the process if it cannot start the number of threads that the environment sets.
void require_possible_thread_count() {
  if (const int threads = omp_get_max_threads(); threads > kMaxThreads)
    throw lamina::Error(lamina::Status::invalid_arguments,
                        lamina::join("OMP_NUM_THREADS is ", threads, ", allowed is 1 to ", kMaxThreads));
}

}  // namespace

int main(int argc, char** argv) {
  const lamina::driver::EscapedStream out(std::cout), err(std::cerr);
  lamina::driver::handle_signals_of_files();
  try {
    require_possible_thread_count();
    const int code = run(argc, argv);
    if (!std::cout.flush()) throw lamina::Error(lamina::Status::invalid_arguments, "lamina: standard output cannot be written");
    return code;
  } catch (const lamina::Error& error) {
    std::cerr << error.what() << '\n';
    const bool own_fault = error.status() == lamina::Status::runtime_error || error.status() == lamina::Status::out_of_memory;
    return own_fault ? kFailed : kBadInput;
  } catch (const std::bad_alloc&) {
    std::cerr << "lamina: there is not enough memory\n";
    return kFailed;
  } catch (const std::exception& error) {
    std::cerr << "lamina: " << error.what() << '\n';
    return kBadInput;
  }
}
