// Whole files: the examples, and oneDNN's dumps if they exist beside the repository.
#include <nlohmann/json.hpp>

#include "interface/op_schema.h"
#include "json_fixture.h"
#include "support/files.h"

namespace lamina {
namespace {

namespace fs = std::filesystem;

void expect_round_trip(const fs::path& file) {
  const std::string name = file.string();
  Graph graph;
  try {
    graph = read_graph_json(read_dump_file(name), name);
  } catch (const Error& error) {
    GTEST_LOG_(INFO) << "not a graph for lamina: " << error.what();
    return;
  }
  const std::string written = write_graph_json(graph);
  EXPECT_EQ(write_graph_json(read_graph_json(written, name)), written) << name;
}

TEST(GraphDumps, ExamplesAreWhatTheWriterWrites) {
  const auto files = testing::dumps_below(testing::kTree / "examples" / "graphs");
  EXPECT_FALSE(files.empty());
  for (const fs::path& file : files) {
    const std::string text = read_dump_file(file.string());
    EXPECT_EQ(write_graph_json(read_graph_json(text, file.string())), text) << file;
  }
}

// Applies to a file that was read the changes that docs/dumps.md specifies for written files.
nlohmann::json normalised(nlohmann::json file) {
  for (const char* key : {"version", "input_ports", "output_ports"}) file.erase(key);
  file.emplace("fpmath_mode_apply_to_int", "false");
  for (nlohmann::json& op : file["graph"]) {
    const OpSchema& schema = schema_of(*op_kind_from_name(op["kind"].get<std::string>()));
    op["kind"] = name_of(schema.kind);
    nlohmann::json& attributes = op.emplace("attrs", nlohmann::json::object()).first.value();
    // The schema tests check the values of fill_defaults; this test checks only which defaults exist.
    for (const AttributeSpec& spec : schema.attributes)
      if (spec.default_value) attributes.emplace(spec.name, nullptr);
  }
  return file;
}

void forget_defaults(nlohmann::json& written, const nlohmann::json& given) {
  for (size_t i = 0; i < written["graph"].size(); ++i)
    for (auto& [name, value] : written["graph"][i]["attrs"].items())
      if (given["graph"][i]["attrs"].contains(name) && given["graph"][i]["attrs"][name].is_null()) value = nullptr;
}

TEST(GraphDumps, OneDnnDumpsAreWrittenAsTheyWereButForTheDocumentedNormalisation) {
  const auto files = testing::dumps_below(testing::kOneDnnDumps);
  if (files.empty()) GTEST_SKIP() << "the folder shared/graphs/onednn is not beside the project";
  for (const fs::path& file : files) {
    const std::string text = read_dump_file(file.string());
    const Graph graph = read_graph_json(text, file.string());
    if (!graph.warnings().empty()) continue;  // ports disagree: both are written with the producer's description
    const nlohmann::json given = normalised(nlohmann::json::parse(text));
    nlohmann::json written = normalised(nlohmann::json::parse(write_graph_json(graph)));
    forget_defaults(written, given);
    EXPECT_EQ(given, written) << file << "\n" << nlohmann::json::diff(given, written).dump(2);
  }
}

TEST(GraphDumps, OneDnnDumpsSurviveARoundTrip) {
  const auto files = testing::dumps_below(testing::kOneDnnDumps);
  if (files.empty()) GTEST_SKIP() << "the folder shared/graphs/onednn is not beside the project";
  for (const fs::path& file : files) expect_round_trip(file);
}

}  // namespace
}  // namespace lamina
