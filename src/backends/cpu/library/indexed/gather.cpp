// Gather: copies rows of a table to the positions of their indices.
#include <cstring>
#include <utility>

#include "backends/cpu/library/indexed/indices.h"
#include "backends/cpu/library/indexed/scatter_add.h"
#include "backends/cpu/library/library_ops.h"
#include "backends/cpu/threads/executor.h"
#include "interface/indices.h"

namespace lamina::cpu {

namespace {

constexpr int64_t kTileBytes = 64 << 10;

template <size_t Bytes>
void copy_apart(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * to_step * static_cast<int64_t>(Bytes), from + i * from_step * static_cast<int64_t>(Bytes), Bytes);
}

class Gather final : public Primitive {
 public:
  Gather(const kernel::LibraryStep& step, IndexedAxis axis)
      : step_(step),
        element_(bytes_of(src().dtype, 1)),
        extent_((*src().shape)[axis.axis]),
        stride_(src().strides[axis.axis]),
        src_outer_(src(), 0, axis.axis),
        dst_outer_(dst(), 0, axis.axis),
        places_(dst(), axis.axis, axis.indices),
        count_(places_.count()),
        row_(Axes(src(), axis.axis + 1, src().shape->size() - axis.axis - 1),
             Axes(dst(), axis.axis + axis.indices, src().shape->size() - axis.axis - 1)) {
    const int64_t row_bytes = std::max<int64_t>(row_.runs() * row_.length() * element_, 1);
    rows_per_tile_ = std::max<int64_t>(1, kTileBytes / row_bytes);
  }

  const std::string& name() const override { return name_; }
  size_t scratch_bytes() const override { return static_cast<size_t>(count_) * sizeof(int64_t); }

  void run(std::span<void* const> args, void* scratch, const Executor& executor) const override {
    auto* const entries = static_cast<int64_t*>(scratch);
    read_indices(step_.op, step_.inputs[1], args[1], extent_, std::nullopt, entries);
    const auto* const from = static_cast<const char*>(args[0]);
    auto* const to = static_cast<char*>(args[2]);
    const int64_t rows = dst_outer_.count() * count_;
    for_each_tile((rows + rows_per_tile_ - 1) / rows_per_tile_, executor, [&](int64_t tile, int) {
      const int64_t end = std::min(rows, (tile + 1) * rows_per_tile_);
      for (int64_t row = tile * rows_per_tile_; row < end; ++row) {
        const int64_t outer = row / count_, place = row % count_;
        copy_row(to + (dst_outer_.offset(outer) + places_.offset(place)) * element_,
                 from + (src_outer_.offset(outer) + entries[place] * stride_) * element_);
      }
    });
  }

 private:
  const LogicalTensor& src() const { return step_.inputs[0]; }
  const LogicalTensor& dst() const { return step_.outputs[0]; }

  void copy_row(char* to, const char* from) const {
    const bool together = row_.step_of_a() == 1 && row_.step_of_b() == 1;
    row_.for_each_run([&](int64_t src_at, int64_t dst_at) {
      const char* const source = from + src_at * element_;
      char* const target = to + dst_at * element_;
      if (together) {
        std::memcpy(target, source, static_cast<size_t>(row_.length() * element_));
        return;
      }
      const auto copy = element_ == 1   ? copy_apart<1>
                        : element_ == 2 ? copy_apart<2>
                        : element_ == 4 ? copy_apart<4>
                                        : copy_apart<8>;
      copy(target, row_.step_of_b(), source, row_.step_of_a(), row_.length());
    });
  }

  std::string name_ = "gather";
  kernel::LibraryStep step_;
  int64_t element_, extent_, stride_;
  Axes src_outer_, dst_outer_, places_;
  int64_t count_;
  RowPair row_;
  int64_t rows_per_tile_;
};

std::unique_ptr<const Primitive> gather(const kernel::LibraryStep& step, const PrimitiveUse&) {
  return std::make_unique<Gather>(step, gathered_axis(indexed_view(step)));
}

}  // namespace

std::vector<LibraryOp> indexed_ops() {
  return {{.kind = OpKind::Gather, .compile = gather, .takes_empty_inputs = true},
          {.kind = OpKind::ScatterAdd, .compile = scatter_add, .takes_empty_inputs = true}};
}

}  // namespace lamina::cpu
