// Shared by the tests of dumps: texts of small files, and small tensors.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "interface/json/json.h"
#include "interface/status.h"

namespace lamina {

inline constexpr const char* kFile = "graph.json";

inline std::string tensor_json(uint64_t id, const std::string& rest = R"("dtype": "f32", "shape": [2, 3], "stride": [3, 1],
    "layout_type": "strided", "property_type": "undef")") {
  return join("{\"id\": ", id, ", ", rest, "}");
}

// One op with the given attributes, from tensor 0 to tensor 1.
inline std::string op_json(const std::string& kind, const std::string& attributes = "", uint64_t id = 7, uint64_t in = 0,
                           uint64_t out = 1) {
  return join("{\"id\": ", id, ", \"name\": \"it\", \"kind\": \"", kind, "\", \"attrs\": {", attributes, "}, \"inputs\": [",
              tensor_json(in), "], \"outputs\": [", tensor_json(out), "]}");
}

inline std::string file_json(const std::string& ops) { return "{\"version\": \"3.1.0\", \"graph\": [" + ops + "]}"; }

inline std::string error_of(const std::string& text) {
  try {
    Graph graph = read_graph_json(text, kFile);
    finalize_graph(graph, kFile);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

inline Graph one_op(const std::string& kind, const std::string& attributes) {
  return read_graph_json(file_json(op_json(kind, attributes)), kFile);
}

template <typename T>
T attribute(const Graph& graph, const char* name) {
  return graph.ops().at(0).attribute<T>(name);
}

inline LogicalTensor tensor(uint64_t id, DataType dtype, Dims shape) {
  LogicalTensor result;
  result.id = id;
  result.dtype = dtype;
  result.strides = dense_strides(shape);
  result.shape = std::move(shape);
  result.layout = LayoutType::strided;
  return result;
}

}  // namespace lamina
