#include "lamina/report_table.h"

#include <algorithm>
#include <optional>
#include <ostream>
#include <string>

#include "interface/number_text.h"
#include "interface/status.h"
#include "lamina/lines.h"

namespace lamina::driver {
namespace {

// A file, or one of its partitions.
struct Row {
  std::string verdict, name, details;
  std::optional<double> of_allowed, compile_ms, cached_ms, median_us, bandwidth;
  std::string engine;
  size_t ops = 0, partitions = 0, kernels = 0;
  bool is_good = true;
};

// A column of the table: its heading, and its text in a row.
struct Column {
  std::string heading;
  std::string (*text)(const Row& row);
  bool is_number = true;
};

std::string fixed(std::optional<double> value, int digits) { return value ? fixed_text(*value, digits) : "-"; }
std::string count(size_t value) { return value == 0 ? "-" : std::to_string(value); }

const Column kVerdict{"verdict", [](const Row& row) { return row.verdict; }, false},
    kAllowed{"of allowed", [](const Row& row) { return row.of_allowed ? share_of_allowed(*row.of_allowed) : "-"; }},
    kEngine{"engine", [](const Row& row) { return row.engine; }, false},
    kOps{"ops", [](const Row& row) { return std::to_string(row.ops); }},
    kPartitions{"partitions", [](const Row& row) { return count(row.partitions); }},
    kKernels{"kernels", [](const Row& row) { return std::to_string(row.kernels); }},
    kCompile{"compile ms", [](const Row& row) { return fixed(row.compile_ms, 2); }},
    kCached{"cached ms", [](const Row& row) { return fixed(row.cached_ms, 4); }},
    kMedian{"median us", [](const Row& row) { return fixed(row.median_us, 1); }},
    kBandwidth{"GB/s", [](const Row& row) { return fixed(row.bandwidth, 2); }};

void judge(Row& row, const std::optional<CheckResult>& check, const std::string& problem) {
  row.is_good = problem.empty() && (!check || check->good);
  row.verdict = !problem.empty() ? "UNSUPPORTED" : !check ? "ran" : check->good ? "ok" : "WRONG";
  row.details = !problem.empty() ? problem : check ? check->text() : "";
  if (check && check->elements > 0) row.of_allowed = check->worst.of_allowed;
}

Row row_of(const FileReport& file) {
  Row row;
  std::string problem;
  bool on_reference = false, elsewhere = false;
  for (const PartitionReport& partition : file.partitions) {
    (partition.backend == "reference" ? on_reference : elsewhere) = true;
    if (problem.empty()) problem = partition.problem;
  }
  judge(row, file.check(), problem);
  if (on_reference && elsewhere) row.details += join(row.details.empty() ? "" : "; ", "partly on the reference backend");
  row.name = file.file, row.engine = file.engine;
  row.ops = file.op_count, row.partitions = file.partitions.size(), row.kernels = file.kernel_count();
  row.compile_ms = file.compile_ms(), row.cached_ms = file.cached_compile_ms();
  row.median_us = file.median_us(), row.bandwidth = file.gigabytes_per_second();
  return row;
}

Row row_of(const PartitionReport& partition) {
  Row row;
  judge(row, partition.check, partition.problem);
  if (partition.backend.empty() && partition.problem.empty()) row.verdict = "not run";
  row.name = join("  ", partition.id, ":");
  for (const std::string& kind : partition.kinds) row.name += (kind == partition.kinds.front() ? " " : " + ") + kind;
  row.engine = partition.backend;
  row.ops = partition.ops.size(), row.kernels = partition.kernels.size();
  row.compile_ms = partition.compile_ms, row.cached_ms = partition.cached_compile_ms;
  row.median_us = partition.median_us, row.bandwidth = partition.gigabytes_per_second();
  return row;
}

std::vector<Row> rows_of(const std::vector<FileReport>& files) {
  std::vector<Row> rows;
  for (const FileReport& file : files) {
    rows.push_back(row_of(file));
    if (file.partitions.size() < 2) continue;
    rows.back().details.clear();  // its partitions have them
    for (const PartitionReport& partition : file.partitions) rows.push_back(row_of(partition));
  }
  return rows;
}

std::vector<Column> columns_of(const std::vector<Row>& rows, bool wide) {
  const auto any = [&](std::optional<double> Row::* value) {
    return std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return (row.*value).has_value(); });
  };
  std::vector<Column> columns{kVerdict};
  if (any(&Row::of_allowed)) columns.push_back(kAllowed);
  if (wide) columns.insert(columns.end(), {kEngine, kOps, kPartitions});
  columns.push_back(kKernels);
  if (wide || !any(&Row::median_us)) columns.push_back(kCompile);
  if (wide && any(&Row::cached_ms)) columns.push_back(kCached);
  if (any(&Row::median_us)) columns.insert(columns.end(), {kMedian, kBandwidth});
  return columns;
}

}  // namespace

void print_table(std::ostream& out, const std::vector<FileReport>& files, bool wide) {
  const std::vector<Row> rows = rows_of(files);
  const std::vector<Column> columns = columns_of(rows, wide);
  std::vector<size_t> widths;
  size_t used = 0;
  for (const Column& column : columns) {
    size_t width = column.heading.size();
    for (const Row& row : rows) width = std::max(width, column.text(row).size());
    widths.push_back(width);
    used += width + 2;
  }
  const auto print = [&](const auto& text_of, const std::string& name) {
    for (size_t i = 0; i < columns.size(); ++i) {
      const std::string text = text_of(columns[i]), padding(widths[i] - text.size(), ' ');
      out << (columns[i].is_number ? padding + text : text + padding) << "  ";
    }
    out << (wide ? name : without_middle(name, std::max<size_t>(kLineWidth - std::min(used, kLineWidth), 12))) << '\n';
  };
  print([](const Column& column) { return column.heading; }, "graph, on " + engines_of(files));
  for (const Row& row : rows) {
    print([&](const Column& column) { return column.text(row); }, row.name);
    if (!row.details.empty() && (wide || !row.is_good)) out << wrapped(row.details, "    ");
  }
}

}  // namespace lamina::driver
