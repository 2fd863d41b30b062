// Where the arg of a step is in memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lamina::kernel {

// The source of an arg's memory.
struct Binding {
  // none: an absent port; positions: 0, 1, 2, ... as s32.
  enum class Source { none, input, output, arena, table, positions } source = Source::none;
  size_t index = 0;   // port, byte offset in the arena, or table number
  int64_t bytes = 0;  // from the first byte of that memory

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.source), visit(self.index), visit(self.bytes);
  }
};

}  // namespace lamina::kernel
