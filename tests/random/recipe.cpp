#include "random/recipe.h"

#include "interface/status.h"

namespace lamina::testing {

Graph Recipe::build() const {
  Graph graph;
  const auto tensors_of = [this](const std::vector<uint64_t>& ids) {
    std::vector<LogicalTensor> found;
    for (const uint64_t id : ids) found.push_back(id == kNoTensor ? LogicalTensor{} : tensors.at(id));
    return found;
  };
  uint64_t next = 0;
  for (const Step& step : steps) {
    graph.add_op(next, step.kind, join("op", next), step.attributes, tensors_of(step.inputs), tensors_of(step.outputs));
    ++next;
  }
  for (const uint64_t id : kept) {
    graph.add_op(next, OpKind::End, join("end", id), {}, tensors_of({id}), {});
    ++next;
  }
  graph.finalize();
  return graph;
}

Recipe Recipe::without(size_t step) const {
  Recipe smaller = *this;
  for (const uint64_t id : steps[step].outputs) smaller.kept.erase(id);
  smaller.steps.erase(smaller.steps.begin() + static_cast<std::ptrdiff_t>(step));
  smaller.forget_unused();
  return smaller;
}

Recipe Recipe::without_kept(uint64_t id) const {
  Recipe smaller = *this;
  smaller.kept.erase(id);
  return smaller;
}

void Recipe::forget_unused() {
  std::set<uint64_t> named, read;
  for (const Step& step : steps) {
    named.insert(step.inputs.begin(), step.inputs.end());
    named.insert(step.outputs.begin(), step.outputs.end());
    read.insert(step.inputs.begin(), step.inputs.end());
  }
  std::erase_if(tensors, [&](const auto& tensor) { return !named.contains(tensor.first); });
  std::erase_if(kept, [&](uint64_t id) { return !read.contains(id); });
}

}  // namespace lamina::testing
