// Models through the C interface (graph/export.h). tests/runtime runs models; tests/python runs those that Python exports.
#include "graph/export.h"

#include <cstddef>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "api_fixture.h"

namespace api_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr size_t kGamma = 1, kBeta = 2;
const std::vector<float> kWeights(8, 0.5F);

graph layer_norm(int64_t rows) {
  graph g(engine::kind::cpu);
  g.add_op(op(0, op::kind::LayerNorm, {f32(0, {rows, 8}), f32(kGamma, {8}), f32(kBeta, {8})}, {f32(3, {rows, 8})}, "ln")
               .set_attr(op::attr::keep_stats, false));
  g.finalize();
  return g;
}

// Gamma and beta are part of the file.
struct Options {
  Options() {
    c.size = sizeof c;
    c.num_weights = ids.size(), c.weight_ids = ids.data(), c.weights = data.data(), c.weight_bytes = bytes.data();
  }
  std::vector<size_t> ids = {kGamma, kBeta}, bytes = {32, 32};
  std::vector<const void*> data = {kWeights.data(), kWeights.data()};
  lamina_graph_export_options_t c = {};
};

std::string exported(const std::vector<const graph*>& graphs, const lamina_graph_export_options_t* options) {
  std::vector<const_lamina_graph_graph_t> handles;
  for (const graph* each : graphs) handles.push_back(each->get());
  std::string file;
  const auto append = [](void* user, const void* part, size_t length) {
    static_cast<std::string*>(user)->append(static_cast<const char*>(part), length);
    return 0;
  };
  error::wrap_c_api(lamina_graph_export(handles.size(), handles.data(), options, append, &file));
  return file;
}

std::string fault_of(const std::vector<const graph*>& graphs, const lamina_graph_export_options_t& options) {
  try {
    exported(graphs, &options);
  } catch (const error& refused) {
    return refused.what();
  }
  return "";
}

TEST(Export, WritesTheSameBytesTwiceWithNamesOfPorts) {
  const graph one = layer_norm(1), four = layer_norm(4);
  Options options;
  const size_t source = 0, result = 3;
  const char *source_name = "tokens", *result_name = "normal";
  options.c.num_inputs = options.c.num_outputs = 1;
  options.c.input_ids = &source, options.c.input_names = &source_name;
  options.c.output_ids = &result, options.c.output_names = &result_name;
  const std::string file = exported({&one, &four}, &options.c);
  EXPECT_THAT(file, AllOf(StartsWith("PK"), HasSubstr("\"tokens\""), HasSubstr("\"normal\""), HasSubstr("\"LayerNorm\"")));
  EXPECT_EQ(file, exported({&one, &four}, &options.c));
  EXPECT_THAT(exported({&one}, nullptr), StartsWith("PK"));
}

TEST(Export, CallsWriteOnTheCallersThreadUntilItCancels) {
  struct Calls {
    std::set<std::thread::id> threads;
    size_t count = 0, last = 0;  // last: the number of the call that cancels, 0: none
  };
  const auto called = [](void* user, const void*, size_t) {
    auto& calls = *static_cast<Calls*>(user);
    calls.threads.insert(std::this_thread::get_id());
    return ++calls.count == calls.last ? 1 : 0;
  };
  const graph norm = layer_norm(4);
  const const_lamina_graph_graph_t handle = norm.get();
  const Options options;
  Calls whole;
  ASSERT_EQ(lamina_graph_export(1, &handle, &options.c, called, &whole), lamina_success);
  EXPECT_THAT(whole.threads, ElementsAre(std::this_thread::get_id()));
  for (size_t last = 1; last <= whole.count; ++last) {
    Calls cancelled;
    cancelled.last = last;
    EXPECT_EQ(lamina_graph_export(1, &handle, &options.c, called, &cancelled), lamina_runtime_error);
    EXPECT_EQ(cancelled.count, last);
  }
}

