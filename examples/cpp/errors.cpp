// A mistake is an exception with one sentence: what is wrong, what was given, what is allowed. Nothing else has happened, and
// the graph can be used further.
#include <graph/lamina.hpp>

#include <cstdio>
#include <string>

using namespace lamina::graph;

namespace {

bool says(const std::string& sentence, const char* part) {
  std::printf("%s\n", sentence.c_str());
  return sentence.find(part) != std::string::npos;
}

}  // namespace

int main() {
  const auto f32 = logical_tensor::data_type::f32;
  const auto dense = logical_tensor::layout_type::strided;
  const logical_tensor src(0, f32, {8, 16}, dense), gamma(1, f32, {5}, dense), beta(2, f32, {16}, dense),
      dst(3, f32, {8, 16}, dense);
  graph g(engine::kind::cpu);
  bool good = true;
  try {
    g.add_op(op(0, op::kind::LayerNorm, {src, gamma, beta}, {dst}, "ln").set_attr(op::attr::keep_stats, false));
    good = false;
  } catch (const error& fault) {
    good = says(fault.what(), "gamma");
  }
  // Without exceptions: the status, and the sentence of this thread.
  const op wrong = op(1, op::kind::SoftMax, {src}, {dst}, "softmax").set_attr(op::attr::axis, int64_t{7});
  if (g.add_op(wrong, false) == status::success) good = false;
  good = says(lamina_last_error(), "axis") && good;
  // The graph is as it was before.
  g.add_op(op(2, op::kind::ReLU, {src}, {dst}));
  g.finalize();
  return good && g.get_partitions().size() == 1 ? 0 : 1;
}
