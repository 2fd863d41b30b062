// Compares the error of the normalisations, on hard inputs too, with the bounds of docs/numerics.md. Each test prints a line of
// the table there: run this program with --gtest_filter=Accuracy* and copy them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <random>

#include "backends/cpu/support/cpu_check.h"
#include "compiler/compile.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f16 = DataType::f16;
constexpr float kEpsilon = 1e-5f;

using Values = std::vector<double>;
using Generator = std::function<double(int64_t row, int64_t column, double gauss)>;

// The numbers after rounding to `dtype`.
struct Stored {
  Buffer data;
  Values values;
};
Stored stored(const LogicalTensor& tensor, const std::function<double(int64_t)>& value) {
  Stored result{buffer_for(tensor), {}};
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    store_from_double(tensor.dtype, result.data.data(), i, value(i));
    result.values.push_back(load_as_double(tensor.dtype, result.data.data(), i));
  }
  return result;
}

double rounded_to(DataType dtype, double value) {
  double memory = 0;
  store_from_double(dtype, &memory, 0, value);
  return load_as_double(dtype, &memory, 0);
}

// The distance between neighbours of `dtype` at `value`.
double ulp_at(DataType dtype, double value) {
  const int digits = dtype == bf16 ? 8 : dtype == f16 ? 11 : 24;
  const int least = dtype == f16 ? -14 : -126;
  const int exponent = value == 0 ? least : std::max(std::ilogb(value), least);
  return std::ldexp(1.0, exponent - digits + 1);
}

// Near zero, the error of a 16-bit result includes the error of the mean, an f32 value that scales with the row's magnitude:
// the unit there is half an ULP of 1.
constexpr double kMinUlp = 0x1p-24;

// Errors of one output against exact values.
struct Error {
  double of_magnitude = 0;       // |difference| / max(1, |exact|)
  double relative = 0;           // |difference| / |exact|
  double ulp = 0;                // of the stored type, from the correctly rounded value; of 16-bit types at least kMinUlp
  double correctly_rounded = 1;  // fraction of the elements
  double in_norm = 0;            // ||difference|| / ||exact||
};

Error error_of(DataType dtype, const Buffer& data, const Values& exact) {
  Error error;
  double difference_norm = 0, exact_norm = 0;
  size_t right = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    const double got = load_as_double(dtype, data.data(), static_cast<int64_t>(i)), want = exact[i];
    if (std::isnan(want) || std::isinf(want)) {
      EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : got == want) << "element " << i << ": " << got << ", exactly " << want;
      ++right;
      continue;
    }
    const double nearest = rounded_to(dtype, want), difference = std::abs(got - want);
    if (got == nearest) ++right;
    error.of_magnitude = std::max(error.of_magnitude, difference / std::max(1.0, std::abs(want)));
    if (std::abs(want) >= std::numeric_limits<float>::min())
      error.relative = std::max(error.relative, difference / std::abs(want));
    const double ulp = ulp_at(dtype, nearest);
    error.ulp = std::max(error.ulp, std::abs(got - nearest) / (dtype == f32 ? ulp : std::max(ulp, kMinUlp)));
    difference_norm += difference * difference;
    exact_norm += want * want;
  }
  error.correctly_rounded = static_cast<double>(right) / static_cast<double>(exact.size());
  error.in_norm = exact_norm == 0 ? std::sqrt(difference_norm) : std::sqrt(difference_norm / exact_norm);
  return error;
}

std::vector<Buffer> run(const Graph& graph, const std::vector<const Buffer*>& inputs) {
  const auto partitions = partition_graph(graph, PartitionPolicy::fusion, CpuCapabilities{});
  EXPECT_EQ(partitions.size(), 1u);
  const PortTensors ports = port_tensors(partitions.at(0));
  const Subgraph subgraph = extract_subgraph(partitions[0], ports.inputs, ports.outputs);
  std::vector<const void*> in;
  std::vector<void*> out;
  std::vector<Buffer> results = outputs_for(ports);
  for (const LogicalTensor& tensor : ports.inputs) in.push_back(inputs.at(tensor.id)->data());  // ids number the inputs
  for (Buffer& result : results) out.push_back(result.data());
  ExecutionContext context;
  context.threads = 3;  // threads share the few long rows
  compiler::compile_subgraph(subgraph, cpu_backend())->execute(context, in, out);
  // Ids in the order of the op's outputs, which the builder numbers after the inputs.
  std::vector<std::pair<uint64_t, size_t>> order;
  for (size_t o = 0; o < ports.outputs.size(); ++o) order.emplace_back(ports.outputs[o].id, o);
  std::sort(order.begin(), order.end());
  std::vector<Buffer> sorted;
  for (const auto& [id, o] : order) sorted.push_back(std::move(results[o]));
  return sorted;
}

