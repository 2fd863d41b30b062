#include "pictures/words.h"

#include <algorithm>

#include "interface/number_text.h"
#include "interface/status.h"

namespace lamina::pictures {

std::string microseconds_text(double microseconds) {
  if (microseconds >= 1e6) return general_text(microseconds / 1e6, 3) + " s";
  if (microseconds >= 1e3) return general_text(microseconds / 1e3, 3) + " ms";
  return general_text(microseconds, 3) + " \xC2\xB5s";
}

std::string bytes_text(int64_t bytes) {
  const auto count = static_cast<double>(bytes);
  if (count >= 1e9) return general_text(count / 1e9, 3) + " GB";
  if (count >= 1e6) return general_text(count / 1e6, 3) + " MB";
  if (count >= 1e3) return general_text(count / 1e3, 3) + " kB";
  return join(bytes, " B");
}

std::string summary(const ExplainedGraph& graph) {
  return join(graph.given_ops, graph.given_ops == 1 ? " op" : " ops", ", ", graph.partitions.size(),
              graph.partitions.size() == 1 ? " partition" : " partitions", ", backend ", graph.backend);
}

std::string headline(const ExplainedGraph& graph) { return join(graph.title, graph.title.empty() ? "" : ": ", summary(graph)); }

std::optional<double> microseconds_of(const ExplainedPartition& partition) {
  return partition.times ? partition.times->microseconds() : std::nullopt;
}

double total_time(const ExplainedGraph& graph) {
  double total = 0;
  for (const ExplainedPartition& partition : graph.partitions) total += microseconds_of(partition).value_or(0);
  return total;
}

std::string time_line(const ExplainedGraph& graph, double microseconds) {
  const double total = total_time(graph);
  const double share = total > 0 ? 100 * microseconds / total : 0;
  return join(microseconds_text(microseconds), " (", fixed_text(share, share < 9.95 ? 1 : 0), " %)");
}

std::string time_line(const ExplainedGraph& graph, const ExplainedPartition& partition) {
  const auto microseconds = microseconds_of(partition);
  return microseconds ? time_line(graph, *microseconds) : "";
}

double longest_step(const ExplainedGraph& graph) {
  double longest = 0;
  for (const ExplainedPartition& partition : graph.partitions)
    for (const ExplainedStep& step : partition.steps)
      if (step.times) longest = std::max(longest, step.times->us);
  return longest;
}

std::string heading(const ExplainedGraph& graph, const ExplainedPartition& partition) {
  const std::string time = time_line(graph, partition);
  return join("partition ", partition.id, time.empty() ? "" : " \xC2\xB7 ", time);
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      default: result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return result;
}

}  // namespace lamina::pictures
