// The verifier detects the errors that a broken pass could leave in a graph.
#include "passes/verify_graph.h"

#include <set>

#include "interface/status.h"
#include "passes/canonicalize.h"
#include "passes/core/reasons.h"
#include "passes_test_support.h"

namespace lamina::testing {
namespace {

using ::testing::HasSubstr;

Graph two_ops() {
  GraphBuilder g;
  const auto norm = (g.named("norm"), layer_norm(g, g.input(f32, {4, 8}), 8));
  const auto mm = g.named("mm").op(OpKind::MatMul, {norm, g.input(f32, {8, 8})});
  g.named("add").op(OpKind::Add, {norm, mm});
  return g.finish();
}

std::string complaint(const Graph& graph, const std::vector<Partition>& partitions) {
  try {
    verify_partitions(graph, partitions);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(VerifyGraph, RefusesAValueWithoutType) {
  Graph graph = two_ops();
  LogicalTensor tensor = graph.tensor(0);
  tensor.dtype = DataType::undef;
  graph.set_tensor(0, tensor);
  EXPECT_THROW(verify_graph(graph, "a test"), Error);
}

TEST(VerifyPartitions, AcceptsWhatThePipelineMakes) {
  const auto partitions = partition_graph(two_ops(), PartitionPolicy::fusion, RunsAll{});
  EXPECT_EQ(complaint(*partitions[0].graph, partitions), "");
}

//   norm ──> mm ──> add, norm and add in one partition
TEST(VerifyPartitions, RefusesOneThatIsNotConvex) {
  auto partitions = partition_graph(two_ops(), PartitionPolicy::debug, RunsAll{});
  const Graph& graph = *partitions[0].graph;
  partitions[0].ops.push_back(partitions[2].ops[0]);
  partitions[0].reasons.push_back({});
  partitions.pop_back();
  EXPECT_THAT(complaint(graph, partitions), HasSubstr("runs before the partition that makes its input"));
}

TEST(VerifyPartitions, RefusesAnOpInTwoOrNone) {
  const auto partitions = partition_graph(two_ops(), PartitionPolicy::debug, RunsAll{});
  const Graph& graph = *partitions[0].graph;
  auto twice = partitions;
  twice.push_back(twice[1]);
  EXPECT_THAT(complaint(graph, twice), HasSubstr("\"mm\" is in two partitions"));
  auto none = partitions;
  none.pop_back();
  EXPECT_THAT(complaint(graph, none), HasSubstr("\"add\" is in no partition"));
}

TEST(VerifyPartitions, RefusesPortsThatDoNotCrossTheBorder) {
  auto partitions = partition_graph(two_ops(), PartitionPolicy::debug, RunsAll{});
  const Graph& graph = *partitions[0].graph;
  partitions[0].inputs.pop_back();
  EXPECT_THAT(complaint(graph, partitions), HasSubstr("ports of partition 0"));
}

TEST(Reasons, TheTableNamesEveryCodeOnce) {
  std::set<std::string_view> names;
  for (const ReasonEntry& entry : reason_table()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_EQ(entry.meaning.back(), '.') << entry.name;
  }
  EXPECT_EQ(reason_table().size(), static_cast<size_t>(ReasonCode::alone_policy_debug) + 1);
}

}  // namespace
}  // namespace lamina::testing
