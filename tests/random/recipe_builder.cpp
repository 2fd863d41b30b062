#include "random/recipe_builder.h"

#include <algorithm>

#include "interface/status.h"
#include "random/random_layout.h"

namespace lamina::testing {

uint64_t RecipeBuilder::new_tensor(DataType dtype) {
  LogicalTensor tensor;
  tensor.id = state_.next;
  tensor.dtype = dtype;
  state_.recipe.tensors[state_.next] = tensor;
  return state_.next++;
}

uint64_t RecipeBuilder::input(DataType dtype, const Dims& shape, bool holds_weights) {
  const uint64_t id = new_tensor(dtype);
  LogicalTensor& tensor = state_.recipe.tensors.at(id);
  tensor.shape = shape;
  tensor.layout = LayoutType::strided;
  const Layout layout = rng_.one_in(holds_weights ? 4 : 2) ? Layout::dense : kLayouts[rng_.below(std::size(kLayouts))];
  tensor.strides = strides_in(layout, shape, rng_);
  if (rng_.one_in(holds_weights ? 3 : 6)) tensor.property = PropertyType::constant;
  return id;
}

bool RecipeBuilder::add(const Step& step) {
  const bool makes_something =
      std::any_of(step.outputs.begin(), step.outputs.end(), [](uint64_t id) { return id != kNoTensor; });
  if (!makes_something || !give_shapes(step)) return false;
  state_.recipe.steps.push_back(step);
  for (const uint64_t id : step.outputs) {
    if (id != kNoTensor) state_.made.push_back(id);
  }
  if (!step.inputs.empty() && step.inputs.front() != kNoTensor && rng_.one_in(6)) state_.made.push_back(step.inputs.front());
  return true;
}

std::optional<uint64_t> RecipeBuilder::add(OpKind kind, const Attributes& attributes, const std::vector<uint64_t>& inputs,
                                           DataType dst) {
  State before = state_;
  const uint64_t id = new_tensor(dst);
  if (add({kind, attributes, inputs, {id}})) return id;
  restore(std::move(before));
  return std::nullopt;
}

Recipe RecipeBuilder::finish() {
  Recipe& recipe = state_.recipe;
  for (const uint64_t id : state_.made) {
    if (rng_.one_in(4)) recipe.kept.insert(id);
  }
  std::set<uint64_t> read, given;
  for (const Step& step : recipe.steps) read.insert(step.inputs.begin(), step.inputs.end());
  std::erase_if(recipe.kept, [&](uint64_t id) { return !read.contains(id); });
  for (const Step& step : recipe.steps) {
    for (const uint64_t id : step.outputs) {
      if (id == kNoTensor || !rng_.one_in(3)) continue;
      LogicalTensor& tensor = recipe.tensors.at(id);
      tensor.layout = LayoutType::strided;
      // Excludes the last layout, broadcast: elements of an output must not share memory.
      tensor.strides = strides_in(kLayouts[rng_.below(std::size(kLayouts) - 1)], *tensor.shape, rng_);
    }
  }
  return recipe;
}

std::optional<Dims> RecipeBuilder::shape_made(const Recipe& recipe, uint64_t id) {
  try {
    const Graph graph = recipe.build();
    const LogicalTensor& tensor = graph.tensor(*graph.find_value(id));
    return tensor.has_full_shape() ? tensor.shape : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool RecipeBuilder::give_shapes(const Step& step) {
  Recipe alone;
  for (const auto* ids : {&step.inputs, &step.outputs}) {
    for (const uint64_t id : *ids) {
      if (id != kNoTensor) alone.tensors[id] = tensor(id);
    }
  }
  alone.steps.push_back(step);
  for (const uint64_t id : step.outputs) {
    if (id == kNoTensor) continue;
    const std::optional<Dims> shape = shape_made(alone, id);
    if (!shape) return false;
    state_.recipe.tensors.at(id).shape = shape;
  }
  return std::all_of(alone.tensors.begin(), alone.tensors.end(), [&](const auto& known) {
    return checked_product(*tensor(known.first).shape, "a tensor") <= most_elements_;
  });
}

}  // namespace lamina::testing
