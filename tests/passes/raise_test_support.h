// Formulas as small ops and the expected result of raise_decomposed: the structure after raising, and the same numbers from the
// reference before and after.
#pragma once

#include <functional>
#include <map>
#include <random>
#include <string>

#include "backends/reference/op_case.h"
#include "passes/canonicalize.h"
#include "passes/raise_decomposed.h"
#include "passes/verify_graph.h"
#include "passes_test_support.h"

namespace lamina::testing {

class Writer;

// A value of the graph under construction; each C++ operator on values adds the corresponding op.
struct V {
  Writer* writer;
  uint64_t id;
};

using Axes = std::vector<int64_t>;

class Writer {
 public:
  explicit Writer(Dims shape = {4, 8}, DataType dtype = f32) : shape_(std::move(shape)), dtype_(dtype) {}

  GraphBuilder g;
  Axes axes{-1};
  bool keep_dims = true;

  V input(Dims shape, DataType dtype = DataType::undef) {
    return {this, g.input(dtype == undef ? dtype_ : dtype, std::move(shape))};
  }
  V x() {
    return once("x", [&] { return input(shape_); });
  }
  V gamma() {
    return once("gamma", [&] { return input(row()); });
  }
  V beta() {
    return once("beta", [&] { return input(row()); });
  }
  V number(double value, Dims shape = {}) { return {this, g.number(value, dtype_, std::move(shape))}; }

  V op(OpKind kind, const std::vector<V>& inputs, Attributes attributes = {}, DataType dtype = DataType::undef) {
    std::vector<uint64_t> ids;
    for (const V& input : inputs) ids.push_back(input.id);
    return {this, g.op(kind, ids, std::move(attributes), dtype)};
  }
  V reduce(OpKind kind, V a) { return op(kind, {a}, {{"axes", axes}, {"keep_dims", keep_dims}}); }
  V cast(V a, DataType dtype) { return op(OpKind::TypeCast, {a}, {}, dtype); }
  V reshape(V a, Dims shape) { return op(OpKind::StaticReshape, {a}, {{"shape", shape}, {"special_zero", false}}); }

  const Dims& shape() const { return shape_; }
  Dims row() const { return {shape_.end() - static_cast<int64_t>(axes.size()), shape_.end()}; }
  double row_size() const { return static_cast<double>(checked_product(row(), "row")); }
  void compute_in(DataType dtype) { dtype_ = dtype; }

 private:
  static constexpr DataType undef = DataType::undef;
  template <typename Make>
  V once(const std::string& name, Make make) {
    const auto found = inputs_.find(name);
    return found != inputs_.end() ? found->second : inputs_.emplace(name, make()).first->second;
  }

