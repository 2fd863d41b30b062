// Matrix products: lamina's own and oneDNN's in turns in one process, beside the measured peak of multiply-adds in f32 and the
// bandwidth of reading the weights. The minimum of each is printed, and lamina's time as a fraction of the others'.
//
//   products [--threads N] [--seconds S] [--type f32|bf16|f16] [--smoke] [--with "FIELD VALUE, ..."]...
//            [--with-packed "FIELD VALUE, ..."]... [--cold 1] [SHAPE...]
//
// Where oneDNN has no fast code for the type, it multiplies in f32 instead, and the first line says so.
// SHAPE: MxKxN, and t if the weights are contiguous along k. --with: lamina's time once more, with other values for some
// fields of the schedule (product_fields.def). "--with search" tries the neighbours of the schedule, step by step.
// --with-packed: likewise, with packed weights. Both are in turns with the schedule. --cold: memory as large as twice the last
// level of caches is read before each product, so that no weights are in a cache. On one thread, processor time is measured, so
// that other programs disturb less.
#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/cpu/code/host_machine.h"
#include "backends/cpu/library/products/product_runner.h"
#include "backends/schedule/schedule_text.h"
#include "kernels/parts.h"
#include "oneapi/dnnl/dnnl.hpp"
#include "roofline/fma_peak.h"
#include "turns.h"

namespace {

using bench::best_times;
using bench::read_all;
using lamina::DataType;
using lamina::cpu::ProductRunner;
using lamina::cpu::ProductSchedule;

// Of BERT, of Llama 8B, squares, primes, and few rows.
constexpr const char* kShapes[] = {"512x768x768t", "512x768x3072t",  "512x3072x768t",  "512x4096x4096t", "512x4096x14336t",
                                   "256x256x256",  "1024x1024x1024", "2048x2048x2048", "127x509x1021",   "521x1031x263",
                                   "1x4096x4096",  "1x4096x4096t",   "4x4096x4096",    "4x4096x4096t",   "8x4096x4096",
                                   "8x4096x4096t", "16x4096x4096",   "16x4096x4096t",  "64x4096x4096t"};

struct Options : bench::TurnOptions {
  std::vector<std::string> others, others_packed;
  DataType dtype = DataType::f32;
  bool is_cold = false;
  std::function<void()> before;  // each product
};

struct Shape {
  long m = 0, k = 0, n = 0;
  bool along_k = false;
};

DataType dtype_of(const std::string& name) {
  for (const DataType dtype : {DataType::f32, DataType::bf16, DataType::f16})
    if (name == lamina::name_of(dtype)) return dtype;
  std::fprintf(stderr, "products: --type is \"%s\"; allowed are f32, bf16 and f16\n", name.c_str());
  std::exit(2);
}

Options options_of(int argc, char** argv) {
  Options options;
  options.shapes.assign(std::begin(kShapes), std::end(kShapes));
  bench::read_options(argc, argv, options, {"5x33x17", "20x40x70t"}, [&](const std::string& name, char* value) {
    if (name == "--type") options.dtype = dtype_of(value);
    if (name == "--with") options.others.emplace_back(value);
    if (name == "--with-packed") options.others_packed.emplace_back(value);
    if (name == "--cold") options.is_cold = std::string_view(value) == "1";
    return name == "--type" || name == "--with" || name == "--with-packed" || name == "--cold";
  });
  return options;
}

Shape shape_of(const std::string& text) {
  Shape shape;
  char last = 0;
  if (std::sscanf(text.c_str(), "%ldx%ldx%ld%c", &shape.m, &shape.k, &shape.n, &last) < 3) {
    std::fprintf(stderr, "products: \"%s\" is not a shape; allowed is MxKxN or MxKxNt\n", text.c_str());
    std::exit(2);
  }
  shape.along_k = last == 't';
  return shape;
}

lamina::kernel::Contraction contraction_of(const Shape& shape, DataType dtype) {
  const auto matrix = [dtype](long rows, long columns, bool transposed) {
    return lamina::kernel::MatrixStack{rows, columns, transposed ? 1 : columns, transposed ? rows : 1, {}, dtype};
  };
  lamina::kernel::Contraction contraction;
  contraction.matrices.m = shape.m, contraction.matrices.k = shape.k, contraction.matrices.n = shape.n;
  contraction.matrices.src = matrix(shape.m, shape.k, false);
  contraction.matrices.weights = matrix(shape.k, shape.n, shape.along_k);
  contraction.matrices.dst = matrix(shape.m, shape.n, false);
  contraction.multiplies_pairs = lamina::cpu::multiplies_pairs(dtype, dtype, lamina::cpu::host_machine());
  return contraction;
}

// Aligned to lines of caches, as front ends have their tensors.
template <typename T>
struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};
  T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kLine)); }
  void deallocate(T* pointer, size_t) { ::operator delete(pointer, kLine); }
  bool operator==(const LineAllocator&) const { return true; }
};
using Bytes = std::vector<char, LineAllocator<char>>;

