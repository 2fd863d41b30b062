#include "lamina/report.h"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <set>

#include "interface/number_text.h"

namespace lamina::driver {
namespace {

std::optional<double> bandwidth(int64_t bytes, std::optional<double> microseconds) {
  if (!microseconds || *microseconds <= 0) return std::nullopt;
  return static_cast<double>(bytes) / (*microseconds * 1e3);
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (byte < 0x20) {
      constexpr char kHex[] = "0123456789abcdef";
      result += {'\\', 'u', '0', '0', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      result += c;
    }
  }
  return result + '"';
}

// JSON has no infinities and NaN: they are written as strings.
std::string number(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "\"nan\"" : (value < 0 ? "\"-inf\"" : "\"inf\"");
  return general_text(value, 9);
}
std::string number(std::optional<double> value) { return value ? number(*value) : "null"; }

template <typename Items, typename Text>
std::string list(const Items& items, const Text& text) {
  std::string result = "[";
  for (const auto& item : items) result += (result.size() > 1 ? ", " : "") + text(item);
  return result + ']';
}
template <typename T>
std::string number_list(const std::vector<T>& values) {
  return list(values, [](const T& value) { return std::to_string(value); });
}

// Writes the members of an object, one per line.
class Object {
 public:
  explicit Object(std::string indent) : indent_(std::move(indent)) {}
  Object& member(const std::string& name, const std::string& value) {
    text_ += (text_.empty() ? "" : ",\n") + indent_ + "  " + quoted(name) + ": " + value;
    return *this;
  }
  std::string text() const { return "{\n" + text_ + '\n' + indent_ + '}'; }

 private:
  std::string indent_, text_;
};

std::string check_json(const std::optional<CheckResult>& check, const std::string& indent) {
  if (!check) return "null";
  const WorstElement& worst = check->worst;
  Object object(indent);
  object.member("good", check->good ? "true" : "false")
      .member("elements", std::to_string(check->elements))
      .member("outside_tolerance", std::to_string(check->failed))
      .member("forgiven", std::to_string(check->forgiven))
      .member("not_judged", std::to_string(check->left_out));
  if (check->elements > 0)
    object.member("worst_tensor", std::to_string(worst.tensor_id))
        .member("worst_at", number_list(worst.at))
        .member("worst_given", number(worst.given))
        .member("worst_expected", number(worst.expected))
        .member("worst_error", number(worst.error))
        .member("worst_of_allowed", number(worst.of_allowed));
  return object.text();
}

std::string partition_json(const PartitionReport& partition, const std::string& indent) {
  Object object(indent);
  object.member("id", std::to_string(partition.id))
      .member("ops", number_list(partition.ops))
      .member("kinds", list(partition.kinds, quoted))
      .member("supported", partition.problem.empty() ? "true" : "false")
      .member("problem", partition.problem.empty() ? "null" : quoted(partition.problem))
      .member("backend", partition.backend.empty() ? "null" : quoted(partition.backend))
      .member("kernels", list(partition.kernels, quoted))
      .member("schedules", list(partition.schedules, quoted))
      .member("required_bytes", std::to_string(partition.required_bytes))
      .member("moved_bytes", std::to_string(partition.moved_bytes))
      .member("arena_bytes", std::to_string(partition.arena_bytes))
      .member("workspace_bytes", std::to_string(partition.workspace_bytes))
      .member("peak_bytes", std::to_string(partition.peak_bytes()))
      .member("compile_ms", number(partition.compile_ms))
      .member("cached_compile_ms", number(partition.cached_compile_ms))
      .member("median_us", number(partition.median_us))
      .member("gb_per_s", number(partition.gigabytes_per_second()))
      .member("check", check_json(partition.check, indent + "  "));
  return object.text();
}

template <typename Items, typename Text>
std::string objects(const Items& items, const std::string& indent, const Text& text) {
  std::string result;
  for (const auto& item : items) result += (result.empty() ? "\n" : ",\n") + indent + "  " + text(item, indent + "  ");
  return result.empty() ? "[]" : '[' + result + '\n' + indent + ']';
}

std::string file_json(const FileReport& file, const std::string& indent) {
  Object object(indent);
  object.member("file", quoted(file.file))
      .member("engine", quoted(file.engine))
      .member("verdict", quoted(file.verdict()))
      .member("ops", std::to_string(file.op_count))
      .member("warnings", list(file.warnings, quoted))
      .member("compile_ms", number(file.compile_ms()))
      .member("cached_compile_ms", number(file.cached_compile_ms()))
      .member("median_us", number(file.median_us()))
      .member("gb_per_s", number(file.gigabytes_per_second()))
      .member("partitions", objects(file.partitions, indent + "  ", partition_json));
  return object.text();
}

// The sum over all partitions; nullopt if one has no value.
template <typename Get>
std::optional<double> sum_of(const std::vector<PartitionReport>& partitions, const Get& get) {
  double sum = 0;
  for (const PartitionReport& partition : partitions) {
    const std::optional<double> value = get(partition);
    if (!value) return std::nullopt;
    sum += *value;
  }
  return partitions.empty() ? std::nullopt : std::optional(sum);
}

}  // namespace

std::optional<double> PartitionReport::gigabytes_per_second() const { return bandwidth(required_bytes, median_us); }

bool FileReport::good() const {
  return std::all_of(partitions.begin(), partitions.end(), [](const PartitionReport& partition) {
    return partition.problem.empty() && (!partition.check || partition.check->good);
  });
}

std::string FileReport::verdict() const {
  bool wrong = false;
  bool checked = !partitions.empty();
  for (const PartitionReport& partition : partitions) {
    if (!partition.problem.empty()) return "unsupported";
    checked = checked && partition.check.has_value();
    wrong = wrong || (partition.check && !partition.check->good);
  }
  if (wrong) return "wrong";
  return checked ? "ok" : "ran";
}

size_t FileReport::kernel_count() const {
  size_t count = 0;
  for (const PartitionReport& partition : partitions) count += partition.kernels.size();
  return count;
}

double FileReport::compile_ms() const {
  double sum = 0;
  for (const PartitionReport& partition : partitions) sum += partition.compile_ms;
  return sum;
}

std::optional<double> FileReport::cached_compile_ms() const {
  return sum_of(partitions, [](const PartitionReport& partition) { return partition.cached_compile_ms; });
}

std::optional<double> FileReport::median_us() const {
  return sum_of(partitions, [](const PartitionReport& partition) { return partition.median_us; });
}

std::optional<double> FileReport::gigabytes_per_second() const {
  int64_t bytes = 0;
  for (const PartitionReport& partition : partitions) bytes += partition.required_bytes;
  return bandwidth(bytes, median_us());
}

std::optional<CheckResult> FileReport::check() const {
  std::optional<CheckResult> total;
  for (const PartitionReport& partition : partitions) {
    if (!partition.check) continue;
    if (!total) total.emplace();
    merge(*total, *partition.check);
  }
  return total;
}

std::string engines_of(const std::vector<FileReport>& files) {
  std::set<std::string> names;
  for (const FileReport& file : files) names.insert(file.engine);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

void write_report(std::ostream& out, const std::vector<FileReport>& files, const RunSettings& settings) {
  Object report("");
  report.member("schema", std::to_string(kReportSchema))
      .member("engine", quoted(settings.engine))
      .member("policy", quoted(settings.policy))
      .member("threads", std::to_string(settings.threads))
      .member("seed", std::to_string(settings.seed))
      .member("files", objects(files, "  ", file_json));
  out << report.text() << '\n';
}

}  // namespace lamina::driver
