// Graphs that run in tiles: the reference's values, the same bits for any number of threads, and the bits of a plan that runs
// the same steps one after another on whole tensors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/library/library_check.h"
#include "kernels/plan.h"
#include "passes/fusion/fuse.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f16 = DataType::f16;

std::vector<Buffer> run_untiled(const Graph& graph, const LibraryRun& tiled) {
  const Subgraph subgraph{with_strides(graph), graph.inputs(), graph.outputs()};
  const std::vector<FusionGroup> groups = fuse(subgraph.graph, std::vector<bool>(subgraph.graph.ops().size(), true), true);
  const auto executable = cpu_backend().compile(std::make_shared<const kernel::Plan>(kernel::make_plan(
      subgraph.graph, subgraph.inputs, subgraph.outputs, groups, one_by_one(groups.size()), *cpu_backend().plan_target())));
  std::vector<const void*> in;
  for (const LogicalTensor& tensor : tiled.inputs) in.push_back(tiled.buffers.at(tensor.id).data());
  std::vector<Buffer> buffers;
  std::vector<void*> out;
  for (const LogicalTensor& tensor : tiled.outputs) out.push_back(buffers.emplace_back(buffer_for(tensor)).data());
  executable->execute({}, in, out);
  return buffers;
}

// Expects that the first step runs in tiles too. Casts of operands to a type that the library takes may precede it.
LibraryRun expect_tiled(const Graph& graph, double error) {
  LibraryRun run = expect_library_matches_reference(graph, error);
  const auto first = std::find_if(run.info.kernel_texts.begin(), run.info.kernel_texts.end(),
                                  [](const std::string& text) { return !text.starts_with("kernel type_cast_"); });
  EXPECT_THAT(first == run.info.kernel_texts.end() ? "" : *first, HasSubstr("tile of "));
  if (!rows_are_their_own(run)) return run;
  const std::vector<Buffer> untiled = run_untiled(graph, run);
  for (size_t o = 0; o < untiled.size(); ++o) EXPECT_TRUE(untiled[o] == run.buffers.at(run.outputs[o].id)) << "output " << o;
  return run;
}

struct Attention {
  Dims q = {2, 3, 150, 32}, k = {2, 3, 90, 32}, v = {2, 3, 90, 48};
  DataType dtype = f32;
  bool causal = false, has_mask = false, keeps_stats = false, drops = false;
};

// Drops half of the elements.
std::vector<uint64_t> dropout(GraphBuilder& g, uint64_t x, uint64_t seed, bool has_mask) {
  return g.multi(OpKind::Dropout, {x, seed, g.number(7, DataType::s64), g.number(0.5)}, {},
                 {g.tensor(x).dtype, has_mask ? DataType::u8 : DataType::undef});
}

Graph attention(const Attention& a) {
  GraphBuilder g;
  const auto q = g.input(a.dtype, a.q), k = g.input(a.dtype, a.k), v = g.input(a.dtype, a.v);
  auto scores = g.op(OpKind::MatMul, {q, k}, {{"transpose_b", true}}, f32);
  scores = g.op(OpKind::Multiply, {scores, g.number(0.125)});
  if (a.has_mask) scores = g.op(OpKind::Add, {scores, g.input(f32, {a.q[0], 1, 1, a.k[2]})});
  if (a.causal) {
    const auto row = g.op(OpKind::GenIndex, {scores}, {{"axis", int64_t{-2}}}, DataType::s32);
    const auto column = g.op(OpKind::GenIndex, {scores}, {{"axis", int64_t{-1}}}, DataType::s32);
    const auto seen = g.op(OpKind::GreaterEqual, {row, column}, {}, DataType::boolean);
    scores = g.op(OpKind::Select, {seen, scores, g.number(-1e30)}, {}, f32);
  }
  auto weights = g.multi(OpKind::SoftMax, {scores}, {{"axis", int64_t{-1}}}, {a.dtype, a.keeps_stats ? f32 : DataType::undef});
  if (a.keeps_stats) g.output(weights[1]);
  if (a.drops) weights[0] = dropout(g, weights[0], g.scalar(DataType::s64), true)[0];
  g.op(OpKind::MatMul, {weights[0], v});
  return g.finish();
}

TEST(TiledPlan, AttentionHasTheBitsOfItsStepsOneByOne) {
  expect_tiled(attention({}), 1e-5);
  expect_tiled(attention({.has_mask = true}), 1e-5);
  expect_tiled(attention({.causal = true}), 1e-5);
  expect_tiled(attention({.keeps_stats = true}), 1e-5);
}

