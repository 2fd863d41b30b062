// Column sums: partial sums per block of rows, in registers or in memory, and the kernel that adds them.
#pragma once

#include <string>
#include <vector>

#include "backends/gpu/emit/emission.h"

namespace lamina::gpu {

class ColumnSums : private Part {
 public:
  explicit ColumnSums(Emission& emission);

  int count() const { return count_; }
  void begin();  // of the current block of rows
  void add(kernel::NodeIndex root, const std::string& value);
  void store();  // sums that were in registers
  // NAME_columns, after its signature.
  void emit_kernel();
  std::string parameters() const;  // of that function, after the buffers

 private:
  bool is_wide() const;
  void join_places(const std::string& suffix);
  void begin_entry(const std::string& groups);
  std::string place_of_entry(int a) const;

  NodeList sums_;
  int count_;
};

}  // namespace lamina::gpu
