// A dump of arbitrary text through the C ABI. It is rejected with a message, or it is read, written, read again and written
// with the same result, partitioned, and explained. A dump that can be read but not finalized (a cycle changed the shape of an
// op's input after the op was checked) may be rejected by the second read.
#include <string>
#include <vector>

#include "fuzz/fuzz_input.h"
#include "graph/lamina.h"
#include "graph/text.h"

namespace lamina::fuzz {
namespace {

void append(void* user, const char* text, size_t length) { static_cast<std::string*>(user)->append(text, length); }

lamina_graph_graph_t read(std::string_view text) {
  lamina_graph_graph_t graph = nullptr;
  const lamina_status_t status = lamina_graph_graph_create_from_json(&graph, text.data(), text.size(), nullptr);
  require((status == lamina_success) == (graph != nullptr), "a graph is made exactly when a dump is read");
  require(status == lamina_success || *lamina_last_error() != '\0', "a refusal has a sentence");
  return graph;
}

std::string written(lamina_graph_graph_t graph) {
  std::string text;
  require(lamina_graph_graph_write_json(graph, append, &text) == lamina_success, "what was read can be written");
  return text;
}

void partition(lamina_graph_graph_t graph, lamina_graph_partition_policy_t policy) {
  if (lamina_graph_graph_finalize(graph) != lamina_success || lamina_graph_graph_filter(graph, policy) != lamina_success)
    return;
  size_t count = 0;
  lamina_graph_graph_get_partition_num(graph, &count);
  std::vector<lamina_graph_partition_t> partitions(count);
  require(count == 0 || lamina_graph_graph_get_partitions(graph, count, partitions.data()) == lamina_success,
          "all partitions are given");
  for (lamina_graph_partition_t one : partitions) {
    std::string reasons;
    lamina_graph_partition_write_reasons(one, append, &reasons);
    lamina_graph_partition_destroy(one);
  }
}

}  // namespace
}  // namespace lamina::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamina::fuzz;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  lamina_graph_graph_t graph = read(text);
  if (graph == nullptr) return 0;
  const std::string once = written(graph);
  lamina_graph_graph_t again = read(once);
  require(again == nullptr || written(again) == once, "what was read again is written alike");
  require(again != nullptr || lamina_graph_graph_finalize(graph) != lamina_success, "what was written can be read");
  partition(graph, lamina_graph_partition_policy_fusion);
  if (again != nullptr) partition(again, lamina_graph_partition_policy_debug);
  lamina_graph_graph_destroy(graph);
  lamina_graph_graph_destroy(again);
  return 0;
}
