// Compiles graph dumps for this or another machine, and writes the code of every kernel to a folder in the format of the disk
// cache (docs/debugging.md), for disassemblers and for llvm-mca. Nothing is executed.
//
//   compile_for MACHINE FOLDER FILE...      compile_for --machines
//
// FOLDER is an absolute path whose parent exists. Exit codes: 0 success, 1 an unsupported op, 2 bad input or usage.
#include <array>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <span>
#include <string>

#include "backends/cpu/backend.h"
#include "backends/cpu/code/host_machine.h"
#include "backends/cpu/schedule/machine.h"
#include "compiler/compile.h"
#include "interface/status.h"
#include "lamina/load.h"
#include "passes/pipeline.h"

namespace {

using lamina::Error;
using lamina::Status;
using lamina::cpu::Machine;
namespace targets = lamina::cpu::targets;

struct NamedMachine {
  const char* name;  // LLVM's name of the processor
  Machine machine;
};

// Cache sizes come from the processors' data sheets. The code for a desktop is the same for all machines with its target.
std::span<const NamedMachine> described_machines() {
  static const std::array<NamedMachine, 7> machines = {{
      {"znver4",
       {.instructions = {.target = &targets::avx512, .rounds_to_bf16 = true, .multiplies_bf16_pairs = true},
        .cpu = "znver4",
        .features = "",
        .caches = {.first = 32 << 10, .second = 1 << 20},
        .cores = 2}},
      {"sapphirerapids",
       {.instructions = {.target = &targets::avx512, .rounds_to_bf16 = true, .computes_in_f16 = true},
        .cpu = "sapphirerapids",
        .features = "",
        .caches = {.first = 48 << 10, .second = 2 << 20},
        .cores = 2}},
      {"icelake-server",
       {.instructions = {.target = &targets::avx512},
        .cpu = "icelake-server",
        .features = "",
        .caches = {.first = 48 << 10, .second = 1280 << 10},
        .cores = 2}},
      {"alderlake",
       {.instructions = {.target = &targets::avx2},
        .cpu = "x86-64-v3",
        .features = "",
        .caches = {.first = 48 << 10, .second = 1280 << 10},
        .cores = 2}},
      {"neoverse-n1",
       {.instructions = {.architecture = &targets::aarch64, .target = &targets::neon, .computes_in_f16 = true},
        .cpu = "neoverse-n1",
        .features = "",
        .caches = {.first = 64 << 10, .second = 1 << 20},
        .cores = 2}},
      {"neoverse-v1",
       {.instructions =
            {.architecture = &targets::aarch64, .target = &targets::sve, .scalable_bits = 256, .computes_in_f16 = true},
        .cpu = "neoverse-v1",
        .features = "",
        .caches = {.first = 64 << 10, .second = 1 << 20},
        .cores = 2}},
      {"a64fx",
       {.instructions =
            {.architecture = &targets::aarch64, .target = &targets::sve, .scalable_bits = 512, .computes_in_f16 = true},
        .cpu = "a64fx",
        .features = "",
        .caches = {.first = 64 << 10, .second = 8 << 20},
        .cores = 2}},
  }};
  return machines;
}

std::string names() {
  std::string all = "host";
  for (const NamedMachine& each : described_machines()) all += std::string(", ") + each.name;
  return all;
}

Machine machine_called(const std::string& name) {
  if (name == "host") return lamina::cpu::host_machine();
  for (const NamedMachine& each : described_machines()) {
    if (name == each.name) return each.machine;
  }
  throw Error(Status::invalid_arguments, lamina::join("machine \"", name, "\", allowed is ", names()));
}

// Throws Error(unimplemented) with the first unsupported op.
void compile_file(const std::string& file, const lamina::Backend& backend) {
  const lamina::Graph graph = lamina::driver::load_graph(file, {});
  for (const lamina::Partition& partition : lamina::partition_graph(graph, lamina::PartitionPolicy::fusion, backend)) {
    if (!partition.supported) {
      throw Error(Status::unimplemented, lamina::driver::place_of(file, partition) + partition.unsupported_reason);
    }
    const auto compiled = lamina::compiler::compile_partition(partition, backend);
    for (const std::string& kernel : compiled->info().kernels) std::cout << kernel << '\n';
  }
}

int run(const std::string& machine, const std::string& folder, std::span<char* const> files) {
  const auto backend = lamina::cpu::make_backend(machine_called(machine));
  if (!std::filesystem::path(folder).is_absolute())
    throw Error(Status::invalid_arguments, lamina::join("folder \"", folder, "\", allowed is an absolute path"));
  setenv("LAMINA_CACHE_DIR", folder.c_str(), 1);  // must be set before the first kernel is compiled, which reads it
  for (const char* const file : files) compile_file(file, *backend);
  if (!std::filesystem::is_directory(folder) || std::filesystem::is_empty(folder))
    throw Error(Status::invalid_arguments,
                lamina::join("folder \"", folder, "\" received no code; LAMINA_VERBOSE=1 prints the reason"));
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 2 && std::string(arguments[1]) == "--machines") {
    std::cout << names() << '\n';
    return 0;
  }
  if (count < 4) {
    std::cerr << "usage: compile_for MACHINE FOLDER FILE..., or compile_for --machines\n";
    return 2;
  }
  try {
    return run(arguments[1], arguments[2], std::span(arguments + 3, static_cast<size_t>(count - 3)));
  } catch (const Error& error) {
    std::cerr << "compile_for: " << error.what() << '\n';
    return error.status() == Status::unimplemented ? 1 : 2;
  } catch (const std::exception& error) {
    std::cerr << "compile_for: " << error.what() << '\n';
    return 2;
  }
}
