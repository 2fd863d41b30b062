// Runs models with inputs that depend on their types and places only, and prints a digest of each result:
//
//   result_digest [--times] FILE.lamina...     "NAME: OUTPUT DIGEST" per output, the same on every machine
//
// --times: also the milliseconds to load a model and to its first result, to stderr. It needs liblamina_runtime alone, so that
// it can be built for another machine (scripts/test-arm --models) or run on one without a compiler (scripts/clean-room
// --models).
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include "digest_inputs.h"
#include "graph/lamina_runtime.hpp"

namespace {

namespace runtime = lamina::runtime;

double milliseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

void print_variant(const std::filesystem::path& file, const runtime::model& model, size_t variant, double* first) {
  std::vector<std::vector<char>> sources = digest::filled(model.inputs(variant)), results;
  std::vector<runtime::tensor> inputs, outputs;
  for (const runtime::tensor& input : model.inputs(variant)) inputs.push_back(input.with(sources[inputs.size()].data()));
  results.reserve(model.outputs().size());
  for (const runtime::tensor& output : model.outputs(variant))
    outputs.push_back(output.with(results.emplace_back(digest::bytes_of(output)).data()));
  const auto begin = std::chrono::steady_clock::now();
  model.run(inputs, outputs);
  if (first != nullptr) *first = milliseconds_since(begin);
  for (size_t o = 0; o < outputs.size(); ++o)
    std::printf("%s: %s %016" PRIx64 "\n", file.stem().c_str(), outputs[o].name.c_str(),
                digest::digest_of(results[o].data(), results[o].size()));
}

void print_results(const std::filesystem::path& file, bool has_times) {
  const auto begin = std::chrono::steady_clock::now();
  const runtime::model model(file.string());
  const double loaded = milliseconds_since(begin);
  double first = 0;
  for (size_t variant = 0; variant < model.variant_count(); ++variant)
    print_variant(file, model, variant, variant == 0 ? &first : nullptr);
  if (has_times) std::fprintf(stderr, "%s: loaded in %.2f ms, first result in %.2f ms\n", file.stem().c_str(), loaded, first);
}

}  // namespace

int main(int argc, char** argv) {
  bool has_times = false;
  try {
    for (int i = 1; i < argc; ++i) {
      if (std::strcmp(argv[i], "--times") == 0)
        has_times = true;
      else
        print_results(argv[i], has_times);
    }
  } catch (const runtime::error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
