// A random graph while it is made: ops are added one by one, and what the schema refuses leaves no trace.
#pragma once

#include <optional>
#include <vector>

#include "random/recipe.h"
#include "random/rng.h"

namespace lamina::testing {

class RecipeBuilder {
 public:
  RecipeBuilder(Rng& rng, int64_t most_elements) : rng_(rng), most_elements_(most_elements) {}

  // An input of the graph in a random layout, constant every third time if it holds weights, every sixth if not.
  uint64_t input(DataType dtype, const Dims& shape, bool holds_weights = false);
  // An output of an op that is to be added.
  uint64_t new_tensor(DataType dtype);
  // Adds the step if its schema takes it and all its outputs' shapes follow, and gives these to the outputs.
  bool add(const Step& step);
  // Adds an op of one output; nothing if it is refused.
  std::optional<uint64_t> add(OpKind kind, const Attributes& attributes, const std::vector<uint64_t>& inputs, DataType dst);

  const LogicalTensor& tensor(uint64_t id) const { return state_.recipe.tensors.at(id); }
  const std::vector<uint64_t>& made() const { return state_.made; }  // values that ops may read
  size_t op_count() const { return state_.recipe.steps.size(); }

  // What was added in between is taken back by `restore(state)`.
  struct State {
    Recipe recipe;
    std::vector<uint64_t> made;
    uint64_t next = 0;
  };
  const State& state() const { return state_; }
  void restore(State state) { state_ = std::move(state); }

  // The graph: some values that ops read are outputs as well, and some outputs have layouts of their own.
  Recipe finish();

  // The shape that the recipe's ops give to tensor `id`; nothing if some op is refused or the shape does not follow.
  static std::optional<Dims> shape_made(const Recipe& recipe, uint64_t id);

 private:
  bool give_shapes(const Step& step);

  Rng& rng_;
  int64_t most_elements_;
  State state_;
};

}  // namespace lamina::testing
