// Runs a file of `lamina export` with random inputs, and prints its inputs, its outputs and the time. It needs
// liblamina_runtime alone: no compiler, no LLVM, no Python.
//
//   lamina export model.json -o model.lamina && run_model model.lamina
//
// A model that was exported for several shapes runs with the first. The inputs are the same in each run, so equal sums of the
// outputs' bits are a sign of equal results.
#include <graph/lamina_runtime.hpp>

#include <chrono>
#include <cstdio>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using lamina::runtime::tensor;

void print(const char* role, const tensor& described) {
  std::printf("%s %s: [", role, described.name.c_str());
  for (size_t d = 0; d < described.shape.size(); ++d)
    std::printf("%s%lld", d == 0 ? "" : ", ", static_cast<long long>(described.shape[d]));
  std::printf("]\n");
}

// FNV-1a over the bytes of all values.
uint64_t bits_of(const std::vector<tensor>& tensors) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const tensor& each : tensors) {
    const auto* const bytes = static_cast<const unsigned char*>(each.data);
    for (size_t i = 0; i < static_cast<size_t>(each.size()) * sizeof(float); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  }
  return hash;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: run_model FILE.lamina\n");
    return 2;
  }
  try {
    const lamina::runtime::model model(argv[1]);
    std::printf("program for %s\n", model.isa().c_str());
    std::vector<std::vector<float>> memory;
    std::mt19937 random(1);
    std::uniform_real_distribution<float> around(-1, 1);
    const auto bound = [&](const char* role, const tensor& described) {
      print(role, described);
      if (described.dtype != lamina_runtime_f32)
        throw std::runtime_error(std::string(role) + " " + described.name + " is not f32, which this example fills");
      std::vector<float>& values = memory.emplace_back(static_cast<size_t>(described.size()));
      for (float& value : values) value = around(random);
      return described.with(values.data());
    };
    std::vector<tensor> inputs, outputs;
    for (const tensor& input : model.inputs(0)) inputs.push_back(bound("input", input));
    for (const tensor& output : model.outputs(0)) outputs.push_back(bound("output", output));
    model.run(inputs, outputs);  // the first run packs weights
    const auto start = std::chrono::steady_clock::now();
    model.run(inputs, outputs);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    std::printf("outputs: %016llx\n%.1f us\n", static_cast<unsigned long long>(bits_of(outputs)), took.count());
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "%s\n", fault.what());
    return 1;
  }
  return 0;
}
