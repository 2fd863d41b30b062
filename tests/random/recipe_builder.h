// Builds a random graph op by op. An op that the schema rejects changes nothing.
#pragma once

#include <optional>
#include <vector>

#include "random/recipe.h"
#include "random/rng.h"

namespace lamina::testing {

class RecipeBuilder {
 public:
  RecipeBuilder(Rng& rng, int64_t most_elements) : rng_(rng), most_elements_(most_elements) {}

  // Adds a graph input in a random layout. It is constant with probability 1/3 if it holds weights, else 1/6.
  uint64_t input(DataType dtype, const Dims& shape, bool holds_weights = false);
  // Adds a tensor that becomes the output of an op.
  uint64_t new_tensor(DataType dtype);
  // Adds the step if its schema accepts it and all output shapes can be inferred; sets these shapes.
  bool add(const Step& step);
  // Adds an op with one output, or returns nothing if it is rejected.
  std::optional<uint64_t> add(OpKind kind, const Attributes& attributes, const std::vector<uint64_t>& inputs, DataType dst);

  const LogicalTensor& tensor(uint64_t id) const { return state_.recipe.tensors.at(id); }
  const std::vector<uint64_t>& made() const { return state_.made; }  // values that ops may read
  size_t op_count() const { return state_.recipe.steps.size(); }

  // `restore(state)` removes what was added since `state()`.
  struct State {
    Recipe recipe;
    std::vector<uint64_t> made;
    uint64_t next = 0;
  };
  const State& state() const { return state_; }
  void restore(State state) { state_ = std::move(state); }

  // Returns the graph. Some values with consumers also become outputs, and some outputs get non-dense layouts.
  Recipe finish();

  // Returns the shape that the ops infer for tensor `id`, or nothing if an op is rejected or the shape is unknown.
  static std::optional<Dims> shape_made(const Recipe& recipe, uint64_t id);

 private:
  bool give_shapes(const Step& step);

  Rng& rng_;
  int64_t most_elements_;
  State state_;
};

}  // namespace lamina::testing