struct Moments {
  Values mean, variance;
};
Moments exact_moments(const Values& x, int64_t rows, int64_t size) {
  Moments moments;
  for (int64_t r = 0; r < rows; ++r) {
    long double sum = 0, squares = 0;
    for (int64_t i = 0; i < size; ++i) sum += x[static_cast<size_t>(r * size + i)];
    const long double mean = sum / static_cast<long double>(size);
    for (int64_t i = 0; i < size; ++i) {
      const long double d = x[static_cast<size_t>(r * size + i)] - mean;
      squares += d * d;
    }
    moments.mean.push_back(static_cast<double>(mean));
    moments.variance.push_back(static_cast<double>(squares / static_cast<long double>(size)));
  }
  return moments;
}

struct HardInput {
  const char* name;
  DataType dtype;
  int64_t rows, size;
  Generator value;
  double gradient_bound = 1e-6;  // of diff_gamma and diff_beta, in norm
};

Values values_of(const HardInput& input) {
  std::mt19937_64 random(42);
  std::normal_distribution<double> gauss;
  Values values;
  for (int64_t i = 0; i < input.rows * input.size; ++i)
    values.push_back(input.value(i / input.size, i % input.size, gauss(random)));
  return values;
}

void print_line(const HardInput& input, const char* output, const Error& error) {
  std::printf("| %s | %s | %lld x %lld | %s | %.2g | %.2g | %.3g | %.3f %% |\n", input.name,
              std::string(name_of(input.dtype)).c_str(), static_cast<long long>(input.rows), static_cast<long long>(input.size),
              output, error.of_magnitude, error.relative, error.ulp, 100 * error.correctly_rounded);
}

// Bounds: f32 at most 1e-6 of max(1, |dst|); 16-bit types one ULP from the correctly rounded value, and 99.9 % of a large
// tensor are correctly rounded.
void expect_within_bounds(const HardInput& input, const Error& dst) {
  if (input.dtype == f32) {
    EXPECT_LE(dst.of_magnitude, 1e-6);
    return;
  }
  EXPECT_LE(dst.ulp, 1);
  EXPECT_GE(dst.correctly_rounded, 0.999);
}

class Accuracy : public ::testing::TestWithParam<HardInput> {};

TEST_P(Accuracy, LayerNormForward) {
  const HardInput& input = GetParam();
  GraphBuilder g;
  const auto x = g.input(input.dtype, {input.rows, input.size});
  g.multi(OpKind::LayerNorm, {x}, {{"use_affine", false}, {"epsilon", kEpsilon}}, {input.dtype, f32, f32});
  const Graph graph = g.finish();
  const Values given = values_of(input);
  const Stored src = stored(graph.tensor(0), [&](int64_t i) { return given[static_cast<size_t>(i)]; });
  const Moments exact = exact_moments(src.values, input.rows, input.size);
  Values dst;
  for (size_t i = 0; i < src.values.size(); ++i) {
    const size_t row = i / static_cast<size_t>(input.size);
    dst.push_back((src.values[i] - exact.mean[row]) / std::sqrt(exact.variance[row] + static_cast<double>(kEpsilon)));
  }
  const std::vector<Buffer> results = run(graph, {&src.data});
  const Error dst_error = error_of(input.dtype, results.at(0), dst);
  const Error variance_error = error_of(f32, results.at(2), exact.variance);
  print_line(input, "dst", dst_error);
  print_line(input, "variance", variance_error);
  expect_within_bounds(input, dst_error);
  EXPECT_LE(variance_error.relative, 2e-6);
}

