#include "passes/fusion/iteration_view.h"

#include "interface/op_schema.h"
#include "passes/fusion/view_builder.h"

namespace lamina {

ViewBuilder::Family ViewBuilder::family() const {
  const OpSchema& schema = schema_of(op_.kind);
  switch (schema.nest) {
    case LoopNest::by_class: return schema.op_class == OpClass::elementwise ? &ViewBuilder::elementwise : nullptr;
    case LoopNest::elementwise:
    case LoopNest::repeated: return &ViewBuilder::elementwise;
    case LoopNest::per_channel: return &ViewBuilder::per_channel;
    case LoopNest::slope: return &ViewBuilder::slope;
    case LoopNest::scales: return &ViewBuilder::scales;
    case LoopNest::transposed: return &ViewBuilder::transposed;
    case LoopNest::reshaped: return &ViewBuilder::reshaped;
    case LoopNest::concatenated: return &ViewBuilder::concatenated;
    case LoopNest::reinterpreted: return &ViewBuilder::reinterpreted;
    case LoopNest::sliced: return &ViewBuilder::sliced;
    case LoopNest::gathered: return &ViewBuilder::gathered;
    case LoopNest::scattered: return &ViewBuilder::scattered;
    case LoopNest::windows: return &ViewBuilder::windows;
    case LoopNest::trailing_axes: return &ViewBuilder::trailing_axes;
    case LoopNest::group_rows: return &ViewBuilder::group_rows;
    case LoopNest::channel_rows: return &ViewBuilder::channel_rows;
    case LoopNest::axis_rows: return &ViewBuilder::axis_rows;
    case LoopNest::listed_axes: return &ViewBuilder::listed_axes;
  }
  return nullptr;
}

IterationView ViewBuilder::build() {
  const Family fill = family();
  if (fill == nullptr) {
    refuse(join("it has no loop nest of its own (", name_of(schema_of(op_.kind).op_class), ")"));
  } else if (some_rank_unknown()) {
    unknown_rank();
  } else {
    (this->*fill)();
  }
  if (view_.why_not.empty()) finish();
  return std::move(view_);
}

// ---- unknown ranks

bool ViewBuilder::some_rank_unknown() const {
  const auto unknown = [&](ValueIndex value) { return value != kNoValue && !graph_.tensor(value).shape; };
  return std::any_of(op_.inputs.begin(), op_.inputs.end(), unknown) ||
         std::any_of(op_.outputs.begin(), op_.outputs.end(), unknown);
}

bool ViewBuilder::all_ranks_unknown() const {
  const auto unknown = [&](ValueIndex value) { return value == kNoValue || !graph_.tensor(value).shape; };
  return std::all_of(op_.inputs.begin(), op_.inputs.end(), unknown) &&
         std::all_of(op_.outputs.begin(), op_.outputs.end(), unknown);
}

// Elementwise ops on tensors of unknown rank are treated as one flat dim. Compilation groups again with the real shapes, so a
// wrong guess costs an additional kernel but never a wrong result.
void ViewBuilder::unknown_rank() {
  if (family() != &ViewBuilder::elementwise || !all_ranks_unknown()) return refuse("a rank is not known before compilation");
  loop_over({kUnknownDim});
  for (size_t i = 0; i < op_.inputs.size(); ++i)
    if (has_input(i)) view_.inputs[i] = identity_map(1);
  for (size_t i = 0; i < op_.outputs.size(); ++i)
    if (has_output(i)) view_.outputs[i] = identity_map(1);
}

// ---- extents of 1

namespace {

AxisRun kept_run(const AxisRun& run, const std::vector<int>& new_index, const Dims& extents) {
  AxisRun kept = kNoRun;
  for (int dim = run.first; dim < run.first + run.count; ++dim) {
    if (extents[static_cast<size_t>(dim)] == 1) continue;
    if (kept.count++ == 0) kept.first = new_index[static_cast<size_t>(dim)];
  }
  return kept;
}

}  // namespace

void ViewBuilder::finish() {
  std::vector<int> new_index;
  Dims extents;
  std::vector<bool> inner;
  for (size_t i = 0; i < view_.extents.size(); ++i) {
    new_index.push_back(static_cast<int>(extents.size()));
    if (view_.extents[i] == 1) continue;
    extents.push_back(view_.extents[i]);
    inner.push_back(view_.inner[i]);
  }
  for (auto* maps : {&view_.inputs, &view_.outputs})
    for (DimMap& map : *maps)
      for (AxisRun& run : map) run = kept_run(run, new_index, view_.extents);
  view_.extents = std::move(extents);
  view_.inner = std::move(inner);
  if (has_rows_ && !view_.has_inner()) {
    view_.extents.push_back(1);
    view_.inner.push_back(true);
  }
}

bool IterationView::has_inner() const { return std::find(inner.begin(), inner.end(), true) != inner.end(); }

bool IterationView::has_columns() const {
  return std::find(column_outputs.begin(), column_outputs.end(), true) != column_outputs.end();
}

IterationView ViewBuilder::build_windows(const Dims& positions, const Windows& windows) {
  loop_over_windows(positions, &windows);
  finish();
  return std::move(view_);
}

IterationView iteration_view(const Graph& graph, const Op& op) { return ViewBuilder(graph, op).build(); }

IterationView view_of_windows(const Graph& graph, const Op& op, const Dims& positions, const Windows& windows) {
  return ViewBuilder(graph, op).build_windows(positions, windows);
}

}  // namespace lamina
