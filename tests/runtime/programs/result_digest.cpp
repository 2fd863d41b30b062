// Runs models with inputs that depend on their types and places only, and prints a digest of each result:
//
//   result_digest FILE.lamina...     "NAME: OUTPUT DIGEST" per output, the same on every machine
//
// It needs liblamina_runtime alone, so that it can be built for another machine (scripts/test-arm --models).
#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include "graph/lamina_runtime.hpp"

namespace {

namespace runtime = lamina::runtime;

struct TypeFacts {
  int bits;
  bool is_float;
};

TypeFacts facts_of(runtime::data_type dtype) {
  constexpr bool real = true, small_float = true, signed_integer = false, unsigned_integer = false, boolean = false;
  switch (dtype) {
#define LAMINA_DATA_TYPE(name, value, bits, kind, npy) \
  case lamina_runtime_##name: return {bits, kind};
#include "graph/data_types.def"
    default: return {0, false};
  }
}

size_t bytes_of(const runtime::tensor& tensor) {
  int64_t last = 0;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    if (tensor.shape[d] == 0) return 0;
    last += (tensor.shape[d] - 1) * tensor.strides[d];
  }
  return static_cast<size_t>((last + 1) * facts_of(tensor.dtype).bits + 7) / 8;
}

uint64_t next(uint64_t& state) {
  state = state * 6364136223846793005U + 1442695040888963407U;
  return state >> 33;
}

// Floats between -2 and 2, or positive ones, as variances are. Integers of whole bytes are 0 or 1, which are legal indices.
void fill(const runtime::tensor& tensor, bool is_positive, std::vector<char>& memory, uint64_t& state) {
  const TypeFacts facts = facts_of(tensor.dtype);
  const size_t bytes = facts.bits < 8 ? 1 : static_cast<size_t>(facts.bits) / 8;
  for (size_t at = 0; at + bytes <= memory.size(); at += bytes) {
    const uint64_t random = next(state);
    uint64_t word = facts.bits < 8 ? random & 255 : random & 1;
    const double value = static_cast<double>((random & 0xFFFF) + 1) / 32768.0 - (is_positive ? 0 : 1);
    const auto narrow = static_cast<float>(value);
    if (tensor.dtype == lamina_runtime_f64)
      std::memcpy(&word, &value, sizeof value);
    else if (tensor.dtype == lamina_runtime_f32)
      std::memcpy(&word, &narrow, sizeof narrow);
    else if (tensor.dtype == lamina_runtime_f16)
      word = 0x3000 + (random & (is_positive ? 0x0FFF : 0x8FFF));
    else if (tensor.dtype == lamina_runtime_bf16)
      word = 0x3F00 + (random & (is_positive ? 0x00FF : 0x80FF));
    else if (facts.is_float)
      word = 0x20 + (random & (is_positive ? 0x1F : 0x9F));
    std::memcpy(memory.data() + at, &word, bytes);
  }
}

// FNV-1a
uint64_t digest_of(const std::vector<char>& memory) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char byte : memory) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  return hash;
}

void print_results(const std::filesystem::path& file) {
  const runtime::model model(file.string());
  for (size_t variant = 0; variant < model.variant_count(); ++variant) {
    uint64_t state = 1;
    std::vector<std::vector<char>> memory;
    memory.reserve(model.inputs().size() + model.outputs().size());
    std::vector<runtime::tensor> inputs, outputs;
    int64_t largest = 0;
    for (const runtime::tensor& input : model.inputs(variant)) largest = std::max(largest, input.size());
    for (const runtime::tensor& input : model.inputs(variant)) {
      fill(input, input.size() < largest, memory.emplace_back(bytes_of(input)), state);
      inputs.push_back(input.with(memory.back().data()));
    }
    for (const runtime::tensor& output : model.outputs(variant))
      outputs.push_back(output.with(memory.emplace_back(bytes_of(output)).data()));
    model.run(inputs, outputs);
    for (size_t o = 0; o < outputs.size(); ++o)
      std::printf("%s: %s %016" PRIx64 "\n", file.stem().c_str(), outputs[o].name.c_str(),
                  digest_of(memory[inputs.size() + o]));
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    for (int i = 1; i < argc; ++i) print_results(argv[i]);
  } catch (const runtime::error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
