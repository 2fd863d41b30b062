// Products with weights of 4 and 8 bits, of rows of floats or of integers of 8 bits, beside the bandwidth of reading as many
// bytes. The minimum of each is printed.
//
//   dequantized_products [--threads N] [--seconds S] [--smoke] [--weights NAME] [SHAPE...]     SHAPE: MxKxN
//
// --weights: only this form, of those that the table lists.
#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/code/host_machine.h"
#include "backends/cpu/library/products/product_runner.h"
#include "backends/cpu/library/products/quantized_weights.h"
#include "kernels/integer_rows.h"
#include "turns.h"

namespace {

using bench::best_times;
using bench::read_all;
using lamina::DataType;
namespace cpu = lamina::cpu;
namespace kernel = lamina::kernel;

constexpr const char* kShapes[] = {"1x4096x4096", "1x4096x14336", "1x14336x4096",
                                   "4x4096x4096", "16x4096x4096", "128x4096x4096"};

struct Shape {
  long m = 0, k = 0, n = 0;
};

// Weights of a layer: contiguous along k, with a scale per group of that many entries of k and column.
struct Form {
  const char* name;
  DataType dtype;
  long group;
  DataType scales;
  bool has_integer_rows = false;  // s8 with a scale and a zero point per row
};
constexpr Form kForms[] = {{"s4/32", DataType::s4, 32, DataType::f32},
                           {"s4/32 f16", DataType::s4, 32, DataType::f16},
                           {"s4/128", DataType::s4, 128, DataType::f32},
                           {"s8/k", DataType::s8, 0, DataType::f32},
                           {"s8/32 f16", DataType::s8, 32, DataType::f16},
                           {"s4/32 s8", DataType::s4, 32, DataType::f32, true},
                           {"s4/32 f16 s8", DataType::s4, 32, DataType::f16, true},
                           {"s8/32 f16 s8", DataType::s8, 32, DataType::f16, true}};

struct Options : bench::TurnOptions {
  std::vector<Form> forms{std::begin(kForms), std::end(kForms)};
};

Form form_of(const std::string& name) {
  std::string allowed;
  for (const Form& form : kForms) {
    if (name == form.name) return form;
    allowed += allowed.empty() ? form.name : std::string(", ") + form.name;
  }
  std::fprintf(stderr, "dequantized_products: --weights is \"%s\"; allowed are %s\n", name.c_str(), allowed.c_str());
  std::exit(2);
}

Options options_of(int argc, char** argv) {
  Options options;
  options.shapes.assign(std::begin(kShapes), std::end(kShapes));
  bench::read_options(argc, argv, options, {"1x64x70", "20x64x70"}, [&](const std::string& name, char* value) {
    if (name == "--weights") options.forms = {form_of(value)};
    return name == "--weights";
  });
  return options;
}

struct Free {
  void operator()(char* memory) const { std::free(memory); }
};
using Block = std::unique_ptr<char, Free>;

Block block_of(size_t bytes) { return Block(static_cast<char*>(std::aligned_alloc(64, (bytes + 64) / 64 * 64))); }

// Packed weights of several layers, so that none stays in a cache: layer i is read in execution i.
constexpr size_t kBytesOfLayers = size_t{512} << 20;

Block random_elements(DataType dtype, int64_t count, double low, double high) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> numbers(low, high);
  Block block = block_of(static_cast<size_t>(lamina::bytes_of(dtype, count)));
  for (int64_t i = 0; i < count; ++i) lamina::store_from_double(dtype, block.get(), i, numbers(random));
  return block;
}

Shape shape_of(const std::string& text) {
  Shape s;
  if (std::sscanf(text.c_str(), "%ldx%ldx%ld", &s.m, &s.k, &s.n) == 3) return s;
  std::fprintf(stderr, "dequantized_products: \"%s\" is not a shape; allowed is MxKxN\n", text.c_str());
  std::exit(2);
}

kernel::QuantizedMatrix matrix_of(const Shape& s, const Form& form) {
  const long group = form.group == 0 ? s.k : form.group, groups = s.k / group;
  kernel::QuantizedMatrix matrix;
  matrix.values = {s.k, s.n, 1, s.k, {}, form.dtype};
  matrix.scales = {groups, s.n, groups == 1 ? 0 : 1, groups, {}, form.scales};
  matrix.group_rows = group;
  return matrix;
}

kernel::Contraction contraction_of(const Shape& s) {
  kernel::Contraction contraction;
  contraction.matrices.m = s.m, contraction.matrices.k = s.k, contraction.matrices.n = s.n;
  contraction.matrices.src = {s.m, s.k, s.k, 1, {}, DataType::f32};
  contraction.matrices.weights = {s.k, s.n, s.n, 1, {}, DataType::f32};
  contraction.matrices.dst = {s.m, s.n, s.n, 1, {}, DataType::f32};
  return contraction;
}

