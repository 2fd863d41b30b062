#include "pictures/words.h"

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

double total_time(const ExplainedGraph& graph) {
  double total = 0;
  for (const ExplainedPartition& partition : graph.partitions)
    if (partition.times && partition.times->median_us) total += *partition.times->median_us;
  return total;
}

std::string time_line(const ExplainedGraph& graph, const ExplainedPartition& partition) {
  if (!partition.times || !partition.times->median_us) return "";
  const double total = total_time(graph);
  const double share = total > 0 ? 100 * *partition.times->median_us / total : 0;
  return join(microseconds_text(*partition.times->median_us), " (", fixed_text(share, share < 9.95 ? 1 : 0), " %)");
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
