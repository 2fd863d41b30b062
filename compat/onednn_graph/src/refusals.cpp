#include "refusals.h"

#include <graph/lamina.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <iterator>

namespace onednn_graph {
namespace {

std::atomic<bool> are_told{false};

const char* word_of(dnnl_status_t status) {
  static constexpr const char* kWords[] = {"success",           "out_of_memory", "invalid_arguments", "unimplemented",
                                           "last_impl_reached", "runtime_error", "not_required",      "invalid_graph",
                                           "invalid_graph_op",  "invalid_shape", "invalid_data_type"};
  const auto number = static_cast<size_t>(status);
  return number < std::size(kWords) ? kWords[number] : "unknown";
}

}  // namespace

bool refusals_are_told() { return are_told.load(std::memory_order_relaxed); }
void set_refusals_told(bool told) { are_told.store(told, std::memory_order_relaxed); }
void forget_reason() { lamina_set_last_error(""); }

void tell_refusal(const char* function, dnnl_status_t status) {
  std::printf("lamina,error,%s,%s,%s\n", function, word_of(status), lamina_last_error());
  std::fflush(stdout);
}

}  // namespace onednn_graph