Bytes random_numbers(DataType dtype, long count) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> numbers(-1, 1);
  Bytes result(static_cast<size_t>(lamina::bytes_of(dtype, count)));
  for (long i = 0; i < count; ++i) lamina::store_from_double(dtype, result.data(), i, numbers(random));
  return result;
}

dnnl::memory::data_type onednn_type(DataType dtype) {
  using Type = dnnl::memory::data_type;
  return dtype == DataType::bf16 ? Type::bf16 : dtype == DataType::f16 ? Type::f16 : Type::f32;
}

// oneDNN's product, with weights as they are or packed ahead.
class OneDnn {
 public:
  OneDnn(const Shape& shape, DataType dtype, Bytes& src, Bytes& weights, Bytes& dst, bool packs) {
    using Desc = dnnl::memory::desc;
    const auto type = onednn_type(dtype);
    const Desc a({shape.m, shape.k}, type, dnnl::memory::dims{shape.k, 1});
    const Desc b({shape.k, shape.n}, type, shape.along_k ? dnnl::memory::dims{1, shape.k} : dnnl::memory::dims{shape.n, 1});
    const Desc c({shape.m, shape.n}, type, dnnl::memory::dims{shape.n, 1});
    const Desc any({shape.k, shape.n}, type, dnnl::memory::format_tag::any);
    const dnnl::matmul::primitive_desc desc(engine_, a, packs ? any : b, c);
    is_fast_ = std::string_view(desc.impl_info_str()).find("ref") == std::string_view::npos;
    src_ = dnnl::memory(a, engine_, src.data());
    weights_ = dnnl::memory(b, engine_, weights.data());
    dst_ = dnnl::memory(c, engine_, dst.data());
    if (desc.weights_desc() != b) {
      dnnl::memory packed(desc.weights_desc(), engine_);
      dnnl::reorder(weights_, packed).execute(stream_, weights_, packed);
      weights_ = packed;
    }
    product_ = dnnl::matmul(desc);
  }
  // Whether it has fast code for products of this type.
  static bool multiplies(DataType dtype) {
    try {
      Bytes matrix(4 * 64 * 64);
      return OneDnn({64, 64, 64}, dtype, matrix, matrix, matrix, false).is_fast_;
    } catch (const dnnl::error&) {
      return false;
    }
  }
  void run() {
    product_.execute(stream_, {{DNNL_ARG_SRC, src_}, {DNNL_ARG_WEIGHTS, weights_}, {DNNL_ARG_DST, dst_}});
    stream_.wait();
  }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::memory src_, weights_, dst_;
  dnnl::matmul product_;
  bool is_fast_ = false;
};

// `fields`: "name value, name value". Blocks of columns are whole panels after it.
ProductSchedule changed(const lamina::kernel::Contraction& contraction, ProductSchedule schedule, std::string_view fields) {
  namespace text = lamina::schedule_text;
  while (!fields.empty()) {
    std::string_view value = text::take_until(fields, ", ");
    const std::string_view name = text::take_until(value, " ");
    ProductSchedule::for_each_field([&](const char* known, const auto& member) {
      if (name == known) text::read(value, schedule.*member);
    });
  }
  const int64_t columns = lamina::cpu::panel_columns(contraction, schedule);
  schedule.column_block = lamina::kernel::parts(schedule.column_block, columns) * columns;
  return schedule;
}