// A tile draws the random numbers of its position in the whole tensor.
TEST(TiledPlan, DropoutHasTheBitsOfItsStepsOneByOne) {
  expect_tiled(attention({.drops = true}), 1e-5);
  expect_tiled(attention({.dtype = bf16, .causal = true, .drops = true}), 2e-2);
}

// ---- gradients: sums over the rows of tiles

struct Backward {
  Dims batch = {1, 2};
  int64_t queries = 300, keys = 700, width = 32;
  int64_t shared_by = 1;  // number of query heads per key head
  DataType dtype = f32;
  bool has_mask = false, causal = false, drops = false, has_softmax = false;
};

// Attention's gradients in the form of frameworks: the graph recomputes the weights from the scores and their statistics.
Graph backward(const Backward& b) {
  GraphBuilder g;
  const auto tensor = [&](int64_t heads, int64_t rows, int64_t columns, DataType dtype) {
    Dims shape = b.batch;
    if (b.shared_by > 1) shape.push_back(heads);
    shape.insert(shape.end(), {rows, columns});
    return g.input(dtype, shape);
  };
  const auto q = tensor(b.shared_by, b.queries, b.width, b.dtype), k = tensor(1, b.keys, b.width, b.dtype),
             v = tensor(1, b.keys, b.width, b.dtype), dst = tensor(b.shared_by, b.queries, b.width, b.dtype),
             diff_dst = tensor(b.shared_by, b.queries, b.width, b.dtype);
  const auto seed = g.scalar(DataType::s64);
  const auto narrow = [&](uint64_t x) { return b.dtype == f32 ? x : g.op(OpKind::TypeCast, {x}, {}, b.dtype); };
  auto scores = g.op(OpKind::MatMul, {q, k}, {{"transpose_b", true}}, f32);
  scores = g.op(OpKind::Multiply, {scores, g.number(0.2)});
  if (b.has_mask) scores = g.op(OpKind::Add, {scores, g.input(f32, {1, b.queries, b.keys})});
  if (b.causal) {
    const auto row = g.op(OpKind::GenIndex, {scores}, {{"axis", int64_t{-2}}}, DataType::s32);
    const auto column = g.op(OpKind::GenIndex, {scores}, {{"axis", int64_t{-1}}}, DataType::s32);
    scores = g.op(OpKind::Select, {g.op(OpKind::GreaterEqual, {row, column}, {}, DataType::boolean), scores, g.number(-1e30)},
                  {}, f32);
  }
  // The clamp bounds the exponentials: the statistics are random and do not match the scores.
  const auto exponential = [&](uint64_t x) {
    return g.op(OpKind::Exp, {g.op(OpKind::Clamp, {x}, {{"min", -2.0f}, {"max", 2.0f}})});
  };
  const auto weights = b.has_softmax ? g.op(OpKind::SoftMax, {scores}, {{"axis", int64_t{-1}}})
                                     : exponential(g.op(OpKind::Subtract, {scores, tensor(b.shared_by, b.queries, 1, f32)}));
  const auto kept = b.drops ? dropout(g, weights, seed, false)[0] : weights;
  const auto dv = g.op(OpKind::MatMul, {narrow(kept), diff_dst}, {{"transpose_a", true}});
  auto dp = g.op(OpKind::MatMul, {diff_dst, v}, {{"transpose_b", true}}, f32);
  if (b.drops) dp = dropout(g, dp, seed, false)[0];
  const auto products = g.op(OpKind::Multiply, {dst, diff_dst}, {}, f32);
  const auto delta = g.op(OpKind::ReduceSum, {products}, {{"axes", std::vector<int64_t>{-1}}, {"keep_dims", true}});
  const auto ds = narrow(g.op(OpKind::Multiply, {weights, g.op(OpKind::Subtract, {dp, delta})}));
  g.op(OpKind::MatMul, {ds, k});
  const auto dk = g.op(OpKind::MatMul, {ds, q}, {{"transpose_a", true}});
  if (b.shared_by == 1) return g.finish();
  for (const auto gradient : {dk, dv})
    g.op(OpKind::ReduceSum, {gradient}, {{"axes", std::vector<int64_t>{-3}}, {"keep_dims", true}});
  return g.finish();
}

