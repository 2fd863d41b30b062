// Reads, writes, partitions and runs every dump of oneDNN's corpus, if it exists beside the repository, with the reference
// engine.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "compiler/compile.h"
#include "interface/json/json.h"
#include "interface/status.h"
#include "lamina/device_tensors.h"
#include "lamina/fill.h"
#include "lamina/load.h"
#include "passes/pipeline.h"
#include "support/files.h"

namespace lamina::driver {
namespace {

namespace fs = std::filesystem;
using testing::dumps_below;
using testing::kOneDnnDumps;

std::string name_in_corpus(const fs::path& file) { return fs::relative(file, kOneDnnDumps).string(); }

// ---- reading and writing

// The graph keeps everything that the file specifies of a tensor; unknown shapes may become known.
void expect_same_tensors(const std::vector<LogicalTensor>& given, const std::vector<LogicalTensor>& kept) {
  ASSERT_EQ(given.size(), kept.size());
  for (size_t i = 0; i < given.size(); ++i) {
    EXPECT_EQ(given[i].id, kept[i].id);
    EXPECT_EQ(given[i].dtype, kept[i].dtype);
    EXPECT_TRUE(!given[i].has_full_shape() || given[i].shape == kept[i].shape) << "tensor " << given[i].id;
    EXPECT_TRUE(!given[i].has_strides() || given[i].strides == kept[i].strides) << "tensor " << given[i].id;
  }
}

// A written file spells out every default and uses the current name of an older kind; everything else is unchanged.
TEST(ReferenceCorpus, EveryDumpIsWrittenAsItWasRead) {
  const std::vector<fs::path> files = dumps_below(kOneDnnDumps);
  if (files.empty()) GTEST_SKIP() << "the folder shared/graphs/onednn is not beside the project";
  for (const fs::path& file : files) {
    SCOPED_TRACE(name_in_corpus(file));
    const GraphDump given = parse_graph_json(read_dump_file(file), file);
    const Graph graph = build_graph(given, file);
    if (!graph.warnings().empty()) continue;  // ports disagree: both are written with the producer's description
    const std::string written = write_graph_json(graph);
    const GraphDump kept = parse_graph_json(written, file);
    EXPECT_EQ(write_graph_json(build_graph(kept, file)), written);
    EXPECT_EQ(given.engine_kind, kept.engine_kind);
    EXPECT_EQ(given.fpmath_mode, kept.fpmath_mode);
    ASSERT_EQ(given.ops.size(), kept.ops.size());
    for (size_t i = 0; i < given.ops.size(); ++i) {
      EXPECT_EQ(given.ops[i].id, kept.ops[i].id);
      EXPECT_EQ(given.ops[i].kind, kept.ops[i].kind);
      EXPECT_EQ(given.ops[i].name, kept.ops[i].name);
      for (const auto& [name, value] : given.ops[i].attributes) {
        ASSERT_TRUE(kept.ops[i].attributes.contains(name)) << name;
        EXPECT_EQ(to_string(kept.ops[i].attributes.at(name)), to_string(value)) << name;
      }
      expect_same_tensors(given.ops[i].inputs, kept.ops[i].inputs);
      expect_same_tensors(given.ops[i].outputs, kept.ops[i].outputs);
    }
  }
}

// ---- running

bool is_finite(const Buffer& buffer) {
  if (!is_floating(buffer.tensor().dtype)) return true;
  bool finite = true;
  for_each_element_parallel(buffer.tensor(), buffer.element_count(), [&](int64_t, int64_t offset) {
    if (!std::isfinite(buffer.load(offset))) {
#pragma omp atomic write
      finite = false;
    }
  });
  return finite;
}

std::string joined(const Dims& dims) {
  std::string text;
  for (const int64_t dim : dims) text += (text.empty() ? "" : "x") + std::to_string(dim);
  return text;
}

// Returns overrides that reduce a graph's batch to one; the batch is the first extent of the first input of rank 4 or more.
Overrides batch_of_one(const Graph& graph, const GraphDump& dump) {
  Overrides overrides;
  int64_t batch = 0;
  for (const ValueIndex input : graph.inputs()) {
    const LogicalTensor& tensor = graph.tensor(input);
    if (!tensor.has_full_shape() || tensor.rank() < 4) continue;
    Dims shape = *tensor.shape;
    if (batch == 0) batch = shape[0];
    if (shape[0] != batch) continue;
    shape[0] = 1;
    overrides.shapes.push_back(join(tensor.id, ":", joined(shape)));
  }
  for (const DumpedOp& op : dump.ops) {
    const auto found = op.attributes.find("shape");
    if (op.kind != OpKind::StaticReshape || found == op.attributes.end()) continue;
    Dims shape = std::get<Dims>(found->second);
    if (shape.empty() || shape[0] != batch) continue;
    shape[0] = 1;
    overrides.attributes.push_back(join(op.id, ":shape=", joined(shape)));
  }
  return overrides;
}

// Graphs with more elements run with a batch of one if possible. LAMINA_WHOLE_CORPUS=1 runs all of them unchanged (90 seconds
// on two cores).
constexpr int64_t kMaxElements = 20'000'000;

Graph graph_for_a_test(const std::string& file) {
  Graph whole = load_graph(file, {});
  int64_t elements = 0;
  for (const Value& value : whole.values())
    if (value.tensor.has_full_shape()) elements += value.tensor.element_count();
  if (elements <= kMaxElements || std::getenv("LAMINA_WHOLE_CORPUS") != nullptr) return whole;
  try {
    return load_graph(file, batch_of_one(whole, parse_graph_json(read_dump_file(file), file)));
  } catch (const Error&) {  // extents depend on the batch in another way
    return whole;
  }
}

// Runs partition after partition on the driver's data; tensors are released after their last use.
class CorpusRun {
 public:
  explicit CorpusRun(const std::string& file) : graph_(graph_for_a_test(file)) {
    partitions_ = partition_graph(graph_, PartitionPolicy::fusion, reference_backend());
    for (size_t i = 0; i < partitions_.size(); ++i)
      for (const ValueIndex input : partitions_[i].inputs) last_reader_[partitions_[i].graph->tensor(input).id] = i;
    for (const ValueIndex input : graph_.inputs())
      buffers_[graph_.tensor(input).id] = std::make_shared<Buffer>(graph_.tensor(input));
    fill_inputs(graph_, graph_.inputs(), 0, buffers_);
  }