// Cache lines of memory.
using Lines = std::unique_ptr<void, void (*)(void*)>;
Lines lines_of(size_t bytes) { return {std::aligned_alloc(64, (bytes + 63) / 64 * 64), std::free}; }

// Other schedules of one product.
class Others {
 public:
  // `packed`: the weights to pack ahead, in the form of each schedule; null: none are.
  using Run = std::function<void(const ProductRunner&, const void* packed, void* scratch)>;
  Others(const lamina::kernel::Contraction& contraction, const lamina::cpu::Machine& machine, const Options& options,
         const void* packed, Run run)
      : contraction_(contraction), machine_(machine), options_(options), packed_(packed), run_(std::move(run)) {}

  void print_all(const std::vector<std::string>& changes, const ProductSchedule& before) const {
    if (!changes.empty()) std::printf("  %s\n", describe(before).c_str());
    for (const std::string& fields : changes) {
      if (fields == "search")
        search(before);
      else
        print(before, changed(contraction_, before, fields));
    }
  }

 private:
  struct Runner {
    Runner(const Others& of, const ProductSchedule& schedule)
        : product(of.contraction_, of.machine_, schedule, of.options_.threads, {.are_packed_ahead = of.packed_ != nullptr}),
          packed(lines_of(of.packed_ != nullptr ? product.packed_bytes() : 0)),
          scratch(lines_of(product.scratch_bytes())) {
      if (of.packed_ != nullptr) product.pack(of.packed_, packed.get(), lamina::cpu::Executor(of.options_.threads));
    }
    const ProductRunner product;
    const Lines packed, scratch;
  };
  // The time of `schedule` as a fraction of that of `before`, in turns.
  double fraction(const ProductSchedule& before, const ProductSchedule& schedule) const {
    const Runner first(*this, before), second(*this, schedule);
    const auto call = [this](const Runner& runner) {
      return [&] { run_(runner.product, runner.packed.get(), runner.scratch.get()); };
    };
    const std::vector<double> times =
        best_times({call(first), call(second)}, options_.seconds, options_.threads, options_.before);
    return times[1] / times[0];
  }
  void print(const ProductSchedule& before, const ProductSchedule& schedule) const {
    std::printf("  %.3f of the time: %s\n", fraction(before, schedule), describe(schedule).c_str());
  }
  void search(const ProductSchedule& before) const {
    const auto legal = lamina::cpu::legal_product_schedules(contraction_, machine_);
    ProductSchedule best = before;
    for (bool is_better = true; is_better;) {
      is_better = false;
      for (const ProductSchedule& other : legal.neighbours(best)) {
        if (fraction(best, other) > 0.99) continue;
        best = other;
        is_better = true;
      }
    }
    print(before, best);
  }

  const lamina::kernel::Contraction& contraction_;
  const lamina::cpu::Machine& machine_;
  const Options& options_;
  const void* const packed_;
  const Run run_;
};