LibraryRun expect_sums(const Graph& graph, double error, const std::map<uint64_t, Buffer>& given = {}) {
  LibraryRun run = expect_library_matches_reference(graph, error, given);
  EXPECT_TRUE(std::any_of(run.info.kernel_texts.begin(), run.info.kernel_texts.end(),
                          [](const std::string& text) { return text.find("which add to ") != std::string::npos; }));
  return run;
}

TEST(TiledPlan, GradientsAddUpOverTiles) {
  expect_sums(backward({}), 1e-5);
  expect_sums(backward({.keys = 577, .has_mask = true}), 1e-5);
  expect_sums(backward({.queries = 640, .causal = true}), 1e-5);
  expect_sums(backward({.queries = 1100, .keys = 300}), 1e-5);  // whole rows
  expect_sums(backward({.queries = 1100, .has_softmax = true}), 1e-4);
}

TEST(TiledPlan, GradientsInSixteenBits) {
  for (const DataType dtype : {bf16, f16}) {
    SCOPED_TRACE(name_of(dtype));
    expect_sums(backward({.dtype = dtype}), dtype == bf16 ? 2e-2 : 3e-3);
    expect_sums(backward({.queries = 1100, .dtype = dtype, .causal = true}), dtype == bf16 ? 2e-2 : 3e-3);
  }
}

TEST(TiledPlan, GradientsOfSharedHeads) {
  expect_sums(backward({.shared_by = 3}), 1e-5);
  expect_sums(backward({.shared_by = 2, .dtype = bf16, .has_mask = true}), 2e-2);
}

// The backward drops the same elements, in blocks of rows and columns, as the reference.
TEST(TiledPlan, GradientsBehindADropout) {
  expect_sums(backward({.drops = true}), 1e-5);
  expect_sums(backward({.queries = 1100, .shared_by = 2, .dtype = bf16, .drops = true}), 2e-2);
}

// With sixteen entries, each thread runs all rows of one entry; with one entry, threads share its rows.
TEST(TiledPlan, AnEntrysGradientsAreItsOwn) {
  for (const DataType dtype : {f32, bf16}) {
    SCOPED_TRACE(name_of(dtype));
    const Backward all{.batch = {16, 1}, .queries = 1030, .keys = 520, .width = 16, .dtype = dtype};
    Backward one = all;
    one.batch = {1, 1};
    const LibraryRun whole = expect_sums(backward(all), 2e-2);
    std::map<uint64_t, Buffer> given;
    for (const LogicalTensor& tensor : whole.inputs) given[tensor.id] = whole.buffers.at(tensor.id);
    const LibraryRun part = expect_sums(backward(one), 2e-2, given);
    if (!rows_are_their_own(whole)) continue;
    for (size_t o = 0; o < part.outputs.size(); ++o) {
      const std::vector<double> many = elements(whole.outputs[o], whole.buffers.at(whole.outputs[o].id)),
                                first = elements(part.outputs[o], part.buffers.at(part.outputs[o].id));
      EXPECT_TRUE(std::equal(first.begin(), first.end(), many.begin())) << "output " << o;
    }
  }
}

TEST(TiledPlan, AttentionInSixteenBits) {
  for (const DataType dtype : {bf16, f16}) {
    SCOPED_TRACE(name_of(dtype));
    expect_tiled(attention({.dtype = dtype}), dtype == bf16 ? 2e-2 : 3e-3);
    expect_tiled(attention({.dtype = dtype, .causal = true, .has_mask = true}), dtype == bf16 ? 2e-2 : 3e-3);
  }
}

TEST(TiledPlan, HeadsMayShareKeysAndValues) {
  expect_tiled(attention({.q = {2, 6, 150, 32}, .k = {2, 1, 90, 32}, .v = {2, 1, 90, 48}}), 1e-5);
}

TEST(TiledPlan, RowsThatAreNoMultipleOfATile) {
  expect_tiled(attention({.q = {3, 4, 129, 32}, .k = {3, 4, 90, 32}, .v = {3, 4, 90, 16}}), 1e-5);
}

// oneDNN copies values with a power-of-two row stride before it multiplies many rows by them, so lamina packs them in advance.
// The last tile has few rows and must use the packed values too.
TEST(TiledPlan, TheLastTileTakesValuesPackedAsTheOthersDo) {
  for (const int64_t rows : {129, 133, 150})
    expect_tiled(attention({.q = {1, 8, rows, 32}, .k = {1, 8, 512, 32}, .v = {1, 8, 512, 512}}), 1e-4);
}

