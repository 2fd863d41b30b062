// Files of exported models: loading a damaged one ends in a model or in a sentence. Programs get a digest that is right again,
// so that their readers see the damage. What is loaded is not run: a model is code, and is trusted.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "backends/cpu/program/program_file.h"
#include "backends/exported_model.h"
#include "compiler/export_model.h"
#include "fuzz/fuzz_input.h"
#include "graph/lamina_runtime.h"
#include "support/graph_builder.h"

namespace {

using namespace lamina;

constexpr DataType f32 = DataType::f32;

// A graph with a tiled step, packed weights, indices, column sums, several variants of code, a pool in loops, products of
// groups and sums over nothing.
Graph graph() {
  testing::GraphBuilder g;
  const auto q = g.input(f32, {2, 40, 16}), k = g.input(f32, {2, 40, 16}), v = g.input(f32, {2, 40, 16});
  const auto scores = g.op(OpKind::SoftMax, {g.op(OpKind::MatMul, {q, k}, {{"transpose_b", true}})}, {{"axis", int64_t{-1}}});
  const auto mixed = g.op(OpKind::MatMul, {g.op(OpKind::MatMul, {scores, v}), g.constant(f32, {16, 24})});
  g.op(OpKind::ReduceSum, {g.op(OpKind::GELU, {mixed})}, {{"axes", std::vector<int64_t>{0, 1}}});
  g.op(OpKind::Gather, {mixed, g.input(DataType::s32, {7})}, {{"axis", int64_t{1}}});
  g.op(OpKind::MaxPool, {g.input(f32, {1, 3, 9, 8})},
       {{"kernel", Dims{3, 3}},
        {"strides", Dims{2, 2}},
        {"pads_begin", Dims{1, 1}},
        {"pads_end", Dims{1, 1}},
        {"data_format", std::string("NCX")}});
  g.op(OpKind::GroupedMatMul, {g.input(f32, {9, 16}), g.constant(f32, {2, 16, 8}), g.input(DataType::s32, {2})}, {}, f32);
  g.op(OpKind::MatMul, {g.input(f32, {3, 0}), g.input(f32, {0, 4})});
  return g.finish();
}

const std::string& model() {
  static const std::string file = [] {
    std::ostringstream out;
    const Graph exported = graph();
    compiler::export_model(std::span(&exported, 1), {.isas = {cpu_isas_here().back()}, .packs_weights = true}, out);
    return std::move(out).str();
  }();
  return file;
}

// Changes bytes of the program's description, and gives it its digest.
void change_program(std::string& file, fuzz::FuzzInput& input) {
  const size_t at = file.find("LAMINAPG");
  const std::string_view program = std::string_view(file).substr(at);
  // The program ends where its image ends; what follows in the archive is not a part of it.
  size_t image_at = 0, image_bytes = 0;
  std::memcpy(&image_at, program.data() + 56, sizeof image_at);
  std::memcpy(&image_bytes, program.data() + 64, sizeof image_bytes);
  const cpu::ProgramParts parts = cpu::parts_of_program(program.substr(0, image_at + image_bytes));
  std::string description(parts.description);
  while (!input.is_at_end()) {
    const size_t place = input.take<uint32_t>() % description.size();
    description[place] = static_cast<char>(input.take<uint8_t>());
  }
  const std::string changed = cpu::program_file(description, parts.image);
  file.replace(at, changed.size(), changed);
}

void change_file(std::string& file, fuzz::FuzzInput& input) {
  while (!input.is_at_end()) {
    const size_t place = input.take<uint32_t>() % file.size();
    file[place] = static_cast<char>(input.take<uint8_t>());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::FuzzInput input(data, size);
  std::string file = model();
  if (input.flip())
    change_program(file, input);
  else
    change_file(file, input);
  const size_t bytes = (file.size() + 63) / 64 * 64;
  const std::unique_ptr<void, void (*)(void*)> memory(std::aligned_alloc(64, bytes), std::free);
  fuzz::require(memory != nullptr, "memory");
  std::memcpy(memory.get(), file.data(), file.size());
  lamina_model_t loaded = nullptr;
  if (lamina_model_load_memory(&loaded, memory.get(), file.size(), nullptr) != lamina_runtime_success) {
    const std::string sentence = lamina_runtime_last_error();
    fuzz::require(loaded == nullptr, "no model");
    fuzz::require(!sentence.empty() && sentence.find('\n') == std::string::npos, "one sentence");
    fuzz::require(sentence.find("bug in lamina") == std::string::npos, "no broken invariant");
    return 0;
  }
  lamina_runtime_tensor_t tensor;
  for (size_t i = 0; i < lamina_model_input_count(loaded); ++i)
    fuzz::require(lamina_model_input(loaded, i, &tensor) == lamina_runtime_success && tensor.ndims <= 12, "an input");
  lamina_model_destroy(loaded);
  return 0;
}