  Dims shape_;
  DataType dtype_;
  std::map<std::string, V> inputs_;
};

inline V operator+(V a, V b) { return a.writer->op(OpKind::Add, {a, b}); }
inline V operator-(V a, V b) { return a.writer->op(OpKind::Subtract, {a, b}); }
inline V operator*(V a, V b) { return a.writer->op(OpKind::Multiply, {a, b}); }
inline V operator/(V a, V b) { return a.writer->op(OpKind::Divide, {a, b}); }
inline V operator+(V a, double b) { return a + a.writer->number(b); }
inline V operator-(V a, double b) { return a - a.writer->number(b); }
inline V operator*(V a, double b) { return a * a.writer->number(b); }
inline V operator/(V a, double b) { return a / a.writer->number(b); }
inline V operator+(double a, V b) { return b.writer->number(a) + b; }
inline V operator-(double a, V b) { return b.writer->number(a) - b; }
inline V operator*(double a, V b) { return b.writer->number(a) * b; }
inline V operator/(double a, V b) { return b.writer->number(a) / b; }
inline V operator-(V a) { return a * -1.0; }

inline V pow(V a, float exponent) { return a.writer->op(OpKind::Pow, {a}, {{"beta", exponent}}); }
inline V unary(OpKind kind, V a) { return a.writer->op(kind, {a}); }
inline V square(V a) { return unary(OpKind::Square, a); }
inline V sqrt(V a) { return unary(OpKind::Sqrt, a); }
inline V exp(V a) { return unary(OpKind::Exp, a); }
inline V log(V a) { return unary(OpKind::Log, a); }
inline V tanh(V a) { return unary(OpKind::Tanh, a); }
inline V sigmoid(V a) { return unary(OpKind::Sigmoid, a); }
inline V reciprocal(V a) { return unary(OpKind::Reciprocal, a); }
inline V mean(V a) { return a.writer->reduce(OpKind::ReduceMean, a); }
inline V sum(V a) { return a.writer->reduce(OpKind::ReduceSum, a); }
inline V max(V a) { return a.writer->reduce(OpKind::ReduceMax, a); }

// A named spelling of a part of a formula.
using Unary = std::pair<const char*, std::function<V(V)>>;
using Binary = std::pair<const char*, std::function<V(V, V)>>;

inline std::string kinds_of(const Graph& graph) {
  std::string text;
  for (const Op& op : graph.ops()) text += (text.empty() ? "" : " ") + std::string(name_of(op.kind));
  return text;
}

// Returns the graph after raising, or the graph itself if nothing is raised. Verifies it and checks that it has every user op.
inline Graph raised(const Graph& graph) {
  const std::optional<Graph> result = raise_decomposed(graph);
  if (!result) return graph;
  verify_graph(*result, "raise_decomposed");
  std::multiset<uint64_t> before, after;
  for (const Op& op : graph.ops()) before.insert(op.id);
  for (const Op& op : result->ops()) {
    after.insert(op.id);
    for (const Origin& origin : op.origins) after.insert(origin.id);
  }
  EXPECT_EQ(before, after) << "an op of the user is lost or counted twice";
  return *result;
}

// Returns the graph outputs by tensor id; the seed of an input is its id, and constants have their values.
inline std::map<uint64_t, Numbers> run_reference(const Graph& graph) {
  std::vector<std::vector<std::byte>> memory;
  std::vector<const void*> pointers;
  const std::vector<ValueIndex> inputs = graph.inputs(), outputs = graph.outputs();
  for (const ValueIndex input : inputs) {
    const LogicalTensor& tensor = graph.tensor(input);
    std::mt19937 random(static_cast<unsigned>(tensor.id) + 1);
    Numbers numbers(static_cast<size_t>(tensor.element_count()));
    for (double& number : numbers)
      number = graph.value(input).constant.value_or(std::uniform_real_distribution<double>(-2, 3)(random));
    memory.push_back(memory_of(tensor, numbers));
  }
  for (const auto& bytes : memory) pointers.push_back(bytes.data());
  const auto tensors = reference::run(graph, inputs, outputs, pointers);
  std::map<uint64_t, Numbers> results;
  for (size_t i = 0; i < outputs.size(); ++i) results[graph.tensor(outputs[i]).id] = tensors[i].values;
  return results;
}

inline void expect_same_numbers(const Graph& graph, const Graph& raised_graph, double tolerance = 2e-6) {
  const auto before = run_reference(graph), after = run_reference(raised_graph);
  ASSERT_EQ(before.size(), after.size());
  for (const auto& [id, numbers] : before) {
    ASSERT_TRUE(after.contains(id)) << "tensor " << id;
    expect_close(after.at(id), numbers, tolerance);
  }
}

// Expects that raising gives ops of these kinds and the same numbers.
inline Graph expect_raised(Writer& writer, const std::string& kinds, double tolerance = 2e-6) {
  const Graph graph = writer.g.finish();
  const Graph result = raised(graph);
  EXPECT_EQ(kinds_of(result), kinds);
  expect_same_numbers(graph, result, tolerance);
  return result;
}

// Expects that nothing is raised.
inline void expect_unchanged(Writer& writer) {
  const Graph graph = writer.g.finish();
  const std::optional<Graph> result = raise_decomposed(graph);
  EXPECT_FALSE(result) << kinds_of(*result);
}

}  // namespace lamina::testing