// Packed keys and values of all heads would need 64 MiB.
TEST(TiledPlan, ManyKeysArePackedAFewHeadsAtATime) {
  const LibraryRun run =
      expect_tiled(attention({.q = {1, 64, 33, 128}, .k = {1, 64, 1024, 128}, .v = {1, 64, 1024, 128}}), 2e-4);
  EXPECT_LT(run.info.workspace_bytes, 48u << 20);
  expect_tiled(attention({.q = {2, 24, 33, 128}, .k = {2, 1, 1024, 128}, .v = {2, 24, 1024, 128}}), 2e-4);
}

// ---- few rows

// Rows of heads that share keys and values are one tile, and no tile packs keys or values that it alone reads.
TEST(TiledPlan, HeadsThatShareKeysDecodeTogether) {
  for (const int64_t queries : {1, 2, 4}) {
    const LibraryRun run = expect_tiled(
        attention({.q = {2, 4, 6, queries, 32}, .k = {2, 4, 1, 90, 32}, .v = {2, 4, 1, 90, 48}, .has_mask = false}), 1e-5);
    ASSERT_FALSE(run.info.kernel_texts.empty());
    EXPECT_THAT(run.info.kernel_texts[0], HasSubstr("tile of 6 rows, 8 tiles"));
    for (const std::string& kernel : run.info.kernels) EXPECT_THAT(kernel, Not(HasSubstr("weights packed")));
  }
}

// A query alone has the bits that it has among others.
TEST(TiledPlan, AQueryAloneHasItsBits) {
  const Dims keys{1, 8, 300, 32};
  const LibraryRun many = expect_tiled(attention({.q = {1, 8, 100, 32}, .k = keys, .v = keys}), 1e-5);
  std::map<uint64_t, Buffer> given;
  for (const LogicalTensor& tensor : many.inputs) given[tensor.id] = many.buffers.at(tensor.id);
  Buffer& queries = given.at(many.inputs[0].id);
  for (size_t head = 0; head < 8; ++head)  // the first query of each head
    std::copy_n(queries.begin() + static_cast<std::ptrdiff_t>(head * 100 * 32 * 4), 32 * 4,
                queries.begin() + static_cast<std::ptrdiff_t>(head * 32 * 4));
  queries.resize(size_t{8} * 32 * 4);
  const LibraryRun one = expect_library_matches_reference(attention({.q = {1, 8, 1, 32}, .k = keys, .v = keys}), 1e-5, given);
  const std::vector<double> all = elements(many.outputs[0], many.buffers.at(many.outputs[0].id)),
                            first = elements(one.outputs[0], one.buffers.at(one.outputs[0].id));
  for (size_t head = 0; head < 8; ++head)
    EXPECT_TRUE(std::equal(first.begin() + static_cast<std::ptrdiff_t>(head * 32),
                           first.begin() + static_cast<std::ptrdiff_t>(head * 32 + 32),
                           all.begin() + static_cast<std::ptrdiff_t>(head * 100 * 32)))
        << "head " << head;
}

// ---- causal masks

struct Causal {
  Dims q = {1, 8, 300, 32}, kv = {1, 8, 300, 32};
  DataType dtype = f32;
  bool is_strict = false, keeps_hidden_first = false;
  double offset = 0;            // a number that is known
  bool has_offsets = false;     // two integers that are known when the graph runs
  bool hidden_is_known = true;  // -infinity
};

