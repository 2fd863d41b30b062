#include "backends/cpu/calibrate.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/kernel_timer.h"
#include "backends/cpu/schedule/footprint.h"
#include "backends/cpu/schedule/lane_order.h"
#include "kernels/builder.h"

namespace lamina::cpu {

namespace {

using kernel::Kernel;
using kernel::Value;

constexpr int64_t kRow = 1024;           // elements: rows of 4 KiB
constexpr double kLine = 64;             // bytes
constexpr double kSpan = 0.7;            // milliseconds of a measurement
constexpr double kMostBytes = 96 << 20;  // that are read to know memory; a last level beyond that counts as memory

// Rows of some elements of which something is made, element by element or a value per row.
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

// As many additions, each of which waits for nobody's but its own element.
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

Kernel short_rows(int64_t rows) {
  Rows k("short_rows", rows, 16);
  k.out(k.src() * 1.5);
  return k.finish();
}

class Calibration {
 public:
  explicit Calibration(const Machine& machine) : machine_(machine) { alone_.cores = 1; }

  Costs run() {
    measure_reads();
    measure_writes();
    measure_late();
    leave_out_neighbours();
    measure_arithmetic();
    measure_waiting();
    return costs_;
  }

 private:
  // Nanoseconds of a call.
  double time(KernelTimer& timer, const Kernel& kernel, const Machine& machine, const Schedule& schedule = {}) const {
    Schedule legal = schedule;
    legal.vector_bits = vector_bits(machine.isa);
    return 1000 * timer.time(KernelRunner(kernel, machine, legal), kSpan);
  }
  double time(const Kernel& kernel, const Machine& machine, const Schedule& schedule = {}) const {
    KernelTimer timer(kernel, machine);
    return time(timer, kernel, machine, schedule);
  }

  // Of a line, by each core, where all of them read so many bytes again and again.
  double read_line(KernelTimer& timer, double bytes, bool asks) const {
    const auto rows = std::max<int64_t>(static_cast<int64_t>(bytes) / (4 * kRow), machine_.cores);
    Schedule schedule;
    if (asks) schedule.prefetched_within_row = {0};
    return time(timer, sums(rows), machine_, schedule) * machine_.cores / (static_cast<double>(rows) * 4 * kRow / kLine);
  }

  void measure_reads() {
    const double cores = machine_.cores, second = static_cast<double>(machine_.caches.second) * cores;
    const double told = std::clamp(static_cast<double>(machine_.caches.last), 2 * second, kMostBytes);
    const double most = std::min(std::max(2 * told, 4 * second), kMostBytes);
    KernelTimer timer(sums(static_cast<int64_t>(most) / (4 * kRow)), machine_);
    costs_.read[0] = time(sums(8), alone_) / (8 * 4 * kRow / kLine);
    costs_.read[1] = std::max(read_line(timer, 0.6 * second, false), costs_.read[0]);
    costs_.read[2] = std::max(read_line(timer, std::min(0.5 * told, 8 * second), false), costs_.read[1]);
    costs_.read[3] = std::max(std::min(read_line(timer, most, true), read_line(timer, most, false)), costs_.read[2]);
    measure_last_level(timer, told);
  }

  // The most that is read nearer to the last level's speed than to memory's.
  void measure_last_level(KernelTimer& timer, double told) {
    const double middle = std::sqrt(costs_.read[2] * costs_.read[3]);
    costs_.held = 0.25 * told;
    for (double part = 0.375; part <= 1.25; part += 0.125) {
      if (read_line(timer, part * told, false) < middle) costs_.held = part * told;
    }
  }

  // Half of `bytes` is read and half of it written: a line of each.
  double copy_line(KernelTimer& timer, double bytes, bool streams) const {
    const auto rows = std::max<int64_t>(static_cast<int64_t>(bytes) / (8 * kRow), machine_.cores);
    Schedule schedule;
    if (streams) schedule.streamed = {1};
    schedule.prefetched_within_row = {0};
    return time(timer, copies(rows), machine_, schedule) * machine_.cores / (static_cast<double>(rows) * 4 * kRow / kLine);
  }

  void measure_writes() {
    const double second = static_cast<double>(machine_.caches.second) * machine_.cores;
    const double most = std::min(std::max(3 * costs_.held, 4 * second), kMostBytes);
    KernelTimer timer(copies(static_cast<int64_t>(most) / (8 * kRow)), machine_);
    const double sizes[] = {0.6 * second, std::min(0.5 * costs_.held, 8 * second), most};
    const auto rest = [](double both, double read) { return std::max(both - read, 0.5 * read); };
    costs_.write[0] = rest(time(copies(4), alone_) / (4 * 4 * kRow / kLine), costs_.read[0]);
    for (size_t level = 1; level < costs_.write.size(); ++level)
      costs_.write[level] =
          std::max(rest(copy_line(timer, sizes[level - 1], false), costs_.read[level]), costs_.write[level - 1]);
    costs_.stream = rest(copy_line(timer, most, true), costs_.read[3]);
  }

