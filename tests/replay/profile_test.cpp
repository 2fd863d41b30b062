// `lamina profile`: the table, the files, and errors.
#include "lamina/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "driver_process.h"
#include "interface/json/json.h"
#include "json_schema.h"
#include "support/graph_builder.h"

namespace lamina::driver {
namespace {

using lamina::testing::GraphBuilder;
using ::testing::HasSubstr;
using testing::Outcome;
using testing::read_text;
using ::testing::StartsWith;
using testing::Workspace;
using Json = nlohmann::json;

constexpr DataType f32 = DataType::f32;

std::string layer_norm() {
  GraphBuilder g;
  g.op(OpKind::LayerNorm, {g.input(f32, {12, 64}), g.input(f32, {64}), g.input(f32, {64})}, {{"keep_stats", false}});
  return write_graph_json(g.finish());
}

TEST(ProfileCommand, WritesATableAJsonFileAndATrace) {
  const Workspace w("profile");
  const std::string file = w.write("norm.json", layer_norm());
  const Outcome made =
      w.run("profile " + file + " --engine cpu --repeat 0.01 --json " + w.path("p.json") + " --trace " + w.path("t.json"));
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("norm.json: "));
  EXPECT_THAT(made.out, HasSubstr("layer_norm"));
  const Json profile = Json::parse(read_text(w.path("p.json")));
  const Json& step = profile.at("partitions").at(0).at("steps").at(0);
  EXPECT_EQ(step.at("bytes"), 4 * (2 * 12 * 64 + 2 * 64));
  EXPECT_EQ(step.at("kind"), "kernel");
  EXPECT_LE(step.at("us").get<double>(), profile.at("us").get<double>());
  EXPECT_FALSE(Json::parse(read_text(w.path("t.json"))).at("traceEvents").empty());
  lamina::testing::expect_described(profile, lamina::testing::schema_of_docs("profile.schema.json"), "profile");
}

TEST(ProfileCommand, AnEngineThatDoesNotMeasureItsStepsIsRefused) {
  const Workspace w("profile_reference");
  const Outcome made = w.run("profile " + w.write("norm.json", layer_norm()) + " --engine reference");
  EXPECT_EQ(made.code, 2);
  EXPECT_THAT(made.err, HasSubstr("the reference backend does not measure its steps, allowed is cpu"));
  EXPECT_EQ(made.out, "");
}

TEST(ProfileCommand, AFileThatIsNoDumpIsRefusedBeforeAnythingIsWritten) {
  const Workspace w("profile_bad");
  const Outcome made = w.run("profile " + w.write("bad.json", "{") + " --json " + w.path("p.json"));
  EXPECT_EQ(made.code, 2);
  EXPECT_THAT(made.err, StartsWith(w.path("bad.json")));
  EXPECT_EQ(w.file_count(), 3u);  // the dump, out.txt, err.txt
}

}  // namespace
}  // namespace lamina::driver
