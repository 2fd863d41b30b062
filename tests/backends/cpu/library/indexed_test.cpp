// Gather and ScatterAdd on the CPU: the reference's values, the same bits for any number of threads, any strides. An index that
// is out of range raises an error that names it, and reads no memory.
#include <gmock/gmock.h>

#include <functional>

#include "backends/cpu/library/library_check.h"
#include "interface/element.h"
#include "interface/type_rules.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32, s32 = DataType::s32, s64 = DataType::s64;

// Returns the message of the exception that `body` throws.
std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::index_out_of_range);
    return error.what();
  }
  return "nothing was thrown";
}

Buffer indices_of(const LogicalTensor& tensor, const std::vector<int64_t>& values) {
  Buffer buffer = buffer_for(tensor);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    if (tensor.dtype == s64)
      store_element(buffer.data(), place, values[i]);
    else
      store_element(buffer.data(), place, static_cast<int32_t>(values[i]));
  }
  return buffer;
}

int64_t number_of(const Dims& shape) { return checked_product(shape, "indices"); }

// Indices from both ends, many of them repeated.
std::vector<int64_t> some_indices(int64_t count, int64_t extent) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(i * i * 7 % (2 * extent) - extent);
  return values;
}

struct Case {
  DataType dtype = f32, type = s64;
  Dims table{50, 24}, indices{3, 7};
  int64_t axis = 0;
  Dims strides = {};  // of the data that is read
};

Dims replaced(Dims shape, int64_t axis, const Dims& indices) {
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, indices.begin(), indices.end());
  return shape;
}

void expect_gathered(const Case& c) {
  GraphBuilder g;
  const auto src = g.input(c.dtype, c.table, c.strides), indices = g.input(c.type, c.indices);
  g.op(OpKind::Gather, {src, indices}, {{"axis", c.axis}});
  const Buffer data = indices_of(g.tensor(indices), some_indices(number_of(c.indices), c.table[static_cast<size_t>(c.axis)]));
  expect_library_matches_reference(g.finish(), 0, {{indices, data}});
}

void expect_scattered(const Case& c) {
  GraphBuilder g;
  const int64_t extent = c.table[static_cast<size_t>(c.axis)];
  const auto src = g.input(c.dtype, replaced(c.table, c.axis, c.indices), c.strides), indices = g.input(c.type, c.indices);
  g.op(OpKind::ScatterAdd, {src, indices}, {{"axis", c.axis}, {"extent", extent}, {"ignore_index", int64_t{0}}});
  const Buffer data = indices_of(g.tensor(indices), some_indices(number_of(c.indices), extent));
  expect_library_matches_reference(g.finish(), 1e-6, {{indices, data}});
}

TEST(Gather, OfAnyTypeOfWholeBytes) {
  for (const DataType dtype : all_types())
    if (bits_of(dtype) >= 8 && dtype != s64) expect_gathered({.dtype = dtype});
}

TEST(Gather, AlongAnyAxis) {
  for (const int64_t axis : {0, 1, 2}) {
    expect_gathered({.table = {5, 6, 7}, .indices = {9}, .axis = axis});
    expect_gathered({.table = {5, 6, 7}, .indices = {}, .axis = axis, .strides = {1, 40, 5}});
    expect_gathered({.type = s32, .table = {5, 6, 7}, .indices = {2, 1, 3}, .axis = axis, .strides = {100, 8, 1}});
  }
}

TEST(Gather, ManyRowsAndLongOnes) {
  expect_gathered({.table = {1000, 3}, .indices = {20000}});
  expect_gathered({.table = {4, 40000}, .indices = {9}});
}

TEST(Gather, OfNothing) {
  expect_gathered({.table = {5, 0}, .indices = {3}});
  expect_gathered({.table = {5, 4}, .indices = {0}});
}

TEST(ScatterAdd, AddsInTheOrderOfTheIndices) {
  for (const DataType dtype : {f32, DataType::bf16, DataType::f16, DataType::f64})
    for (const int64_t axis : {0, 1}) expect_scattered({.dtype = dtype, .axis = axis});
}

TEST(ScatterAdd, ManyRowsAndLongOnes) {
  expect_scattered({.table = {13, 700}, .indices = {3000}});
  expect_scattered({.type = s32, .table = {5000, 1}, .indices = {40, 10}});
  expect_scattered({.table = {3, 5, 6}, .indices = {4}, .axis = 2});
}

TEST(ScatterAdd, OfStridedRows) { expect_scattered({.table = {6, 5}, .indices = {4}, .strides = {1, 9}}); }

TEST(ScatterAdd, OfNothingIsZero) {
  expect_scattered({.table = {5, 4}, .indices = {0}});
  expect_scattered({.table = {5, 0}, .indices = {3}});
}

// The test includes a table without entries.
TEST(IndexOutside, IsNamedByBothEngines) {
  for (const Backend* backend : {&cpu_backend(), &reference_backend()})
    for (const int64_t extent : {4, 0}) {
      GraphBuilder g;
      const auto src = g.input(f32, {extent, 3}), indices = g.input(s64, {2, 2});
      g.named("embed").op(OpKind::Gather, {src, indices});
      const Graph graph = with_strides(g.finish());
      const Subgraph subgraph{graph, graph.inputs(), graph.outputs()};
      const Buffer table = buffer_for(g.tensor(src)), data = indices_of(g.tensor(indices), {0, 3, -5, 0});
      Buffer dst = buffer_for(graph.tensor(graph.outputs()[0]));
      const auto executable = compiler::compile_subgraph(subgraph, *backend);
      const std::vector<const void*> in{table.data(), data.data()};
      const std::vector<void*> out{dst.data()};
      EXPECT_EQ(message_of([&] { executable->execute({}, in, out); }),
                extent == 0
                    ? "Gather \"embed\": input indices holds 0 at position [0, 0], allowed is none, the axis has no entries"
                    : "Gather \"embed\": input indices holds -5 at position [1, 0], allowed is -4..3");
    }
}

}  // namespace
}  // namespace lamina::testing
