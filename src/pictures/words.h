// Texts that several pictures use: numbers with units, and escaped characters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "interface/explained_graph.h"

namespace lamina::pictures {

std::string microseconds_text(double microseconds);  // "41.2 µs", "3.05 ms"
std::string bytes_text(int64_t bytes);               // "786 kB"

// "TITLE: 2 ops, 1 partition, backend cpu", without the part before the colon if there is no title.
std::string headline(const ExplainedGraph& graph);
std::string summary(const ExplainedGraph& graph);  // the part after the colon

// The sum over all partitions that have a time, in microseconds.
double total_time(const ExplainedGraph& graph);

std::optional<double> microseconds_of(const ExplainedPartition& partition);

// "41.2 µs (23 %)", "" if nothing was timed.
std::string time_line(const ExplainedGraph& graph, double microseconds);
std::string time_line(const ExplainedGraph& graph, const ExplainedPartition& partition);

// Of all steps that a profile has timed; 0: none.
double longest_step(const ExplainedGraph& graph);

// "partition 3 · 41.2 µs (23 %)".
std::string heading(const ExplainedGraph& graph, const ExplainedPartition& partition);

// Escapes text and attributes of HTML and SVG.
std::string escaped(std::string_view text);

}  // namespace lamina::pictures
