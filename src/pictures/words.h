// Texts that pictures share, made for people: figures with units, and characters escaped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "interface/explained_graph.h"

namespace lamina::pictures {

std::string microseconds_text(double microseconds);  // "41.2 µs", "3.05 ms"
std::string bytes_text(int64_t bytes);               // "786 kB"

// "TITLE: 2 ops, 1 partition, backend cpu", without what stands before the colon where there is no title.
std::string headline(const ExplainedGraph& graph);
std::string summary(const ExplainedGraph& graph);  // what stands behind it

// Of all partitions that have a time, in microseconds.
double total_time(const ExplainedGraph& graph);

// "41.2 µs (23 %)", "" where nothing was timed.
std::string time_line(const ExplainedGraph& graph, const ExplainedPartition& partition);

// "partition 3 · 41.2 µs (23 %)".
std::string heading(const ExplainedGraph& graph, const ExplainedPartition& partition);

// For text and attributes of HTML and SVG.
std::string escaped(std::string_view text);

}  // namespace lamina::pictures