TEST_P(Accuracy, LayerNormBackward) {
  const HardInput& input = GetParam();
  GraphBuilder g;
  const auto x = g.input(input.dtype, {input.rows, input.size}), dy = g.input(input.dtype, {input.rows, input.size});
  const auto gamma = g.input(f32, {input.size});
  g.multi(OpKind::LayerNormBackward, {x, dy, gamma}, {{"use_stats", false}, {"epsilon", kEpsilon}}, {input.dtype, f32, f32});
  const Graph graph = g.finish();
  const Values given = values_of(input);
  std::mt19937_64 random(43);
  std::normal_distribution<double> gauss;
  const Stored src = stored(graph.tensor(0), [&](int64_t i) { return given[static_cast<size_t>(i)]; });
  const Stored diff_dst = stored(graph.tensor(1), [&](int64_t) { return gauss(random); });
  const Stored scale = stored(graph.tensor(2), [&](int64_t) { return 1 + 0.1 * gauss(random); });
  const Moments exact = exact_moments(src.values, input.rows, input.size);
  const auto size = static_cast<size_t>(input.size);
  Values diff_src, diff_gamma(size, 0), diff_beta(size, 0);
  for (size_t r = 0; r < static_cast<size_t>(input.rows); ++r) {
    const long double rstd = 1 / std::sqrt(static_cast<long double>(exact.variance[r]) + static_cast<long double>(kEpsilon));
    const auto normalized = [&](size_t i) {
      return (static_cast<long double>(src.values[r * size + i]) - static_cast<long double>(exact.mean[r])) * rstd;
    };
    long double sum = 0, product = 0;
    for (size_t i = 0; i < size; ++i) {
      const long double weighted =
          static_cast<long double>(diff_dst.values[r * size + i]) * static_cast<long double>(scale.values[i]);
      sum += weighted;
      product += weighted * normalized(i);
      diff_gamma[i] += static_cast<double>(static_cast<long double>(diff_dst.values[r * size + i]) * normalized(i));
      diff_beta[i] += diff_dst.values[r * size + i];
    }
    for (size_t i = 0; i < size; ++i) {
      const long double weighted =
          static_cast<long double>(diff_dst.values[r * size + i]) * static_cast<long double>(scale.values[i]);
      const auto n = static_cast<long double>(size);
      diff_src.push_back(static_cast<double>(rstd * (weighted - sum / n - normalized(i) * product / n)));
    }
  }
  const std::vector<Buffer> results = run(graph, {&src.data, &diff_dst.data, &scale.data});
  const Error src_error = error_of(input.dtype, results.at(0), diff_src);
  const Error gamma_error = error_of(f32, results.at(1), diff_gamma), beta_error = error_of(f32, results.at(2), diff_beta);
  print_line(input, "diff_src", src_error);
  std::printf("| %s | %s | %lld x %lld | diff_gamma, diff_beta | %.2g, %.2g in norm | | | |\n", input.name,
              std::string(name_of(input.dtype)).c_str(), static_cast<long long>(input.rows), static_cast<long long>(input.size),
              gamma_error.in_norm, beta_error.in_norm);
  if (std::isfinite(gamma_error.in_norm)) {
    EXPECT_LE(gamma_error.in_norm, input.gradient_bound);
    EXPECT_LE(beta_error.in_norm, input.gradient_bound);
  }
}

Generator around(double mean_over_std) {
  return [=](int64_t, int64_t, double gauss) { return mean_over_std + gauss; };
}

std::vector<HardInput> hard_inputs() {
  std::vector<HardInput> inputs;
  for (const int64_t size : {int64_t{61}, int64_t{1024}, int64_t{65536}, int64_t{1} << 20}) {
    const int64_t rows = std::clamp<int64_t>((int64_t{1} << 18) / size, 2, 256);
    inputs.push_back({"standard normal", f32, rows, size, around(0)});
    inputs.push_back({"mean/std 1e3", f32, rows, size, around(1e3)});
    inputs.push_back({"mean/std 1e5", f32, rows, size, around(1e5)});
    inputs.push_back({"mean/std 1e6", f32, rows, size, around(1e6)});
    inputs.push_back({"one outlier 1e6", f32, rows, size,
                      [](int64_t row, int64_t column, double gauss) { return column == row ? 1e6 : 0.3 + 0.1 * gauss; }});
  }
  for (const DataType dtype : {f32, bf16, f16}) {
    inputs.push_back(
        {"constant rows", dtype, 64, 1000, [](int64_t row, int64_t, double) { return 0.1 * static_cast<double>(row + 1); }});
    // Subnormals of f32 have few digits, and the mean is one of them.
    inputs.push_back({"subnormals", dtype, 64, 1000,
                      [=](int64_t, int64_t, double gauss) { return gauss * (dtype == f16 ? 1e-6 : 1e-40); },
                      dtype == f16 ? 1e-6 : 1e-5});
    inputs.push_back({"NaN and infinity", dtype, 64, 1000, [](int64_t row, int64_t column, double gauss) {
                        return row == 3 && column == 70 ? NAN : row == 5 && column == 999 ? INFINITY : gauss;
                      }});
  }
  for (const DataType dtype : {bf16, f16}) {
    inputs.push_back({"standard normal", dtype, 256, 1024, around(0)});
    inputs.push_back({"mean/std 100", dtype, 256, 1024, around(100)});
    inputs.push_back({"one outlier 60000", dtype, 256, 1024,
                      [](int64_t row, int64_t column, double gauss) { return column == row ? 60000 : gauss; }});
  }
  inputs.push_back(
      {"65504 and -65504", f16, 64, 1024, [](int64_t, int64_t, double gauss) { return gauss < 0 ? -65504.0 : 65504.0; }});
  return inputs;
}

