// Shared by the sweeps: a text that a callback writes, and logical tensors through the C interface.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "graph/text.h"
#include "starve/sweep.h"

namespace starve {

inline lamina_graph_logical_tensor_t f32(size_t id, std::vector<int64_t> dims,
                                         lamina_graph_tensor_property_t property = lamina_graph_tensor_property_undef) {
  lamina_graph_logical_tensor_t tensor;
  lamina_dims_t extents{};
  std::copy(dims.begin(), dims.end(), extents);
  EXPECT_EQ(lamina_graph_logical_tensor_init_with_dims(&tensor, id, lamina_f32, static_cast<int32_t>(dims.size()), extents,
                                                       lamina_graph_layout_type_strided, property),
            lamina_success);
  return tensor;
}

// A lamina_text_f with a fixed buffer, so that receiving a text allocates nothing.
struct Text {
  size_t length = 0;
  std::vector<char> bytes = std::vector<char>(size_t{1} << 20);
  static void take(void* user, const char* text, size_t length) {
    auto& self = *static_cast<Text*>(user);
    self.length = std::min(length, self.bytes.size());
    std::copy_n(text, self.length, self.bytes.begin());
  }
  std::string str() const { return {bytes.data(), length}; }
};

inline std::string json_of(const_lamina_graph_graph_t graph) {
  Text text;
  EXPECT_EQ(lamina_graph_graph_write_json(graph, Text::take, &text), lamina_success);
  return text.str();
}

// Fails the test if a call that should succeed without memory does not.
#define LAMINA_EXPECT_OK(call) EXPECT_EQ(call, lamina_success) << lamina_last_error()

}  // namespace starve
