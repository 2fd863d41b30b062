// `lamina export` as a user runs it: what it writes, and its errors and exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "graph/lamina_runtime.hpp"
#include "lamina/buffer.h"
#include "lamina/npy.h"
#include "replay/driver_process.h"
#include "support/files.h"

namespace lamina::driver::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kLayerNorm = (lamina::testing::kTree / "examples/graphs/layer_norm.json").string();

// Writes gamma and beta of that graph.
void write_weights(const Workspace& space) {
  for (const uint64_t id : {1, 2}) {
    LogicalTensor tensor{.id = id, .dtype = DataType::f32, .shape = Dims{768}, .layout = LayoutType::strided, .strides = {1}};
    Buffer buffer(tensor);
    for (int64_t i = 0; i < 768; ++i) buffer.store(i, id == 1 ? 2 : static_cast<double>(i));
    std::ofstream out(space.path(std::to_string(id) + ".npy"), std::ios::binary);
    write_npy(out, buffer);
  }
}

TEST(LaminaExport, WritesAModelWithItsWeightsAndVariants) {
  const Workspace space("export");
  write_weights(space);
  const std::string out = space.path("norm.lamina");
  const Outcome outcome =
      space.run("export " + kLayerNorm + " -o " + out + " --weights " + space.path("") + " --shapes 0:1..3x768");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("2 constants, 3 variants, programs for "));
  const runtime::model model(out);
  EXPECT_EQ(model.inputs().size(), 1U);
  EXPECT_EQ(model.outputs().size(), 3U);
  std::vector<float> src(2 * 768, 1), dst(2 * 768), mean(2), variance(2);
  std::vector<runtime::tensor> outputs = model.outputs(1);
  outputs[0].data = dst.data(), outputs[1].data = mean.data(), outputs[2].data = variance.data();
  model.run({model.inputs(1)[0].with(src.data())}, outputs);
  for (size_t i = 0; i < dst.size(); ++i) EXPECT_EQ(dst[i], static_cast<float>(i % 768));  // beta, since all elements are equal
  EXPECT_EQ(mean[1], 1);
}

TEST(LaminaExport, RefusesWhatItCannotExportAndWritesNothing) {
  const Workspace space("export_refused");
  const std::string out = space.path("norm.lamina");
  const auto fault = [&](const std::string& options, int code) {
    const Outcome outcome = space.run("export " + options + " -o " + out);
    EXPECT_EQ(outcome.code, code) << outcome.out << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(out));
    return outcome.err;
  };
  EXPECT_THAT(fault(kLayerNorm + " --isa vax", 2), HasSubstr("vax"));
  EXPECT_THAT(fault(kLayerNorm + " --weights " + space.path(""), 2), HasSubstr("it has no ID.npy for an input of the graph"));
  EXPECT_THAT(fault(kLayerNorm + " --shapes 0:5..2x768", 2), HasSubstr("--shapes 0:5..2x768: range 5..2, allowed are ranges"));
  EXPECT_THAT(fault("/no/such.json", 2), StartsWith("/no/such.json"));
}

}  // namespace
}  // namespace lamina::driver::testing
