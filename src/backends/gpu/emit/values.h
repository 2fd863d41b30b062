// The value of a node, as an expression of the dialect.
#pragma once

#include <string>

#include "backends/gpu/emit/emission.h"

namespace lamina::gpu {

class Values : private Part {
 public:
  explicit Values(Emission& emission) : Part(emission) {}

  // Declares the row values that are known in a phase, and stores those that the kernel outputs.
  void emit_row_values(int phase);
  // The value of an element node: at element `v` of the current chunk, or at the row's first element.
  std::string element_value(kernel::NodeIndex node, bool first_element) const;
  std::string first_value(kernel::NodeIndex load) const;  // of a row, in memory
  std::string offset(int arg) const;                      // of the current chunk from the row's first element
  std::string copied_chunk(int arg) const;                // the thread's chunk `k` in local memory

  static std::string name(kernel::NodeIndex node) { return join("n", node); }
  static std::string operand(const kernel::Node& node, int k) { return name(node.operands[static_cast<size_t>(k)]); }

 private:
  // the element of the arg at that offset, in the compute type
  std::string load_at(int arg, const std::string& offset) const;
  // A load_entry whose entry starts at `offset` if it is the first.
  std::string load_entry(const kernel::Node& node, const std::string& offset) const;
  // A call of the node's function (entry_sums in emit_kernel.cpp) for entries that start at `offset`.
  std::string sum_entries(kernel::NodeIndex node, const std::string& offset) const;
  std::string map_value(const kernel::Node& node) const;
  static std::string centered(const kernel::Node& node);
  std::string index_at(const kernel::Node& node, const std::string& inside) const;
};

}  // namespace lamina::gpu