const kernel::IntegerRows kIntegerRows{.row_stride = 0, .scale_stride = 1, .zero_point_stride = 1, .has_zero_points = true};

struct Product {
  std::unique_ptr<const cpu::QuantizedWeights> weights;
  std::unique_ptr<const cpu::QuantizedRows> rows;  // of integers
  std::unique_ptr<const cpu::ProductRunner> runner;
  cpu::DequantizedSchedule schedule;
};

Product product_of(const Shape& s, const Form& form, bool is_packed, int threads) {
  const kernel::Contraction contraction = contraction_of(s);
  const kernel::QuantizedMatrix matrix = matrix_of(s, form);
  const cpu::Machine machine = cpu::host_machine();
  Product product;
  kernel::IntegerRows rows = kIntegerRows;
  rows.row_stride = s.k;
  int64_t run = cpu::run_of(matrix);
  if (form.has_integer_rows) {
    run = kernel::part_of_group(matrix);
    product.schedule = cpu::choose_schedule_of_integers(contraction, machine, threads, is_packed);
  } else {
    product.schedule = cpu::choose_dequantized_schedule(contraction, run, machine, threads);
  }
  product.weights = cpu::quantized_weights(matrix, run, machine, product.schedule, is_packed);
  if (form.has_integer_rows) product.rows = cpu::quantized_rows(rows, *product.weights, s.m);
  product.runner = std::make_unique<const cpu::ProductRunner>(
      contraction, machine, product.schedule.product, threads,
      cpu::product_weights(*product.weights, form.has_integer_rows ? &rows : nullptr), product.rows.get());
  return product;
}

void measure(const std::string& text, const Form& form, const Options& options) {
  const Shape s = shape_of(text);
  const Product packed = product_of(s, form, true, options.threads), plain = product_of(s, form, false, options.threads);
  const kernel::QuantizedMatrix matrix = matrix_of(s, form);
  const Block values = random_elements(form.dtype, s.k * s.n, -8, 7),
              scales = random_elements(form.scales, matrix.scales.rows * s.n, 0, 1),
              floats = random_elements(DataType::f32, s.m * s.k, -1, 1),
              integers = random_elements(DataType::s8, s.m * s.k, -128, 127),
              scales_of_rows = random_elements(DataType::f32, s.m, 0, 1),
              zero_points_of_rows = random_elements(DataType::s8, s.m, -128, 127),
              dst = block_of(static_cast<size_t>(s.m * s.n) * 4),
              scratch = block_of(std::max(packed.runner->scratch_bytes(), plain.runner->scratch_bytes()));
  const kernel::IntegerRowsMemory rows{integers.get(), scales_of_rows.get(), zero_points_of_rows.get()};
  const void* const src = form.has_integer_rows ? static_cast<const void*>(&rows) : floats.get();
  const kernel::QuantizedMemory memory{values.get(), scales.get(), nullptr};
  const cpu::Executor executor(options.threads);
  const size_t bytes = packed.weights->packed_bytes(), layers = options.seconds > 0 ? kBytesOfLayers / bytes + 1 : 1;
  const Block all = block_of(layers * bytes);
  packed.weights->pack(memory, all.get(), executor);
  for (size_t layer = 1; layer < layers; ++layer) std::memcpy(all.get() + layer * bytes, all.get(), bytes);
  size_t layer = 0;
  volatile uint64_t sink = 0;
  const std::vector<double> times = best_times(
      {[&] { packed.runner->run(src, all.get() + layer++ % layers * bytes, nullptr, dst.get(), scratch.get(), executor); },
       [&] { plain.runner->run(src, &memory, nullptr, dst.get(), scratch.get(), executor); },
       [&] { sink = sink + read_all(all.get() + layer++ % layers * bytes, bytes, options.threads); }},
      options.seconds, options.threads);
  const double gigabytes = 1e-9 * static_cast<double>(bytes);
  std::printf("%-14s %-12s %9.1f %9.1f %7.1f %7.1f %6.2f %6.2f  %s\n", text.c_str(), form.name, times[0] * 1e6, times[1] * 1e6,
              gigabytes / times[0], gigabytes / times[2], times[2] / times[0], times[2] / times[1],
              describe(packed.schedule).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = options_of(argc, argv);
  omp_set_num_threads(options.threads);
  std::printf("%d threads; packed once, and packed in every execution\n", options.threads);
  std::printf("%-14s %-12s %9s %9s %7s %7s %s\n", "shape", "weights", "us", "us", "GB/s", "read", "fractions of reading");
  for (const std::string& shape : options.shapes) {
    for (const Form& form : options.forms) measure(shape, form, options);
  }
  return 0;
}