// Rows of 2^16 elements that consist of several runs: several inner dims, the last of which has `run` elements.
struct Runs {
  int64_t run;
  HardInput input;
};

// Exact moments assume contiguous rows; `place` returns the position of element i of row r.
using Place = std::function<int64_t(int64_t row, int64_t i)>;

class AccuracyInRuns : public ::testing::TestWithParam<Runs> {
 protected:
  // Returns the largest relative error of output `variance` of the graph's only op, whose input 0 has such rows.
  double variance_error(const Graph& graph, size_t variance, const Place& place) {
    const HardInput& input = GetParam().input;
    const Values given = values_of(input);
    std::vector<Buffer> buffers;
    for (const ValueIndex v : graph.inputs()) buffers.push_back(stored(graph.tensor(v), [](int64_t) { return 1.0; }).data);
    Values rows;
    for (int64_t i = 0; i < input.rows * input.size; ++i) {
      const int64_t at = place(i / input.size, i % input.size);
      store_from_double(input.dtype, buffers[0].data(), at, given[static_cast<size_t>(i)]);
      rows.push_back(load_as_double(input.dtype, buffers[0].data(), at));
    }
    std::vector<const Buffer*> pointers;
    for (const Buffer& buffer : buffers) pointers.push_back(&buffer);
    const Moments exact = exact_moments(rows, input.rows, input.size);
    const Error error = error_of(f32, run(graph, pointers).at(variance), exact.variance);
    print_line(input, join("variance, runs of ", GetParam().run).c_str(), error);
    return error.relative;
  }
};

TEST_P(AccuracyInRuns, GroupNorm) {
  const auto& [piece, input] = GetParam();
  GraphBuilder g;
  const int64_t channels = input.size / piece;
  const auto x = g.input(input.dtype, {input.rows, channels, piece});
  g.multi(OpKind::GroupNorm, {x, g.input(f32, {channels}), g.input(f32, {channels})},
          {{"groups", int64_t{1}}, {"data_format", std::string("NCX")}}, {input.dtype, f32, f32});
  const Graph graph = g.finish();
  EXPECT_LE(variance_error(graph, 2, [&](int64_t row, int64_t i) { return row * input.size + i; }), 2e-6);
}

TEST_P(AccuracyInRuns, BatchNorm) {
  const auto& [piece, input] = GetParam();
  GraphBuilder g;
  const auto x = g.input(input.dtype, {input.size / piece, input.rows, piece});
  const auto table = [&] { return g.input(f32, {input.rows}); };
  g.multi(OpKind::BatchNormForwardTraining, {x, table(), table(), table(), table()},
          {{"epsilon", kEpsilon}, {"data_format", std::string("NCX")}}, {input.dtype, f32, f32, f32, f32});
  const Graph graph = g.finish();
  const Place place = [&, length = piece](int64_t row, int64_t i) {
    return (i / length * input.rows + row) * length + i % length;
  };
  EXPECT_LE(variance_error(graph, 4, place), 2e-6);
}

std::vector<Runs> rows_in_runs() {
  std::vector<Runs> all;
  for (const int64_t run : {2, 3, 4, 7, 49, 64, 100, 784, 4096, 4097, 12544, 32768}) {
    const int64_t size = std::max<int64_t>(2, (int64_t{1} << 16) / run) * run;
    const auto add = [&](const char* name, DataType dtype, const Generator& value) {
      all.push_back({run, {name, dtype, 4, size, value}});
    };
    add("standard normal", f32, around(0));
    add("mean/std 1e3", f32, around(1e3));
    add("standard normal", bf16, around(0));
    // All squares are equal: each addition to a lane rounds in the same direction.
    add("two values", f32,
        [](int64_t row, int64_t, double gauss) { return (gauss < 0 ? -0.1 : 0.1) * static_cast<double>(row + 3); });
  }
  return all;
}

std::string test_name(const HardInput& input) {
  std::string name = std::string(input.name) + "_" + std::string(name_of(input.dtype)) + "_" + std::to_string(input.size);
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : c == '-' ? 'm' : '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Norms, Accuracy, ::testing::ValuesIn(hard_inputs()),
                         [](const auto& test) { return test_name(test.param); });
INSTANTIATE_TEST_SUITE_P(Norms, AccuracyInRuns, ::testing::ValuesIn(rows_in_runs()), [](const auto& test) {
  return test_name(test.param.input) + "_in_runs_of_" + std::to_string(test.param.run);
});

}  // namespace
}  // namespace lamina::testing
