// Products with weights of 4 and 8 bits, beside the bandwidth of reading as many bytes. The minimum of each is printed.
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
};
constexpr Form kForms[] = {{"s4/32", DataType::s4, 32, DataType::f32},
                           {"s4/32 f16", DataType::s4, 32, DataType::f16},
                           {"s4/128", DataType::s4, 128, DataType::f32},
                           {"s8/k", DataType::s8, 0, DataType::f32},
                           {"s8/32 f16", DataType::s8, 32, DataType::f16}};

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

void measure(const std::string& text, const Form& form, const Options& options) {
  Shape s;
  if (std::sscanf(text.c_str(), "%ldx%ldx%ld", &s.m, &s.k, &s.n) != 3) {
    std::fprintf(stderr, "dequantized_products: \"%s\" is not a shape; allowed is MxKxN\n", text.c_str());
    std::exit(2);
  }
  const long group = form.group == 0 ? s.k : form.group, groups = s.k / group;
  kernel::QuantizedMatrix matrix;
  matrix.values = {s.k, s.n, 1, s.k, {}, form.dtype};
  matrix.scales = {groups, s.n, groups == 1 ? 0 : 1, groups, {}, form.scales};
  matrix.group_rows = group;
  kernel::Contraction contraction;
  contraction.matrices.m = s.m, contraction.matrices.k = s.k, contraction.matrices.n = s.n;
  contraction.matrices.src = {s.m, s.k, s.k, 1, {}, DataType::f32};
  contraction.matrices.weights = {s.k, s.n, s.n, 1, {}, DataType::f32};
  contraction.matrices.dst = {s.m, s.n, s.n, 1, {}, DataType::f32};
  const cpu::Machine machine = cpu::host_machine();
  const auto schedule = cpu::choose_dequantized_schedule(contraction, cpu::run_of(matrix), machine, options.threads);
  const auto compiled = cpu::quantized_weights(matrix, machine, schedule, true);
  const auto compiled_plain = cpu::quantized_weights(matrix, machine, schedule, false);
  const cpu::QuantizedWeights &packed = *compiled, &plain = *compiled_plain;
  const cpu::ProductRunner runner(contraction, machine, schedule.product, options.threads, cpu::product_weights(packed));
  const cpu::ProductRunner plain_runner(contraction, machine, schedule.product, options.threads, cpu::product_weights(plain));
  const Block values = random_elements(form.dtype, s.k * s.n, -8, 7), scales = random_elements(form.scales, groups * s.n, 0, 1),
              src = random_elements(DataType::f32, s.m * s.k, -1, 1), dst = block_of(static_cast<size_t>(s.m * s.n) * 4),
              scratch = block_of(std::max(runner.scratch_bytes(), plain_runner.scratch_bytes()));
  const kernel::QuantizedMemory memory{values.get(), scales.get(), nullptr};
  const cpu::Executor executor(options.threads);
  const size_t bytes = packed.packed_bytes(), layers = options.seconds > 0 ? kBytesOfLayers / bytes + 1 : 1;
  const Block all = block_of(layers * bytes);
  packed.pack(memory, all.get(), executor);
  for (size_t layer = 1; layer < layers; ++layer) std::memcpy(all.get() + layer * bytes, all.get(), bytes);
  size_t layer = 0;
  volatile uint64_t sink = 0;
  const std::vector<double> times = best_times(
      {[&] { runner.run(src.get(), all.get() + layer++ % layers * bytes, nullptr, dst.get(), scratch.get(), executor); },
       [&] { plain_runner.run(src.get(), &memory, nullptr, dst.get(), scratch.get(), executor); },
       [&] { sink = sink + read_all(all.get() + layer++ % layers * bytes, bytes, options.threads); }},
      options.seconds, options.threads);
  const double gigabytes = 1e-9 * static_cast<double>(bytes);
  std::printf("%-14s %-9s %9.1f %9.1f %7.1f %7.1f %6.2f %6.2f  %s\n", text.c_str(), form.name, times[0] * 1e6, times[1] * 1e6,
              gigabytes / times[0], gigabytes / times[2], times[2] / times[0], times[2] / times[1], describe(schedule).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = options_of(argc, argv);
  omp_set_num_threads(options.threads);
  std::printf("%d threads; packed once, and packed in every execution\n", options.threads);
  std::printf("%-14s %-9s %9s %9s %7s %7s %s\n", "shape", "weights", "us", "us", "GB/s", "read", "fractions of reading");
  for (const std::string& shape : options.shapes) {
    for (const Form& form : options.forms) measure(shape, form, options);
  }
  return 0;
}
