#include "backends/cpu/tune/calibrate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/schedule/tuning.h"
#include "backends/cpu/tune/kernel_timer.h"
#include "kernels/builder.h"

namespace lamina::cpu {

namespace {

using kernel::Kernel;
using kernel::Value;

constexpr int64_t kRow = 1024;  // elements: rows of 4 KiB
constexpr double kLine = static_cast<double>(tuning::kLine);
constexpr double kSpan = 0.7;           // milliseconds per measurement
constexpr double kMaxBytes = 96 << 20;  // read in order to measure memory

// Kernels over rows of `size` elements that compute element by element or a value per row.
class Rows {
 public:
  Rows(const char* name, int64_t rows, int64_t size, DataType dtype = DataType::f32)
      : dtype_(dtype), size_(size), builder_(name, {rows, size}, 1) {}
  Value src() { return builder_.load(arg("src", {size_, 1}, dtype_, false)); }
  void out(Value value) { builder_.store(value, arg("dst", {size_, 1}, dtype_, true)); }
  void row_out(Value value) { builder_.store(value, arg("values", {1, 0}, DataType::f32, true)); }
  kernel::Builder& builder() { return builder_; }
  Kernel finish() { return builder_.finish(); }

 private:
  int arg(const char* name, Dims strides, DataType dtype, bool output) {
    return builder_.add_arg({.name = name, .dtype = dtype, .output = output, .strides = std::move(strides), .table = {}});
  }
  DataType dtype_;
  int64_t size_;
  kernel::Builder builder_;
};

Kernel sums(int64_t rows) {
  Rows k("sums", rows, kRow);
  k.row_out(k.builder().reduce(kernel::Reduction::sum, k.src()));
  return k.finish();
}

Kernel moments(int64_t rows, int64_t size) {
  Rows k("moments", rows, size);
  k.row_out(k.builder().moments(k.src()).variance);
  return k.finish();
}

Kernel copies(int64_t rows, DataType dtype = DataType::f32) {
  Rows k("copies", rows, kRow, dtype);
  k.out(k.src() * 1.5);
  return k.finish();
}

// `count` dependent additions per element. Elements are independent of each other.
Kernel additions(int64_t rows, int count) {
  Rows k("additions", rows, kRow);
  Value value = k.src();
  for (int i = 0; i < count; ++i) value = value + (1.0 + i);
  k.out(value);
  return k.finish();
}

Kernel centered(int64_t rows) {
  Rows k("centered", rows, kRow);
  const Value x = k.src();
  k.out(k.builder().center(x, k.builder().moments(x)));
  return k.finish();
}

Kernel exponentials(int64_t rows) {
  Rows k("exponentials", rows, kRow);
  k.out(exp(k.src()));
  return k.finish();
}

// The limits of a measurement: at most twice and at least half of the generic value. Other programs may have run during the
// measurement; a machine that really differs more needs `lamina tune`.
constexpr double kBelieved = 2;

double believed(double measured, double usual) { return usual * std::clamp(measured / usual, 1 / kBelieved, kBelieved); }

// A cost that is not measured: it scales with that of an operation.
double of_operations(double Costs::* cost, const Costs& costs) {
  const Costs usual;
  return usual.*cost * costs.operation / usual.operation;
}

class Calibration {
 public:
  explicit Calibration(const Machine& machine) : machine_(machine) { alone_.cores = 1; }

  Costs run() {
    measure_reads();
    measure_writes();
    measure_late();
    measure_arithmetic();
    measure_waiting();
    return costs_;
  }

 private:
  // Nanoseconds per call.
  double time(KernelTimer& timer, const Kernel& kernel, const Machine& machine, const Schedule& schedule = {}) const {
    Schedule legal = schedule;
    legal.vector_bits = vector_bits(machine);
    return 1000 * timer.time(KernelRunner(kernel, machine, legal), kSpan);
  }
  double time(const Kernel& kernel, const Machine& machine, const Schedule& schedule = {}) const {
    KernelTimer timer(kernel, machine);
    return time(timer, kernel, machine, schedule);
  }

  // The size of all cores' second levels, and a size that no cache fits.
  double second() const { return static_cast<double>(machine_.caches.second) * machine_.cores; }
  double most() const { return std::clamp(2 * static_cast<double>(machine_.caches.last), 4 * second(), kMaxBytes); }

  // The cost of a line for each core if all cores read `bytes` bytes again and again.
  double read_line(KernelTimer& timer, double bytes, bool asks) const {
    const auto rows = std::max<int64_t>(static_cast<int64_t>(bytes) / (4 * kRow), machine_.cores);
    Schedule schedule;
    if (asks) schedule.prefetched_within_row = {0};
    return time(timer, sums(rows), machine_, schedule) * machine_.cores / (static_cast<double>(rows) * 4 * kRow / kLine);
  }

