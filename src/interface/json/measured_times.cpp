#include "interface/json/measured_times.h"

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "interface/status.h"

namespace lamina {
namespace {

using Json = nlohmann::ordered_json;

// A text under a name, which starts all sentences about it.
class Source {
 public:
  Source(std::string_view text, std::string name)
      : name_(std::move(name)), json_(Json::parse(text, nullptr, /*allow_exceptions=*/false)) {
    if (json_.is_discarded()) fail("is not JSON");
    is_profile_ = json_.is_object() && json_.contains("machine");
    if (!is_profile_ && !(json_.is_object() && json_.contains("files")))
      fail(
          "is neither a report of `lamina replay --report`, which has \"files\", nor a profile of `lamina profile --json`, "
          "which has \"machine\"");
  }

  const Json& json() const { return json_; }
  bool is_profile() const { return is_profile_; }
  const char* kind() const { return is_profile_ ? "a profile" : "a report"; }

  [[noreturn]] void fail(const std::string& what) const { throw Error(Status::invalid_arguments, join(name_, ": ", what)); }

  const Json& member(const Json& object, const char* key) const {
    if (!object.is_object() || !object.contains(key)) fail(join("is ", kind(), " that lacks \"", key, "\""));
    return object[key];
  }
  const Json& list(const Json& object, const char* key) const {
    const Json& found = member(object, key);
    if (!found.is_array()) fail(join("is ", kind(), " whose \"", key, "\" is not a list"));
    return found;
  }
  std::string text(const Json& object, const char* key) const {
    const Json& found = member(object, key);
    if (!found.is_string()) fail(join("is ", kind(), " whose \"", key, "\" is not a string"));
    return found.get<std::string>();
  }
  double number(const Json& object, const char* key) const {
    const Json& found = member(object, key);
    if (!found.is_number()) fail(join("is ", kind(), " whose \"", key, "\" is not a number"));
    return found.get<double>();
  }

 private:
  std::string name_;
  Json json_;
  bool is_profile_ = false;
};

// ---- reports

const Json& report_of_file(const Source& report, const std::string& file) {
  const Json& files = report.json()["files"];
  if (!files.is_array() || files.empty()) report.fail("is a report without files");
  if (files.size() == 1) return files.front();
  std::string listed;
  for (const Json& entry : files) {
    const Json& given = report.member(entry, "file");
    if (given == file) return entry;
    listed += (listed.empty() ? "" : ", ") + given.dump();
  }
  report.fail(join("is a report of several files, but not of \"", file, "\", allowed is one of ", listed));
}

std::optional<double> number(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

PartitionTimes times_of(const Json& partition) {
  PartitionTimes times{number(partition, "median_us"), number(partition, "gb_per_s"), number(partition, "compile_ms"), ""};
  const auto check = partition.find("check");
  if (check != partition.end() && check->is_object()) times.verdict = check->value("good", false) ? "ok" : "wrong";
  const auto problem = partition.find("problem");
  if (problem != partition.end() && problem->is_string()) times.verdict = problem->get<std::string>();
  return times;
}

void add_report(ExplainedGraph& graph, const Source& report, const std::string& file) {
  const Json& partitions = report.list(report_of_file(report, file), "partitions");
  if (partitions.size() != graph.partitions.size())
    report.fail(join("is a report of ", partitions.size(), " partitions, the graph has ", graph.partitions.size(),
                     ": allowed is one of the same graph, engine and policy"));
  for (size_t i = 0; i < graph.partitions.size(); ++i) {
    if (report.member(partitions[i], "ops") != Json(graph.partitions[i].user_ops))
      report.fail(join("its partition ", i,
                       " has other ops than the graph's: allowed is a report of the same graph, engine and policy"));
    graph.partitions[i].times = times_of(partitions[i]);
  }
}

// ---- profiles

constexpr char kAllowed[] = ": allowed is a profile of the same graph, with the same engine, policy and overrides";

ProfiledTimes times_of(const Source& profile, const Json& entry) {
  return {profile.number(entry, "us"), profile.number(entry, "idle_us"), profile.number(entry, "bound_us"), ""};
}

// A library step is told by its op: the rest of the name is how it runs, which depends on the threads.
std::string identity_of(const std::string& step) { return step.substr(0, step.find(": ")); }

// "" if these are the steps of the partition; else why not.
std::string other_steps(const Source& profile, const Json& steps, const ExplainedPartition& partition) {
  if (partition.steps.empty()) return "";  // nothing was compiled, or the backend measures the whole partition
  if (steps.size() != partition.steps.size())
    return join("has ", steps.size(), steps.size() == 1 ? " step, the graph's has " : " steps, the graph's has ",
                partition.steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string given = identity_of(profile.text(steps[i], "name")), own = identity_of(partition.steps[i].name);
    if (given != own) return join("has ", given, " as its step ", i, ", the graph's has ", own);
  }
  return "";
}

// A profile may have several graphs, whose partitions may have equal labels.
const Json& profile_of(const Source& profile, const Json& partitions, const ExplainedPartition& partition) {
  std::string why = "is a profile without ";
  for (const Json& entry : partitions) {
    if (profile.text(entry, "label") != partition.label) continue;
    const std::string difference = other_steps(profile, profile.list(entry, "steps"), partition);
    if (difference.empty()) return entry;
    why = difference + ", in ";
  }
  profile.fail(join(why, partition.label, kAllowed));
}

void add_profile(ExplainedGraph& graph, const Source& profile) {
  const Json& partitions = profile.list(profile.json(), "partitions");
  for (ExplainedPartition& partition : graph.partitions) {
    if (!partition.supported) continue;
    const Json& entry = profile_of(profile, partitions, partition);
    partition.times = PartitionTimes{.profiled = times_of(profile, entry)};
    const Json& steps = entry["steps"];
    for (size_t i = 0; i < partition.steps.size(); ++i) {
      partition.steps[i].times = times_of(profile, steps[i]);
      partition.steps[i].times->bound = profile.text(steps[i], "bound");
    }
  }
}

}  // namespace

void add_measured_times(ExplainedGraph& graph, std::string_view text, const std::string& name, const std::string& file) {
  const Source source(text, name);
  if (source.is_profile())
    add_profile(graph, source);
  else
    add_report(graph, source, file);
}

}  // namespace lamina
