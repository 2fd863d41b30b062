// Compiles a tiled step for its execution (dispatch/tile_dispatch.h).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "backends/cpu/dispatch/tile_dispatch.h"
#include "backends/cpu/run/plan_runner.h"

namespace lamina::cpu {

class TiledRunner {
 public:
  // The weights that are packed by the first execution only.
  struct Constants {
    std::function<bool(const kernel::Binding& arg)> contains;
    std::function<int(const kernel::Binding& arg, size_t bytes)> add;  // returns its number
  };
  TiledRunner(const kernel::TiledStep& step, const StepCompiler& compiler, const Constants& constants);

  std::unique_ptr<const TileDispatch> take_dispatch();  // what runs it; once
  const std::vector<PlanRunner::StepText>& texts() const { return texts_; }
  bool from_cache() const;
  // Whether the tiles read this input only as packed weights.
  bool is_only_packed(const kernel::TiledStep& step, size_t input) const;

 private:
  void list_packings(const kernel::TiledStep& step, const Constants& constants, TileUse& use);
  void add_shorter_plans(const kernel::TiledStep& step, const StepCompiler& compiler, TileUse& use);
  void place_packings(const kernel::TiledStep& step, const Constants& constants);
  bool is_read_once(const Dims& strides) const;
  void place_sums(const kernel::TiledStep& step, const StepCompiler& compiler);
  void describe_plans(const kernel::TiledStep& step);

  TileProgram program_;
  std::vector<uint64_t> packed_ops_;  // per packing
  std::vector<std::unique_ptr<const PlanRunner>> plans_, shorter_plans_;
  std::unique_ptr<const PlanRunner> finish_;  // null: all sums are in place
  std::vector<PlanRunner::StepText> texts_;
};

}  // namespace lamina::cpu