  void expect_finite_outputs() {
    for (size_t i = 0; i < partitions_.size(); ++i) {
      ASSERT_TRUE(partitions_[i].supported) << partitions_[i].unsupported_reason;
      execute(*compiler::compile_partition(partitions_[i], reference_backend()));
      std::erase_if(buffers_,
                    [&](const auto& entry) { return last_reader_.contains(entry.first) && last_reader_[entry.first] == i; });
    }
  }

 private:
  void execute(const compiler::CompiledPartition& compiled) {
    std::vector<std::shared_ptr<Buffer>> inputs, outputs;
    for (const LogicalTensor& tensor : compiled.inputs()) inputs.push_back(buffers_.at(tensor.id));
    for (const LogicalTensor& tensor : compiled.outputs()) {
      outputs.push_back(std::make_shared<Buffer>(tensor));
      buffers_[tensor.id] = outputs.back();
    }
    Execution(compiled, {reference_backend(), inputs, outputs}).run();
    for (const LogicalTensor& tensor : compiled.outputs())
      EXPECT_TRUE(!is_output(tensor.id) || is_finite(*buffers_[tensor.id])) << "tensor " << tensor.id;
  }
  bool is_output(uint64_t id) const {
    const std::vector<ValueIndex> outputs = graph_.outputs();
    return std::any_of(outputs.begin(), outputs.end(), [&](ValueIndex output) { return graph_.tensor(output).id == id; });
  }

  Graph graph_;
  std::vector<Partition> partitions_;
  Buffers buffers_;
  std::map<uint64_t, size_t> last_reader_;
};

TEST(ReferenceCorpus, EveryDumpRunsToFiniteResults) {
  // The largest dumps repeatedly allocate half a gigabyte: if malloc keeps freed memory, no new pages are needed.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  const std::vector<fs::path> files = dumps_below(kOneDnnDumps);
  if (files.empty()) GTEST_SKIP() << "the folder shared/graphs/onednn is not beside the project";
  for (const fs::path& file : files) {
    SCOPED_TRACE(name_in_corpus(file));
    CorpusRun(file).expect_finite_outputs();
  }
}

}  // namespace
}  // namespace lamina::driver