  // What the machine's other users take of the last level differs from minute to minute. What is slower than the middle between
  // the levels around it is taken for their doing.
  void leave_out_neighbours() {
    for (auto* const costs : {&costs_.read, &costs_.write})
      (*costs)[2] = std::min((*costs)[2], std::sqrt((*costs)[1] * (*costs)[3]));
  }

  // What a row of two walks loses that memory sees no need for during the second one.
  void measure_late() {
    const double second = static_cast<double>(machine_.caches.second) * machine_.cores;
    const double most = std::min(std::max(2 * costs_.held, 4 * second), kMostBytes / 2);
    const auto rows = static_cast<int64_t>(most) / (4 * kRow);
    const Kernel kernel = centered(rows);
    KernelTimer timer(kernel, machine_);
    Schedule asked, unasked;
    unasked.prefetches_rows = asked.prefetches_rows = false;
    unasked.streamed = asked.streamed = {1};
    asked.prefetched_within_row = {0};
    const double lost = time(timer, kernel, machine_, unasked) - time(timer, kernel, machine_, asked);
    costs_.late = std::max(lost * machine_.cores / (static_cast<double>(rows) * 4 * kRow / kLine), 0.1 * costs_.read[3]);
  }

  // All within the first-level cache, on one thread.
  void measure_arithmetic() {
    constexpr int64_t kRows = 3;
    const double vectors = static_cast<double>(kRows * kRow) / (vector_bits(machine_.isa) / 32.0);
    const auto of_vector = [&](double more, double less) { return std::max((more - less) / vectors, 0.01); };
    const double copied = time(copies(kRows), alone_);
    const Costs generic;
    costs_.operation = of_vector(time(additions(kRows, 24), alone_), time(additions(kRows, 8), alone_)) / 16;
    costs_.conversion = of_vector(time(copies(kRows, DataType::bf16), alone_), 0.75 * copied) / 2;
    costs_.function = of_vector(time(exponentials(kRows), alone_), copied);
    costs_.gather = generic.gather * costs_.operation / generic.operation;
    costs_.stop = generic.stop * costs_.operation / generic.operation;
    constexpr int64_t kShort = 64;
    const double walked = 4 * 64 / (vector_bits(machine_.isa) / 8.0) * 3 * costs_.operation;
    costs_.fold = std::max(time(moments(kShort, 64), alone_) / kShort - walked, costs_.operation);
    measure_squares();
  }

  // What the rows' being lanes costs, of 16 elements each: two squares.
  void measure_squares() {
    constexpr int64_t kRows = 192;
    const Kernel kernel = short_rows(kRows);
    Schedule across;
    across.vector_bits = vector_bits(machine_.isa);
    across.transposed = true;
    across.rows_per_group = lane_count(kernel, across.vector_bits);
    across.whole_groups = fills_groups(kernel, across.rows_per_group);
    across.lane_steps = lane_steps(kernel);
    const double vectors = static_cast<double>(kRows * 16) / across.rows_per_group;
    costs_.square = std::max(time(kernel, alone_, across) / vectors / 2, costs_.operation);
  }

  // What two calls' worth of work lose by being shared.
  void measure_waiting() {
    if (machine_.cores == 1) return;
    constexpr int64_t kRows = 64;
    const double shared = time(sums(kRows), machine_), own = time(sums(kRows), alone_);
    costs_.wait = std::clamp(shared - own / machine_.cores, 100.0, 20000.0);
  }

  Machine machine_, alone_ = machine_;
  Costs costs_;
};

}  // namespace

// Twice, the least of both: what disturbs the one for longer than a measurement does not disturb the other.
Costs measure_costs(const Machine& machine) {
  Costs costs = Calibration(machine).run();
  const double held = costs.held;
  const Costs again = Calibration(machine).run();
  std::vector<double> figures;
  for_each_cost(again, [&](const std::string&, double value) { figures.push_back(value); });
  auto figure = figures.begin();
  for_each_cost(costs, [&](const std::string&, double& value) { value = std::min(value, *figure++); });
  costs.held = std::max(held, again.held);
  return costs;
}

}  // namespace lamina::cpu
