// TopK. Elements are compared as integers of the same order: of floats, -0 equals 0, and NaN is the largest.
#include "backends/cpu/dispatch/along_axis_steps.h"

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "backends/cpu/dispatch/axis_rows.h"
#include "backends/cpu/dispatch/program_checks.h"
#include "backends/cpu/dispatch/step_kinds.h"
#include "backends/cpu/threads/executor.h"
#include "interface/element.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

struct Entry {
  int64_t key, index;
  bool operator<(const Entry& other) const { return key != other.key ? key < other.key : index < other.index; }
};

// `infinity`: the bits of the float of type `Bits` with the largest magnitude that is not NaN.
template <typename Bits, Bits infinity>
int64_t key_of_float(const void* memory, int64_t at) {
  constexpr Bits kMagnitude = std::numeric_limits<Bits>::max() >> 1;
  const Bits bits = load_element<Bits>(memory, at), magnitude = bits & kMagnitude;
  if (magnitude > infinity) return std::numeric_limits<int64_t>::max();
  return bits == magnitude ? static_cast<int64_t>(magnitude) : -static_cast<int64_t>(magnitude);
}

// Unsigned integers of 64 bits are shifted to the range of keys.
template <typename Integer>
int64_t key_of_integer(const void* memory, int64_t at) {
  constexpr uint64_t kFirst = std::is_same_v<Integer, uint64_t> ? uint64_t{1} << 63 : 0;
  return static_cast<int64_t>(static_cast<uint64_t>(load_element<Integer>(memory, at)) - kFirst);
}

using KeyOf = int64_t (*)(const void* memory, int64_t at);

KeyOf key_of(DataType dtype) {
  switch (dtype) {
    case DataType::f32: return key_of_float<uint32_t, 0x7f800000>;
    case DataType::bf16: return key_of_float<uint16_t, 0x7f80>;
    case DataType::f16: return key_of_float<uint16_t, 0x7c00>;
    case DataType::f64: return key_of_float<uint64_t, 0x7ff0000000000000>;
    default: return visit_integer_type(dtype, [](auto of_type) -> KeyOf { return key_of_integer<decltype(of_type)>; });
  }
}

template <typename Element>
void copy_element(const void* from, int64_t from_at, void* to, int64_t to_at) {
  store_element(to, to_at, load_element<Element>(from, from_at));
}

using Copy = void (*)(const void* from, int64_t from_at, void* to, int64_t to_at);

Copy copy_of(DataType dtype) {
  switch (bits_of(dtype)) {
    case 16: return copy_element<uint16_t>;
    case 32: return copy_element<uint32_t>;
    default: return copy_element<uint64_t>;
  }
}

class TopK final : public Primitive {
 public:
  explicit TopK(TopKProgram program)
      : program_(std::move(program)),
        rows_(program_.rows),
        key_of_(key_of(program_.dtype)),
        copy_(copy_of(program_.dtype)),
        name_(program_.k == program_.extent ? "sort" : join("the first ", program_.k, " in order")) {}

  const std::string& name() const override { return name_; }
  size_t scratch_bytes() const override { return static_cast<size_t>(program_.threads) * bytes_of_thread(); }

  void write(ProgramWriter& to) const override {
    to.write(StepKind::top_k);
    to.write(program_);
  }
  void run(std::span<void* const> args, void* scratch, const Executor& executor) const override {
    const int64_t rows_each = AxisRows::rows_per_unit(8 * program_.extent);
    for_each_tile((rows_.count() + rows_each - 1) / rows_each, executor.at_most(program_.threads),
                  [&](int64_t unit, int thread) {
                    auto* const entries =
                        reinterpret_cast<Entry*>(static_cast<char*>(scratch) + static_cast<size_t>(thread) * bytes_of_thread());
                    for (int64_t row = unit * rows_each; row < std::min((unit + 1) * rows_each, rows_.count()); ++row)
                      sort_row(args, row, entries);
                  });
  }

 private:
  size_t bytes_of_thread() const { return aligned(static_cast<size_t>(program_.extent) * sizeof(Entry)); }

  // The order of keys is that of the result: they are complemented if the largest element comes first.
  void sort_row(std::span<void* const> args, int64_t row, Entry* entries) const {
    const int64_t src = rows_.begin(0, row), step = rows_.step(0);
    for (int64_t i = 0; i < program_.extent; ++i) {
      const int64_t key = key_of_(args[0], src + i * step);
      entries[i] = {program_.largest ? ~key : key, i};
    }
    if (program_.k == program_.extent)
      std::sort(entries, entries + program_.extent);
    else
      std::partial_sort(entries, entries + program_.k, entries + program_.extent);
    for (int64_t i = 0; i < program_.k; ++i) {
      const int64_t from = entries[i].index;
      if (program_.has_values) copy_(args[0], src + from * step, args[1], rows_.begin(1, row) + i * rows_.step(1));
      if (program_.has_indices) store_element(args[2], rows_.begin(2, row) + i * rows_.step(2), from);
    }
  }

  const TopKProgram program_;
  AxisRows rows_;
  KeyOf key_of_;
  Copy copy_;
  std::string name_;
};

}  // namespace

std::unique_ptr<const Primitive> top_k_step(TopKProgram program) { return std::make_unique<const TopK>(std::move(program)); }

std::unique_ptr<const Primitive> read_top_k(ProgramReader& from, size_t args) {
  auto program = from.get<TopKProgram>();
  check(program);
  require(args >= (program.has_indices ? 3U : 2U), "the args of TopK");
  return top_k_step(std::move(program));
}

}  // namespace lamina::cpu
