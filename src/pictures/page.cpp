#include "pictures/page.h"

#include <algorithm>

#include "interface/json/explained.h"
#include "interface/number_text.h"
#include "interface/status.h"
#include "pictures/graph_layout.h"
#include "pictures/svg.h"
#include "pictures/words.h"

namespace lamina::pictures {

// cmake/embed.cmake
namespace text {
extern const char kPageStyle[];
extern const char kPageScript[];
}  // namespace text

namespace {

// JSON inside a <script>: nothing in it may look like the element's end.
std::string for_script(std::string json) {
  for (size_t at = json.find('<'); at != std::string::npos; at = json.find('<', at)) json.replace(at, 1, "\\u003c");
  return json;
}

std::string figures_line(const ExplainedGraph& graph, const ExplainedPartition& partition) {
  std::string line = join(partition.ops.size(), partition.ops.size() == 1 ? " op" : " ops");
  if (const std::string time = time_line(graph, partition); !time.empty()) line += " \xC2\xB7 " + time;
  if (partition.times && partition.times->gigabytes_per_second)
    line += join(" \xC2\xB7 ", general_text(*partition.times->gigabytes_per_second, 3), " GB/s");
  if (partition.required_bytes) line += " \xC2\xB7 " + bytes_text(*partition.required_bytes);
  return line;
}

std::string kinds_line(const ExplainedGraph& graph, const ExplainedPartition& partition) {
  std::string line;
  for (const size_t op : partition.ops) line += (line.empty() ? "" : " + ") + graph.ops[op].kind;
  return line;
}

std::string list_entry(const ExplainedGraph& graph, size_t index) {
  const ExplainedPartition& partition = graph.partitions[index];
  const bool timed = partition.times && partition.times->median_us;
  const double total = total_time(graph);
  const double share = timed && total > 0 ? 100 * *partition.times->median_us / total : 0;
  return join("<li><button type=\"button\" data-partition=\"", index, "\"", timed ? " data-time=\"" : "",
              timed ? general_text(*partition.times->median_us, 9) : "", timed ? "\"" : "", "><b>", partition.id, "</b> ",
              escaped(shortened(kinds_line(graph, partition), 90)),
              partition.supported ? "" : " <em>not run by this engine</em>", "<small>", escaped(figures_line(graph, partition)),
              "</small>", timed ? join("<span class=\"share\" style=\"width:", fixed_text(share, 1), "%\"></span>") : "",
              "</button></li>\n");
}

std::string figures(const ExplainedGraph& graph) {
  std::string line = summary(graph);
  if (const double total = total_time(graph); total > 0) line += join(", ", microseconds_text(total), " in all");
  const auto refused = std::count_if(graph.partitions.begin(), graph.partitions.end(),
                                     [](const ExplainedPartition& partition) { return !partition.supported; });
  if (refused > 0) line += join(", ", refused, refused == 1 ? " partition" : " partitions", " that this engine does not run");
  return line;
}

std::string header(const ExplainedGraph& graph) {
  return join("<header>\n<h1>", escaped(graph.title.empty() ? "graph" : graph.title), "</h1>\n<p>", escaped(figures(graph)),
              "</p>\n",
              "<label for=\"search\">Search</label><input id=\"search\" type=\"search\" autocomplete=\"off\" "
              "placeholder=\"name, kind, tensor, kernel ( / )\"/>\n"
              "<div class=\"tools\" role=\"group\" aria-label=\"View\">"
              "<button type=\"button\" id=\"zoom-out\" aria-label=\"Zoom out\">\xE2\x88\x92</button>"
              "<button type=\"button\" id=\"zoom-in\" aria-label=\"Zoom in\">+</button>"
              "<button type=\"button\" id=\"fit\" aria-label=\"Show all\">fit</button>"
              "<button type=\"button\" id=\"help-button\" aria-label=\"Keys\">?</button></div>\n</header>\n");
}

std::string side_list(const ExplainedGraph& graph) {
  const bool timed = std::any_of(graph.partitions.begin(), graph.partitions.end(),
                                 [](const ExplainedPartition& p) { return p.times && p.times->median_us; });
  std::string out = join(
      "<nav aria-label=\"Partitions and results\">\n<div id=\"found\" hidden=\"\"><h2 id=\"found-count\" "
      "aria-live=\"polite\"></h2>"
      "<ul id=\"found-list\"></ul></div>\n<h2>Partitions",
      timed ? " <button type=\"button\" id=\"by-time\" aria-pressed=\"false\">slowest first</button>" : "",
      "</h2>\n<ul id=\"list\">\n");
  for (size_t p = 0; p < graph.partitions.size(); ++p) out += list_entry(graph, p);
  out += "</ul>\n";
  for (const std::string& warning : graph.warnings) out += join("<p class=\"warning\">warning: ", escaped(warning), "</p>\n");
  return out + "</nav>\n";
}

constexpr char kKeys[] =
    "<dialog id=\"help\" aria-label=\"Keys\"><h2>Keys</h2><dl>"
    "<dt>/</dt><dd>search; Enter goes to the first result</dd>"
    "<dt>arrows</dt><dd>from op to op: up to what it reads, down to what reads it, left and right to its neighbours</dd>"
    "<dt>Enter</dt><dd>tells of the op</dd><dt>Esc</dt><dd>closes what is open, and goes back to the picture</dd>"
    "<dt>+ \xE2\x88\x92 0</dt><dd>nearer, farther, all of it</dd><dt>p</dt><dd>tells of the op's partition</dd>"
    "<dt>Tab</dt><dd>search, view, partitions, picture, panel</dd></dl>"
    "<form method=\"dialog\"><button>close</button></form></dialog>\n";

}  // namespace

std::string html_page(const ExplainedGraph& graph) {
  return join(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n<title>",
      escaped(headline(graph)), "</title>\n<style>\n", text::kPageStyle, "</style>\n</head>\n<body>\n", header(graph),
      "<main>\n", side_list(graph), "<section id=\"canvas\" aria-label=\"Picture\">\n", svg_element(graph),
      "</section>\n<aside id=\"panel\" aria-label=\"Details\" tabindex=\"-1\" hidden=\"\"></aside>\n</main>\n", kKeys,
      "<script type=\"application/json\" id=\"graph\">", for_script(explained_to_json(graph)), "</script>\n<script>\n",
      text::kPageScript, "</script>\n</body>\n</html>\n");
}

}  // namespace lamina::pictures
