#include "corpus_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "machine.h"

namespace bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kBusy = 0.03;  // with more time taken by other programs, figures are unreliable

std::string stem_of(const FileResult& result) { return std::filesystem::path(result.file).stem().string(); }

// "1234.5", with a star for a single run; "-" if nothing was measured.
std::string microseconds(const Figures& figures) {
  if (figures.seconds == 0) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f%s", figures.seconds * 1e6, figures.is_once ? "*" : "");
  return text;
}

std::string times(double ratio) {
  if (ratio <= 0) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.2fx", ratio);
  return text;
}

std::string remarks(const FileResult& result) {
  std::string text = result.remark.empty() ? "" : ", " + result.remark;
  if (result.is_wrong) text += ", RESULTS DIFFER";
  if (result.others > kBusy) text += ", machine busy";
  return text;
}

// The ratios of one data type.
struct Sum {
  size_t count = 0;
  double mean = 0;  // geometric
  const FileResult* least = nullptr;
};

Sum sum_of(const std::vector<FileResult>& results, TypeClass type) {
  Sum sum;
  double logarithms = 0;
  for (const FileResult& each : results) {
    if (each.type != type || !each.refusal.empty() || each.ratio() <= 0) continue;
    ++sum.count;
    logarithms += std::log(each.ratio());
    if (sum.least == nullptr || each.ratio() < sum.least->ratio()) sum.least = &each;
  }
  if (sum.count > 0) sum.mean = std::exp(logarithms / static_cast<double>(sum.count));
  return sum;
}

void print_means(const std::vector<FileResult>& results) {
  std::printf("\n%-5s %6s %8s %8s\n", "class", "files", "mean", "least");
  for (const TypeClass type : kTypeClasses) {
    const Sum sum = sum_of(results, type);
    if (sum.count == 0) continue;
    std::printf("%-5s %6zu %8s %8s  %s\n", name_of(type), sum.count, times(sum.mean).c_str(), times(sum.least->ratio()).c_str(),
                stem_of(*sum.least).c_str());
  }
}

void print_refusals(const std::vector<FileResult>& results) {
  const auto count = std::ranges::count_if(results, [](const FileResult& each) { return !each.refusal.empty(); });
  if (count == 0) return;
  std::printf("\nleft out of the means, %td files:\n", count);
  for (const FileResult& each : results) {
    if (!each.refusal.empty())
      std::printf("  %-48s %-5s %s\n", stem_of(each).c_str(), name_of(each.type), each.refusal.c_str());
  }
}

Json json_of(const Figures& figures) {
  return {{"us", figures.seconds * 1e6},
          {"spread", figures.spread},
          {"once", figures.is_once},
          {"partitions", figures.partitions},
          {"compile_ms", figures.compile_ms}};
}

Json json_of(const FileResult& result) {
  return {{"file", result.file},
          {"class", name_of(result.type)},
          {"lamina", json_of(result.lamina)},
          {"onednn", json_of(result.onednn)},
          {"ratio", result.ratio() > 0 ? Json(result.ratio()) : Json(nullptr)},
          {"difference", result.difference < 0 ? Json(nullptr) : Json(result.difference)},
          {"wrong", result.is_wrong},
          {"others", result.others},
          {"remark", result.remark},
          {"refusal", result.refusal}};
}

}  // namespace

const char* name_of(TypeClass type) {
  switch (type) {
    case TypeClass::bf16: return "bf16";
    case TypeClass::f16: return "f16";
    case TypeClass::int8: return "int8";
    default: return "f32";
  }
}

TypeClass class_of(const lamina::GraphDump& dump) {
  const auto has = [&](lamina::DataType type) {
    const auto is = [=](const lamina::LogicalTensor& tensor) { return tensor.dtype == type; };
    return std::ranges::any_of(dump.ops, [&](const lamina::DumpedOp& op) {
      return std::ranges::any_of(op.inputs, is) || std::ranges::any_of(op.outputs, is);
    });
  };
  if (has(lamina::DataType::s8) || has(lamina::DataType::u8)) return TypeClass::int8;
  if (has(lamina::DataType::bf16)) return TypeClass::bf16;
  return has(lamina::DataType::f16) ? TypeClass::f16 : TypeClass::f32;
}

void print_machine() {
  const Json machine = describe_machine();
  const auto text = [&](const char* key) { return machine[key].get<std::string>(); };
  const auto number = [&](const char* key) { return machine[key].get<long>(); };
  const std::string cap = text("isa_cap").empty() ? "" : ", capped to " + text("isa_cap");
  std::printf(
      "%s (family/model/stepping %s), %s%s; %ld CPUs, %ld threads; L1d %ld KiB and L2 %ld KiB a core, last level %ld MiB; %s; "
      "oneDNN %s\n",
      text("cpu").c_str(), text("cpu_model").c_str(), text("vectors").c_str(), cap.c_str(), number("cpus"), number("threads"),
      number("l1d_bytes") >> 10, number("l2_bytes") >> 10, number("last_level_cache_bytes") >> 20, text("compiler").c_str(),
      text("onednn").c_str());
}

void print_head() {
  std::printf("%-48s %-5s %12s %12s %8s %11s %18s  %s\n", "", "", "lamina", "oneDNN", "oneDNN /", "partitions", "compile ms",
              "");
  std::printf("%-48s %-5s %12s %12s %8s %11s %18s  %s\n", "file", "class", "us", "us", "lamina", "each", "each", "difference");
}

void print_row(const FileResult& result) {
  if (!result.refusal.empty()) return;
  const Figures &ours = result.lamina, &theirs = result.onednn;
  std::printf("%-48s %-5s %12s %12s %8s ", stem_of(result).c_str(), name_of(result.type), microseconds(ours).c_str(),
              microseconds(theirs).c_str(), times(result.ratio()).c_str());
  std::printf("%5zu %5zu %9.1f %8.1f  ", ours.partitions, theirs.partitions, ours.compile_ms, theirs.compile_ms);
  std::printf(result.difference < 0 ? "-" : "%.1e", result.difference);
  std::printf("%s\n", remarks(result).c_str());
  std::fflush(stdout);
}

void print_sums(const std::vector<FileResult>& results) {
  const bool has_times = std::ranges::any_of(results, [](const FileResult& each) { return each.ratio() > 0; });
  if (has_times) print_means(results);
  print_refusals(results);
  std::fflush(stdout);
}

Json json_of(const std::vector<FileResult>& results) {
  Json files = Json::array(), classes = Json::array();
  for (const FileResult& each : results) files.push_back(json_of(each));
  for (const TypeClass type : kTypeClasses) {
    const Sum sum = sum_of(results, type);
    if (sum.count == 0) continue;
    classes.push_back({{"class", name_of(type)},
                       {"files", sum.count},
                       {"mean", sum.mean},
                       {"least", sum.least->ratio()},
                       {"least_file", sum.least->file}});
  }
  return {{"machine", describe_machine()}, {"classes", classes}, {"files", files}};
}

}  // namespace bench