Graph causal(const Causal& c) {
  GraphBuilder g;
  const auto q = g.input(c.dtype, c.q), k = g.input(c.dtype, c.kv), v = g.input(c.dtype, c.kv);
  auto scores = g.op(OpKind::MatMul, {q, k}, {{"transpose_b", true}}, f32);
  scores = g.op(OpKind::Multiply, {scores, g.number(0.125)});
  auto row = g.op(OpKind::GenIndex, {scores}, {{"axis", int64_t{-2}}}, DataType::s32);
  const auto column = g.op(OpKind::GenIndex, {scores}, {{"axis", int64_t{-1}}}, DataType::s32);
  if (c.offset != 0) row = g.op(OpKind::Add, {row, g.number(c.offset, DataType::s32)});
  if (c.has_offsets) row = g.op(OpKind::Subtract, {g.op(OpKind::Add, {row, g.scalar(DataType::s32)}), g.scalar(DataType::s32)});
  const auto hidden = c.hidden_is_known ? g.number(-INFINITY) : g.scalar(f32);
  if (c.keeps_hidden_first) {
    const auto is_hidden = g.op(c.is_strict ? OpKind::GreaterEqual : OpKind::Greater, {column, row}, {}, DataType::boolean);
    scores = g.op(OpKind::Select, {is_hidden, hidden, scores}, {}, f32);
  } else {
    const auto seen = g.op(c.is_strict ? OpKind::Less : OpKind::LessEqual, {column, row}, {}, DataType::boolean);
    scores = g.op(OpKind::Select, {seen, scores, hidden}, {}, f32);
  }
  const auto weights = g.op(OpKind::SoftMax, {scores}, {{"axis", int64_t{-1}}, {"mode", std::string("inf_as_zero")}}, c.dtype);
  g.op(OpKind::MatMul, {weights, v});
  return g.finish();
}

template <typename T>
Buffer buffer_of(const std::vector<T>& values) {
  Buffer buffer(values.size() * sizeof(T));
  std::memcpy(buffer.data(), values.data(), buffer.size());
  return buffer;
}

// The inputs of `graph` that are numbers: known ones, and others.
std::map<uint64_t, Buffer> numbers_of(const Graph& graph, const std::vector<int32_t>& offsets = {}, float hidden = 0) {
  std::map<uint64_t, Buffer> given;
  size_t offset = 0;
  for (const ValueIndex value : graph.inputs()) {
    const LogicalTensor& tensor = graph.tensor(value);
    if (tensor.rank() != 0) continue;
    const std::optional<double>& known = graph.value(value).constant;
    given[tensor.id] = tensor.dtype == f32
                           ? buffer_of(std::vector{known ? static_cast<float>(*known) : hidden})
                           : buffer_of(std::vector{known ? static_cast<int32_t>(*known) : offsets.at(offset++)});
  }
  return given;
}

// Runs the graph in tiles that leave out hidden columns, and compares with all columns, step by step.
void expect_columns_left_out(const Causal& c, const std::vector<int32_t>& offsets = {}, float hidden = 0) {
  const Graph graph = causal(c);
  const LibraryRun run = expect_library_matches_reference(graph, 1e-4, numbers_of(graph, offsets, hidden));
  ASSERT_FALSE(run.info.kernel_texts.empty());
  EXPECT_THAT(run.info.kernel_texts[0], HasSubstr("which leave out hidden columns"));
  EXPECT_TRUE(run_untiled(graph, run)[0] == run.buffers.at(run.outputs[0].id));
}

TEST(CausalTiles, HaveTheBitsOfAllColumns) {
  expect_columns_left_out({});
  expect_columns_left_out({.is_strict = true});
  expect_columns_left_out({.keeps_hidden_first = true});
  expect_columns_left_out({.is_strict = true, .keeps_hidden_first = true});
  expect_columns_left_out({.q = {1, 8, 200, 32}, .kv = {1, 8, 500, 32}, .offset = 300});
  expect_columns_left_out({.q = {1, 8, 300, 32}, .kv = {1, 8, 200, 32}, .offset = -40});
  expect_columns_left_out({.q = {1, 2, 4, 300, 32}, .kv = {1, 2, 1, 300, 32}});
  expect_columns_left_out({.q = {1, 1, 300, 16}, .kv = {1, 1, 5000, 16}, .offset = 4200});  // sums in blocks of 4096
}

// Their products may be another library's, which has other bits for other numbers of columns: then all columns are computed.
TEST(CausalTiles, HaveTheBitsOfAllColumnsInSixteenBits) {
  for (const DataType dtype : {bf16, f16}) {
    const Graph graph = causal({.dtype = dtype});
    const LibraryRun run = expect_library_matches_reference(graph, dtype == bf16 ? 2e-2 : 3e-3, numbers_of(graph));
    if (!rows_are_their_own(run)) continue;
    EXPECT_TRUE(run_untiled(graph, run)[0] == run.buffers.at(run.outputs[0].id));
    const bool are_generated = std::none_of(run.info.kernels.begin(), run.info.kernels.end(),
                                            [](const std::string& kernel) { return kernel.starts_with("matmul "); });
    const bool leave_out = std::any_of(run.info.kernel_texts.begin(), run.info.kernel_texts.end(), [](const std::string& text) {
      return text.find("which leave out hidden columns") != std::string::npos;
    });
    EXPECT_EQ(leave_out, are_generated);
  }
}