TEST(Export, NamesWhatDoesNotFit) {
  const graph norm = layer_norm(4);
  graph open(engine::kind::cpu);
  open.add_op(op(0, op::kind::ReLU, {f32(0, {4, 8})}, {f32(1, {4, 8})}));
  const Options options;
  EXPECT_THAT(fault_of({&open}, options.c), HasSubstr("graph 0 is not finalized"));
  EXPECT_THAT(fault_of({}, options.c), HasSubstr("a model needs a graph"));

  Options changed;
  changed.c.size = 8;
  EXPECT_THAT(fault_of({&norm}, changed.c), HasSubstr("options->size is 8, allowed is "));
  changed = Options();
  changed.c.weight_bytes = &kGamma;  // 1
  changed.c.num_weights = 1;
  EXPECT_THAT(fault_of({&norm}, changed.c), HasSubstr("the data of constant 1 have 1 bytes"));
  changed = Options();
  changed.ids[1] = 7;
  EXPECT_THAT(fault_of({&norm}, changed.c), HasSubstr("the data of constant 7: the graph has no such input"));
}

TEST(Export, NamesAllOpsThatItRefuses) {
  graph g(engine::kind::cpu);
  for (size_t i = 0; i < 2; ++i)
    g.add_op(op(i, op::kind::Wildcard, {f32(2 * i, {4, 8})}, {f32(2 * i + 1, {4, 8})}, i == 0 ? "first" : "second"));
  g.finalize();
  Options options;
  options.c.num_weights = 0;
  EXPECT_THAT(fault_of({&g}, options.c),
              HasSubstr("op 0 Wildcard \"first\": an op of unknown kind cannot be exported; op 1 Wildcard \"second\""));
}

TEST(Export, PortsOfTheModelAreThoseOfTheGraph) {
  const graph norm = layer_norm(4);
  Options options;
  const char* name = "x";
  size_t id = 9;
  options.c.num_inputs = 1, options.c.input_ids = &id, options.c.input_names = &name;
  EXPECT_THAT(fault_of({&norm}, options.c), HasSubstr("tensor 9 is no input of the graph"));
  id = kGamma;
  EXPECT_THAT(fault_of({&norm}, options.c), HasSubstr("tensor 0 is neither an input of the model nor a constant with data"));
  id = 0;
  options.c.num_outputs = 1, options.c.output_ids = &id, options.c.output_names = &name;
  EXPECT_THAT(fault_of({&norm}, options.c), HasSubstr("tensor 0 is no output of the graph"));
}

TEST(Export, AGraphWithOpenExtentsIsWrittenForShapes) {
  const graph open = layer_norm(LAMINA_GRAPH_UNKNOWN_DIM), norm = layer_norm(4);
  const lamina_graph_logical_tensor_t four = f32(0, {4, 8}).data;
  graph closed(engine::kind::cpu);
  lamina_graph_graph_t created = nullptr;
  error::wrap_c_api(lamina_graph_graph_create_for_shapes(&created, open.get(), 1, &four));
  closed.reset(created);
  const Options options;
  EXPECT_THAT(fault_of({&open}, options.c), HasSubstr("allowed is a known shape"));
  EXPECT_EQ(exported({&closed}, &options.c), exported({&norm}, &options.c));

  const lamina_graph_logical_tensor_t result = f32(3, {4, 8}).data;
  EXPECT_EQ(lamina_graph_graph_create_for_shapes(&created, open.get(), 1, &result), lamina_invalid_arguments);
  EXPECT_THAT(lamina_last_error(), HasSubstr("tensor 3 is no input of the graph"));
}

TEST(Export, IsCancelledByTheWriter) {
  const graph norm = layer_norm(4);
  const_lamina_graph_graph_t handle = norm.get();
  const auto refuse = [](void*, const void*, size_t) { return 1; };
  EXPECT_EQ(lamina_graph_export(1, &handle, nullptr, refuse, nullptr), lamina_runtime_error);
  EXPECT_THAT(lamina_last_error(), HasSubstr("write has cancelled"));
}

}  // namespace
}  // namespace api_test
