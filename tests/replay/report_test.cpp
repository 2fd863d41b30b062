// The table and the JSON of lamina replay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "json_schema.h"
#include "lamina/lines.h"
#include "lamina/report.h"
#include "lamina/report_table.h"
#include "lamina/tree.h"

namespace lamina::testing {
namespace {

using namespace driver;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

CheckResult checked(double expected, double error, double of_allowed) {
  CheckResult check;
  check.good = of_allowed <= 1;
  check.elements = 100;
  check.failed = check.good ? 0 : 3;
  check.worst = {
      .tensor_id = 7, .at = {1, 2}, .given = expected + error, .expected = expected, .error = error, .of_allowed = of_allowed};
  return check;
}

FileReport file_report(const std::string& name) {
  FileReport file{.file = name, .engine = "cpu", .op_count = 2, .partitions = {}, .warnings = {"a warning"}};
  PartitionReport partition;
  partition.kinds = {"Add", "LayerNorm"};
  partition.backend = "cpu";
  partition.kernels = {"lamina_add_layer_norm"};
  partition.required_bytes = 3000;
  partition.compile_ms = 1.5;
  partition.median_us = 2;
  partition.check = checked(8, 0.001, 0.25);
  file.partitions = {partition};
  return file;
}

std::string table(const std::vector<FileReport>& files, bool wide) {
  std::ostringstream out;
  print_table(out, files, wide);
  return out.str();
}

void expect_short_lines(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST(ReportTable, HasTheVerdictFirstAndEightyColumns) {
  const std::string name = "a/folder/with/a/long/name/and/another/one/a_graph_that_has_a_long_name_too.json";
  const std::string text = table({file_report(name), file_report("b.json")}, false);
  EXPECT_THAT(text,
              AllOf(HasSubstr("\nok"), HasSubstr("25%"), HasSubstr("1.50"), HasSubstr("..."), HasSubstr("long_name_too.json")));
  expect_short_lines(text);
  EXPECT_THAT(table({file_report(name)}, true),
              AllOf(HasSubstr(name), HasSubstr("relative error 0.00013, 25% of the allowed")));
}

TEST(ReportTable, TellsWhatIsWrongBelowTheRow) {
  FileReport file = file_report("x.json");
  file.partitions[0].check = checked(8, 3, 1200);
  file.partitions.push_back(file.partitions[0]);
  file.partitions[1].check.reset();
  file.partitions[1].problem = "the cpu backend has no kernel for this op, because its window has seven spatial axes and more";
  const std::string text = table({file}, false);
  EXPECT_THAT(text, AllOf(HasSubstr("UNSUPPORTED"), HasSubstr("WRONG"), HasSubstr("over 1000x"),
                          HasSubstr("    3 of 100 elements are WRONG"), HasSubstr("    the cpu backend has no kernel"),
                          HasSubstr("  0: Add + LayerNorm")));
  expect_short_lines(text);
}

TEST(ReportTable, LeavesOutColumnsThatNoRowHas) {
  FileReport file = file_report("x.json");
  file.partitions[0].check.reset();
  file.partitions[0].median_us.reset();
  EXPECT_THAT(table({file}, false),
              AllOf(HasSubstr("ran"), HasSubstr("compile ms"), Not(HasSubstr("of allowed")), Not(HasSubstr("GB/s"))));
}

TEST(CheckText, IsRelativeWhereItCanBe) {
  EXPECT_THAT(checked(1e9, 63, 0.063).text(), HasSubstr("relative error 6.3e-08, 6% of the allowed"));
  EXPECT_THAT(checked(0, 1e-9, 0.5).text(), HasSubstr("worst error 1e-09, 50% of the allowed, at tensor 7 [1, 2]"));
}

TEST(ReportSchema, DescribesEveryMember) {
  const json schema = schema_of_docs("report.schema.json");
  FileReport unsupported = file_report("y.json");
  unsupported.partitions[0].check.reset();
  unsupported.partitions[0].problem = "why";
  std::ostringstream out;
  write_report(out, {file_report("x.json"), unsupported}, {"cpu", "fusion", 2, 1});
  const json report = json::parse(out.str());
  EXPECT_EQ(report.at("schema"), kReportSchema);
  expect_described(report, schema, "report");
}

TEST(Lines, ANameIsCutInItsMiddle) {
  EXPECT_EQ(without_middle("short", 12), "short");
  EXPECT_EQ(without_middle("0123456789abcdef", 12), "012...abcdef");
}

TEST(Lines, ANearNameIsFound) {
  const std::vector<std::string> names{"replay", "explain", "show", "ops"};
  EXPECT_EQ(nearest("replya", names), "replay");
  EXPECT_EQ(nearest("explian", names), "explain");
  EXPECT_EQ(nearest("shw", names), "show");
  EXPECT_EQ(nearest("benchmark", names), "");
}

TEST(TreeText, HasALineForEachBranch) {
  Tree tree{"root"};
  tree.add("first").add("inner");
  tree.add("a\nprogram");
  std::ostringstream out;
  print_tree(out, tree);
  EXPECT_EQ(out.str(), "root\n├─ first\n│  └─ inner\n└─ a\n   program\n");
}

}  // namespace
}  // namespace lamina::testing
