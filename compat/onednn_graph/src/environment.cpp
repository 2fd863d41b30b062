// oneDNN's environment variables for graphs: ONEDNN_VERBOSE and ONEDNN_GRAPH_DUMP (older: DNNL_...), read when the library is
// loaded. lamina's own variables take precedence.
#include <graph/lamina.h>

#include <cstdlib>
#include <string_view>

#include "refusals.h"

namespace onednn_graph {
namespace {

// The value of oneDNN's variable; null if lamina's variable is set, or none is.
const char* asked(const char* ours, const char* theirs, const char* older) {
  if (std::getenv(ours) != nullptr) return nullptr;
  const char* const text = std::getenv(theirs);
  return text != nullptr ? text : std::getenv(older);
}

bool has_word(std::string_view text, std::string_view word) {
  while (!text.empty()) {
    const size_t end = text.find(',');
    if (text.substr(0, end) == word) return true;
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return false;
}

// Whether the value, a number or words, requests lines about executions.
bool tells_of_executions(std::string_view text) {
  return text == "1" || text == "2" || has_word(text, "all") || has_word(text, "profile") || has_word(text, "profile_exec");
}

// Whether the value requests lines about errors: any level does in oneDNN, and some words.
bool tells_of_refusals(std::string_view text) {
  return text == "1" || text == "2" || has_word(text, "all") || has_word(text, "error") || has_word(text, "check");
}

bool heed() {
  if (const char* const text = std::getenv("LAMINA_VERBOSE")) set_refusals_told(std::atoi(text) > 0);
  if (const char* const text = asked("LAMINA_VERBOSE", "ONEDNN_VERBOSE", "DNNL_VERBOSE"); text != nullptr) {
    if (tells_of_executions(text)) lamina_set_verbose(1);
    set_refusals_told(tells_of_refusals(text));
  }
  if (const char* const text = asked("LAMINA_GRAPH_DUMP", "ONEDNN_GRAPH_DUMP", "DNNL_GRAPH_DUMP")) {
    unsigned modes = lamina_graph_dump_mode_none;
    if (has_word(text, "graph")) modes |= lamina_graph_dump_mode_graph;
    if (has_word(text, "subgraph")) modes |= lamina_graph_dump_mode_subgraph;
    lamina_graph_set_dump_mode(static_cast<lamina_graph_dump_mode_t>(modes));
  }
  return true;
}

[[maybe_unused]] const bool heeded = heed();

}  // namespace
}  // namespace onednn_graph