  void measure_reads() {
    KernelTimer timer(sums(static_cast<int64_t>(most()) / (4 * kRow)), machine_);
    read_memory_ = std::min(read_line(timer, most(), true), read_line(timer, most(), false));
    costs_.read[0] = time(sums(8), alone_) / (8 * 4 * kRow / kLine);
    costs_.read[1] = read_line(timer, 0.6 * second(), false);
    costs_.read[3] = read_memory_;
  }

  // Half of `bytes` is read and half is written. Returns the cost of one line of each.
  double copy_line(KernelTimer& timer, double bytes, bool streams) const {
    const auto rows = std::max<int64_t>(static_cast<int64_t>(bytes) / (8 * kRow), machine_.cores);
    Schedule schedule;
    if (streams) schedule.streamed = {1};
    schedule.prefetched_within_row = {0};
    return time(timer, copies(rows), machine_, schedule) * machine_.cores / (static_cast<double>(rows) * 4 * kRow / kLine);
  }

  void measure_writes() {
    KernelTimer timer(copies(static_cast<int64_t>(most()) / (8 * kRow)), machine_);
    const auto rest = [](double both, double read) { return std::max(both - read, 0.5 * read); };
    costs_.write[0] = rest(time(copies(4), alone_) / (4 * 4 * kRow / kLine), costs_.read[0]);
    costs_.write[1] = rest(copy_line(timer, 0.6 * second(), false), costs_.read[1]);
    costs_.write[3] = rest(copy_line(timer, most(), false), read_memory_);
    costs_.stream = rest(copy_line(timer, most(), true), read_memory_);
  }

  // The time that a row with two walks loses because memory is idle during the second one.
  void measure_late() {
    const auto rows = static_cast<int64_t>(std::min(most(), kMaxBytes / 2)) / (4 * kRow);
    const Kernel kernel = centered(rows);
    KernelTimer timer(kernel, machine_);
    Schedule asked, unasked;
    unasked.prefetches_rows = asked.prefetches_rows = false;
    unasked.streamed = asked.streamed = {1};
    asked.prefetched_within_row = {0};
    const double lost = time(timer, kernel, machine_, unasked) - time(timer, kernel, machine_, asked);
    costs_.miss_latency = lost * machine_.cores / (static_cast<double>(rows) * 4 * kRow / kLine);
  }

  // All data are in the first-level cache, on one thread.
  void measure_arithmetic() {
    constexpr int64_t kRows = 3, kShort = 64;
    const double vectors = static_cast<double>(kRows * kRow) / (vector_bits(machine_) / 32.0);
    const double copied = time(copies(kRows), alone_);
    costs_.operation = (time(additions(kRows, 24), alone_) - time(additions(kRows, 8), alone_)) / vectors / 16;
    costs_.conversion = (time(copies(kRows, DataType::bf16), alone_) - 0.75 * copied) / vectors / 2;
    costs_.function = (time(exponentials(kRows), alone_) - copied) / vectors;
    const double walked = 4 * 64 / (vector_bits(machine_) / 8.0) * 3 * costs_.operation;
    costs_.walk = of_operations(&Costs::walk, costs_);
    costs_.fold = (time(moments(kShort, 64), alone_) / kShort - walked - costs_.walk) / 2;
  }

  // The overhead of sharing the work of a call among threads.
  void measure_waiting() {
    if (machine_.cores == 1) return;
    constexpr int64_t kRows = 64;
    costs_.wait = time(sums(kRows), machine_) - time(sums(kRows), alone_) / machine_.cores;
  }

  Machine machine_, alone_ = machine_;
  double read_memory_ = 0;
  Costs costs_;
};

}  // namespace

// Measures twice and uses the minimum, because a disturbance that outlasts one measurement rarely affects both.
Costs measure_costs(const Machine& machine) {
  Costs costs = Calibration(machine).run();
  const Costs again = Calibration(machine).run(), usual;
  std::vector<double> figures;
  const auto note = [&](const std::string&, double value) { figures.push_back(value); };
  for_each_cost(again, note);
  for_each_cost(usual, note);
  size_t place = 0;
  const size_t count = figures.size() / 2;
  for_each_cost(costs, [&](const std::string&, double& value) {
    value = believed(std::min(value, figures[place]), figures[count + place]);
    ++place;
  });
  const auto raise = [](double& value, double least) { value = std::max(value, least); };
  for (auto* const levels : {&costs.read, &costs.write}) {
    const std::array<double, 4>& of_usual = levels == &costs.read ? usual.read : usual.write;
    const double way = std::log(of_usual[2] / of_usual[1]) / std::log(of_usual[3] / of_usual[1]);
    raise((*levels)[1], (*levels)[0]);
    raise((*levels)[3], (*levels)[1]);
    (*levels)[2] = (*levels)[1] * std::pow((*levels)[3] / (*levels)[1], way);
  }
  for (double Costs::* const cost : {&Costs::transpose, &Costs::gather, &Costs::walk, &Costs::branch_mispredict})
    costs.*cost = of_operations(cost, costs);
  return costs;
}

}  // namespace lamina::cpu
