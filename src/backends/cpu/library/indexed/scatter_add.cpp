// ScatterAdd: each row of the result is the sum of the rows of src with its index, added in the order of the indices, in
// double. One thread computes a row, so that the bits do not depend on the number of threads.
#include <algorithm>
#include <array>
#include <bit>

#include "backends/cpu/library/indexed/indices.h"
#include "backends/cpu/library/library_ops.h"
#include "backends/cpu/threads/executor.h"
#include "interface/element.h"
#include "interface/indices.h"

namespace lamina::cpu {

namespace {

constexpr int64_t kTileBytes = 64 << 10;
constexpr int64_t kBlock = 256;  // elements that are summed together
constexpr int64_t kNone = -1;

template <DataType dtype>
double element(const void* memory, int64_t at) {
  if constexpr (dtype == DataType::f32) return static_cast<double>(load_element<float>(memory, at));
  if constexpr (dtype == DataType::f64) return load_element<double>(memory, at);
  if constexpr (dtype == DataType::bf16)
    return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(load_element<uint16_t>(memory, at)) << 16));
  return load_as_double(dtype, memory, at);
}

template <DataType dtype>
void add_elements(double* sums, const void* memory, int64_t step, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sums[i] += element<dtype>(memory, i * step);
}

using AddElements = void (*)(double* sums, const void* memory, int64_t step, int64_t count);

AddElements adder_of(DataType dtype) {
  switch (dtype) {
    case DataType::f32: return add_elements<DataType::f32>;
    case DataType::f64: return add_elements<DataType::f64>;
    case DataType::bf16: return add_elements<DataType::bf16>;
    default: return add_elements<DataType::f16>;
  }
}

template <DataType dtype>
void store_elements(void* memory, int64_t at, int64_t step, const double* sums, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (dtype == DataType::f32)
      store_element<float>(memory, at + i * step, static_cast<float>(sums[i]));
    else
      store_from_double(dtype, memory, at + i * step, sums[i]);
  }
}

using StoreElements = void (*)(void* memory, int64_t at, int64_t step, const double* sums, int64_t count);

StoreElements store_of(DataType dtype) {
  switch (dtype) {
    case DataType::f32: return store_elements<DataType::f32>;
    case DataType::f64: return store_elements<DataType::f64>;
    case DataType::bf16: return store_elements<DataType::bf16>;
    default: return store_elements<DataType::f16>;
  }
}

class ScatterAdd final : public Primitive {
 public:
  ScatterAdd(const kernel::LibraryStep& step, IndexedAxis axis)
      : step_(step),
        dtype_(src().dtype),
        extent_((*dst().shape)[axis.axis]),
        stride_(dst().strides[axis.axis]),
        src_outer_(src(), 0, axis.axis),
        dst_outer_(dst(), 0, axis.axis),
        places_(src(), axis.axis, axis.indices),
        count_(places_.count()),
        row_(Axes(src(), axis.axis + axis.indices, dst().shape->size() - axis.axis - 1),
             Axes(dst(), axis.axis + 1, dst().shape->size() - axis.axis - 1)),
        add_(adder_of(dtype_)),
        store_(store_of(dtype_)) {
    const int64_t row_bytes = std::max<int64_t>(row_.runs() * row_.length() * bytes_of(dtype_, 1), 1);
    rows_per_tile_ = std::max<int64_t>(1, kTileBytes / row_bytes);
    if (step.op.has_attribute("ignore_index")) ignored_ = step.op.attribute<int64_t>("ignore_index");
  }

  const std::string& name() const override { return name_; }
  size_t scratch_bytes() const override { return static_cast<size_t>(2 * count_ + extent_) * sizeof(int64_t); }

  void run(std::span<void* const> args, void* scratch, const Executor& executor) const override {
    auto* const entries = static_cast<int64_t*>(scratch);
    read_indices(step_.op, step_.inputs[1], args[1], extent_, ignored_, entries);
    const Chains chains = chained(entries);
    const int64_t rows = dst_outer_.count() * extent_;
    for_each_tile((rows + rows_per_tile_ - 1) / rows_per_tile_, executor, [&](int64_t tile, int) {
      const int64_t end = std::min(rows, (tile + 1) * rows_per_tile_);
      for (int64_t row = tile * rows_per_tile_; row < end; ++row)
        sum_row(chains, row / extent_, row % extent_, static_cast<const char*>(args[0]), static_cast<char*>(args[2]));
    });
  }

 private:
  // For each entry of the result, the first position with its index; for each position, the next one with the same index.
  struct Chains {
    const int64_t* next;
    const int64_t* first;
  };

  const LogicalTensor& src() const { return step_.inputs[0]; }
  const LogicalTensor& dst() const { return step_.outputs[0]; }

  Chains chained(int64_t* entries) const {
    int64_t* const next = entries + count_;
    int64_t* const first = next + count_;
    std::fill_n(first, extent_, kNone);
    for (int64_t place = count_; place-- > 0;) {
      if (entries[place] == kNone) continue;
      next[place] = first[entries[place]];
      first[entries[place]] = place;
    }
    return {next, first};
  }

  void sum_row(const Chains& chains, int64_t outer, int64_t entry, const char* from, char* to) const {
    const int64_t element = bytes_of(dtype_, 1);
    const char* const source = from + src_outer_.offset(outer) * element;
    char* const target = to + (dst_outer_.offset(outer) + entry * stride_) * element;
    row_.for_each_run([&](int64_t src_at, int64_t dst_at) {
      for (int64_t begin = 0; begin < row_.length(); begin += kBlock) {
        const int64_t count = std::min(kBlock, row_.length() - begin);
        std::array<double, kBlock> sums{};
        for (int64_t place = chains.first[entry]; place != kNone; place = chains.next[place])
          add_(sums.data(), source + (places_.offset(place) + src_at + begin * row_.step_of_a()) * element, row_.step_of_a(),
               count);
        store_(target, dst_at + begin * row_.step_of_b(), row_.step_of_b(), sums.data(), count);
      }
    });
  }

  std::string name_ = "scatter_add";
  kernel::LibraryStep step_;
  DataType dtype_;
  int64_t extent_, stride_;
  Axes src_outer_, dst_outer_, places_;
  int64_t count_;
  RowPair row_;
  AddElements add_;
  StoreElements store_;
  std::optional<int64_t> ignored_;
  int64_t rows_per_tile_;
};

OpView view_of(const kernel::LibraryStep& step) {
  std::vector<const LogicalTensor*> inputs, outputs;
  for (const LogicalTensor& tensor : step.inputs) inputs.push_back(&tensor);
  for (const LogicalTensor& tensor : step.outputs) outputs.push_back(&tensor);
  return {step.op, schema_of(step.op.kind), std::move(inputs), std::move(outputs)};
}

std::unique_ptr<const Primitive> scatter_add(const kernel::LibraryStep& step, const PrimitiveUse&) {
  return std::make_unique<ScatterAdd>(step, scattered_axis(view_of(step)));
}

}  // namespace

std::vector<LibraryOp> indexed_ops() {
  return {{.kind = OpKind::ScatterAdd, .compile = scatter_add, .takes_empty_inputs = true}};
}

}  // namespace lamina::cpu