// Offsets and the number that hides are known only when the tiles run. With another number than -infinity all columns count.
TEST(CausalTiles, ReadNumbersWhenTheyRun) {
  const Causal c{.q = {1, 8, 200, 32}, .kv = {1, 8, 500, 32}, .has_offsets = true, .hidden_is_known = false};
  for (const float hidden : {-INFINITY, -2.0f}) {
    SCOPED_TRACE(hidden);
    expect_columns_left_out(c, {500, 200}, hidden);
    expect_columns_left_out(c, {0, 350}, hidden);
    expect_columns_left_out(c, {0, 1 << 30}, hidden);  // all are hidden
  }
}

// A zero of the softmax times infinity is NaN.
TEST(CausalTiles, ComputeAllColumnsIfAValueIsNotFinite) {
  for (const float number : {INFINITY, -INFINITY, NAN}) {
    const Graph graph = causal({});
    std::map<uint64_t, Buffer> given = numbers_of(graph);
    std::vector<float> values(size_t{8} * 300 * 32, 0.5f);
    values[size_t{3} * 300 * 32 + 299 * 32 + 7] = number;
    given[graph.tensor(graph.ops().back().inputs[1]).id] = buffer_of(values);
    const LibraryRun run = expect_library_matches_reference(graph, 1e-4, given);
    const std::vector<double> dst = elements(run.outputs[0], run.buffers.at(run.outputs[0].id));
    EXPECT_TRUE(std::isnan(dst[size_t{3} * 300 * 32 + 7]));
    EXPECT_FALSE(std::isnan(dst[size_t{2} * 300 * 32 + 7]));
    EXPECT_TRUE(run_untiled(graph, run)[0] == run.buffers.at(run.outputs[0].id));
  }
}

TEST(TiledPlan, GatedProducts) {
  for (const DataType dtype : {f32, bf16}) {
    GraphBuilder g;
    const auto x = g.input(dtype, {3, 170, 40});
    const auto gate = g.op(OpKind::MatMul, {x, g.input(dtype, {40, 96})}),
               up = g.op(OpKind::MatMul, {x, g.input(dtype, {40, 96})});
    const auto gated = g.op(OpKind::Multiply, {g.op(OpKind::Sigmoid, {gate}), up});
    g.op(OpKind::MatMul, {gated, g.input(dtype, {56, 96}), g.input(dtype, {56})}, {{"transpose_b", true}});
    expect_tiled(g.finish(), dtype == f32 ? 1e-5 : 2e-2);
  }
}

TEST(TiledPlan, ANormBehindAProduct) {
  GraphBuilder g;
  const auto x = g.input(f32, {1000, 64});
  const auto product = g.op(OpKind::MatMul, {x, g.input(f32, {64, 96})});
  const auto sum = g.op(OpKind::Add, {product, g.input(f32, {1000, 96})});
  g.op(OpKind::LayerNorm, {sum, g.input(f32, {96}), g.input(f32, {96})}, {{"keep_stats", false}});
  g.output(sum);
  expect_tiled(g.finish(), 1e-5);
}

// The first entry of a batch has the same bits as the entry alone.
TEST(TiledPlan, AnEntrysBitsAreItsOwn) {
  for (const DataType dtype : {f32, bf16}) {
    const Attention two{.dtype = dtype}, one{.q = {1, 3, 150, 32}, .k = {1, 3, 90, 32}, .v = {1, 3, 90, 48}, .dtype = dtype};
    const LibraryRun whole = expect_library_matches_reference(attention(two), 2e-2);
    std::map<uint64_t, Buffer> given;
    for (const LogicalTensor& tensor : whole.inputs) given[tensor.id] = whole.buffers.at(tensor.id);
    const LibraryRun part = expect_library_matches_reference(attention(one), 2e-2, given);
    const std::vector<double> all = elements(whole.outputs[0], whole.buffers.at(whole.outputs[0].id)),
                              first = elements(part.outputs[0], part.buffers.at(part.outputs[0].id));
    if (!rows_are_their_own(whole)) continue;
    EXPECT_TRUE(std::equal(first.begin(), first.end(), all.begin())) << name_of(dtype);
  }
}

}  // namespace
}  // namespace lamina::testing
