// Files that are truncated, changed, of another version or for another machine: one sentence, and nothing is run. A change that
// is not noticed does not matter to results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/dispatch/program_checks.h"
#include "backends/cpu/program/program_file.h"
#include "backends/cpu/program/tap_lists.h"
#include "backends/cpu/program/window_work.h"
#include "backends/exported_model.h"
#include "interface/status.h"
#include "runtime/exported_graph.h"
#include "support/graph_builder.h"
#include "support/max_isa.h"

namespace lamina::testing {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr DataType f32 = DataType::f32;

Graph small_graph() {
  GraphBuilder g;
  const auto x = g.input(f32, {5, 24});
  const auto product = g.op(OpKind::MatMul, {x, g.constant(f32, {24, 24})});
  g.multi(OpKind::LayerNorm, {product, g.constant(f32, {24}), g.constant(f32, {24})}, {{"keep_stats", false}}, {f32});
  return g.finish();
}

// A model for one instruction set, so that it is small.
ExportedGraph& small_model() {
  static ExportedGraph model(small_graph(), {cpu_isas_here().back()});
  return model;
}

// One of another architecture.
std::string other_isa() {
  for (const std::string& isa : exported_isas()) {
    const std::vector<std::string> here = cpu_isas_here();
    if (std::find(here.begin(), here.end(), isa) == here.end() && isa != "avx512") return isa;
  }
  return "";
}

std::string text_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// "" if the file is loaded, else the sentence.
std::string fault_of(const ModelBytes& file, const runtime::load_options& options = {}) {
  try {
    file.load(options);
    return "";
  } catch (const runtime::error& error) {
    return error.what();
  }
}
std::string fault_of(const std::string& file, const runtime::load_options& options = {}) {
  return fault_of(ModelBytes(file), options);
}

// A fault names the file, and is one sentence without a line break.
void expect_sentence(const std::string& fault) {
  EXPECT_THAT(fault, AllOf(StartsWith("the model in memory: "), Not(HasSubstr("\n")), Not(HasSubstr("bug in lamina"))));
}

size_t place_of(const std::string& file, std::string_view text) {
  const size_t place = file.find(text);
  EXPECT_NE(place, std::string::npos);
  return place;
}

TEST(DamagedFiles, AreRefusedWhereverTheyEnd) {
  const std::string file = small_model().file().text();
  for (size_t size = 0; size < file.size(); ++size) {
    const std::string fault = fault_of(file.substr(0, size));
    ASSERT_NE(fault, "") << size;
    expect_sentence(fault);
  }
}

TEST(DamagedFiles, AreRefusedOrGiveTheSameBits) {
  ExportedGraph& model = small_model();
  const std::string file = model.file().text();
  std::mt19937_64 random(1);
  int loaded = 0;
  for (int mutation = 0; mutation < 10'000; ++mutation) {
    std::string changed = file;
    for (uint64_t changes = 1 + random() % 3; changes > 0; --changes)
      changed[random() % changed.size()] ^= static_cast<char>(1 + random() % 255);
    const ModelBytes bytes(changed);
    // Without the digest of the weights, changes in these are seen only in the results.
    const std::string fault = fault_of(bytes, {.verify_weights = true});
    if (fault.empty()) {
      ++loaded;
      EXPECT_EQ(model.difference(bytes.load(), {}), "");
    } else {
      expect_sentence(fault);
    }
  }
  EXPECT_GT(loaded, 100);  // changes of the graph and of padding
  EXPECT_LT(loaded, 9'000);
}

TEST(DamagedFiles, OfWeightsAreSeenIfAsked) {
  const std::string file = small_model().file().text();
  std::string changed = file;
  const size_t data = place_of(file, "weights.safetensors");
  changed[place_of(file.substr(data), "}}") + data + 200] ^= 1;
  EXPECT_EQ(fault_of(changed), "");
  EXPECT_THAT(fault_of(changed, {.verify_weights = true}), EndsWith("the weights are damaged: their digest differs"));
  EXPECT_EQ(fault_of(file, {.verify_weights = true}), "");
}

TEST(DamagedFiles, OfPackedWeightsAreSeenIfAskedAndMustFit) {
  GraphBuilder g;
  g.op(OpKind::MatMul, {g.input(DataType::f32, {40, 64}), g.constant(DataType::f32, {64, 48})});
  const std::string isa = cpu_isas_here().front(), file = ExportedGraph(g.finish(), {isa}, true).file().text();
  ASSERT_EQ(fault_of(file, {.verify_weights = true}), "");
  const size_t directory = file.rfind("packed/" + isa), packed = place_of(file, "packed/" + isa);
  ASSERT_NE(directory, packed);
  std::string changed = file;
  changed[place_of(file, "graph.json") - 200] ^= 1;  // the end of the member before
  EXPECT_EQ(fault_of(changed), "");
  EXPECT_THAT(fault_of(changed, {.verify_weights = true}), EndsWith("the packed weights are damaged: their digest differs"));
  for (const size_t name : {directory, packed}) changed[name] = 'q';
  EXPECT_THAT(fault_of(changed), EndsWith("the file is damaged: it has no packed/" + isa));
}

// A step looks at all of its lists when it is read, also at those that its kind does not need.
TEST(DamagedFiles, WithWindowsThatNoGradientReadsAreRefused) {
  cpu::WindowWork pool;
  for (cpu::TapLists& axis : pool.taps) axis = cpu::TapLists::each(1);
  EXPECT_NO_THROW(cpu::check(pool, 1));
  for (cpu::TapLists& axis : pool.windows) {
    axis = cpu::TapLists::each(1);
    EXPECT_THROW(cpu::check(pool, 1), Error);
    axis = {};
  }
}

TEST(DamagedFiles, OfAnotherVersionAreRefusedWithBothVersions) {
  std::string file = small_model().file().text();
  const size_t version = place_of(file, "LAMINAPG") + 8;
  for (const char other : {'\0', static_cast<char>(cpu::kProgramVersion + 1)}) {
    file[version] = other;
    EXPECT_THAT(fault_of(file), EndsWith(join("the program has version ", static_cast<int>(other),
                                              " of the format, this runtime reads version ", cpu::kProgramVersion)));
  }
}

TEST(DamagedFiles, ForOtherMachinesAreRefusedWithBothNames) {
  const ExportedGraph other(small_graph(), {other_isa()});
  EXPECT_THAT(fault_of(other.file()), AllOf(HasSubstr("it has programs for " + other_isa()), HasSubstr("this machine runs "),
                                            HasSubstr(cpu_isas_here().back())));
}

TEST(DamagedFiles, ThatAreNoModelsAreRefused) {
  const MaxIsa none("");  // the runtime has no cap
  EXPECT_THAT(fault_of(std::string("PK\5\6") + std::string(18, '\0')),
              EndsWith("it has programs for none; this machine runs " + text_of(cpu_isas_here())));
  EXPECT_THAT(fault_of(std::string(4096, 'x')), EndsWith("it is not a model of lamina, or it is truncated"));
}

TEST(DamagedFiles, OnDiskAreNamed) {
  const auto fault = [](const std::string& path) {
    try {
      runtime::model model(path);
      return std::string();
    } catch (const runtime::error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(fault("/no/such.lamina"), "/no/such.lamina: it cannot be read: No such file or directory");
  EXPECT_THAT(fault("/dev/null"), EndsWith("it cannot be read: it is not a regular file"));
  const std::string path = (std::filesystem::temp_directory_path() / "lamina-model-test.lamina").string();
  std::ofstream(path, std::ios::binary) << small_model().file().text();
  EXPECT_EQ(small_model().difference(runtime::model(path), {}), "");
  std::filesystem::resize_file(path, 0);
  EXPECT_THAT(fault(path), EndsWith("it is empty"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace lamina::testing