// `peer`: the type in which oneDNN multiplies.
void measure(const std::string& text, const Options& options, DataType peer, double peak) {
  const Shape shape = shape_of(text);
  const lamina::kernel::Contraction contraction = contraction_of(shape, options.dtype);
  const lamina::cpu::Machine machine = lamina::cpu::host_machine();
  const bool swaps = lamina::cpu::is_better_transposed(contraction, machine, {options.threads});
  const lamina::kernel::Contraction computed = swaps ? lamina::kernel::transposed(contraction) : contraction;
  const ProductRunner runner(computed, machine, lamina::cpu::choose_product_schedule(computed, machine, {options.threads}),
                             options.threads);
  const auto numbers = [&](DataType dtype, long rows, long columns) { return random_numbers(dtype, rows * columns); };
  const Bytes src = numbers(options.dtype, shape.m, shape.k), weights = numbers(options.dtype, shape.k, shape.n);
  const Bytes read = weights;  // no product finds its weights in a cache because they were just read
  Bytes peer_src = numbers(peer, shape.m, shape.k), peer_weights = numbers(peer, shape.k, shape.n);
  Bytes dst(static_cast<size_t>(lamina::bytes_of(options.dtype, shape.m * shape.n)));
  Bytes peer_dst(static_cast<size_t>(lamina::bytes_of(peer, shape.m * shape.n)));
  const ProductRunner ahead(contraction, machine,
                            lamina::cpu::choose_product_schedule(contraction, machine, {options.threads, true}),
                            options.threads, {.are_packed_ahead = true});
  const Lines panels = lines_of(ahead.packed_bytes()),
              scratch = lines_of(std::max(runner.scratch_bytes(), ahead.scratch_bytes()));
  const lamina::cpu::Executor executor(options.threads);
  ahead.pack(weights.data(), panels.get(), executor);
  OneDnn plain(shape, peer, peer_src, peer_weights, peer_dst, false),
      packed(shape, peer, peer_src, peer_weights, peer_dst, true);
  const auto run = [&](const ProductRunner& product, void* memory) {
    product.run(swaps ? weights.data() : src.data(), swaps ? src.data() : weights.data(), nullptr, dst.data(), memory,
                executor);
  };
  volatile uint64_t sink = 0;
  const std::vector<double> times = best_times(
      {[&] { run(runner, scratch.get()); },
       [&] { ahead.run(src.data(), panels.get(), nullptr, dst.data(), scratch.get(), executor); }, [&] { plain.run(); },
       [&] { packed.run(); }, [&] { sink = sink + read_all(read.data(), read.size(), options.threads); }},
      options.seconds, options.threads, options.before);
  const double work = 2e-9 * static_cast<double>(shape.m) * static_cast<double>(shape.k) * static_cast<double>(shape.n);
  const double bytes = 1e-9 * static_cast<double>(weights.size());
  const auto fraction = [&](size_t a, size_t b) { return times[b] / times[a]; };
  std::printf("%-16s %9.1f %9.1f %7.1f %7.1f %7.1f %7.1f %6.1f   %5.2f %5.2f %5.2f %5.2f\n", text.c_str(), times[0] * 1e6,
              times[1] * 1e6, work / times[0], work / times[1], work / times[2], work / times[3], bytes / times[4],
              fraction(0, 2), fraction(1, 3), peak == 0 ? 0 : work / times[1] / peak, fraction(1, 4));
  if (swaps) std::printf("  computed as its transpose\n");
  Others(computed, machine, options, nullptr, [&](const ProductRunner& other, const void*, void* memory) {
    run(other, memory);
  }).print_all(options.others, runner.schedule());
  Others(contraction, machine, options, weights.data(),
         [&](const ProductRunner& other, const void* packed_weights, void* memory) {
           other.run(src.data(), packed_weights, nullptr, dst.data(), memory, executor);
         })
      .print_all(options.others_packed, ahead.schedule());
}

}  // namespace

int main(int argc, char** argv) {
  Options options = options_of(argc, argv);
  omp_set_num_threads(options.threads);
  const Bytes other_memory(options.is_cold ? 2 * static_cast<size_t>(lamina::cpu::host_machine().caches.last) : 0, 1);
  volatile uint64_t sink = 0;
  if (options.is_cold)
    options.before = [&] { sink = sink + read_all(other_memory.data(), other_memory.size(), options.threads); };
  const double most = bench::fma_peak(options.threads, options.seconds);
  const DataType peer = OneDnn::multiplies(options.dtype) ? options.dtype : DataType::f32;
  const std::string type(lamina::name_of(options.dtype)), peer_type(lamina::name_of(peer));
  std::printf("%s, %d threads, peak %.1f GF/s; oneDNN in %s\n", type.c_str(), options.threads, most, peer_type.c_str());
  std::printf("%-16s %9s %9s %7s %7s %7s %7s %6s   %s\n", "shape", "us", "packed us", "GF/s", "packed", "oneDNN", "packed",
              "read", "fraction of oneDNN, of oneDNN with packed weights; packed: of the peak, of reading");
  for (const std::string& shape : options.shapes) measure(shape, options, peer, most);
  return 0;
}
