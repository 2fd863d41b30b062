// Bounds the size of generated code for every row length: at most 16 KB per kernel on AVX-512. Narrower registers need more
// instructions, and plain x86-64 converts each f16 element by integer arithmetic. The sizes are read from the functions in the
// objects of the on-disk cache.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "backends/cpu/llvm/headers.h"
#include "backends/cpu/numerics/bits.h"
#include "backends/cpu/support/described_machines.h"
#include "support/own_process.h"

namespace lamina::testing {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHeaderBytes = 56;  // the header of an entry: see code_cache.cpp

// Returns the code bytes of each function in a cache entry.
std::map<std::string, uint64_t> code_sizes(const fs::path& entry) {
  std::ifstream file(entry, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  uint64_t key_bytes = 0;
  std::memcpy(&key_bytes, whole.data() + 8, sizeof key_bytes);
  const std::string code = whole.substr(kHeaderBytes + key_bytes);
  auto object = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(code, "object"));
  std::map<std::string, uint64_t> sizes;
  if (!object) {
    ADD_FAILURE() << llvm::toString(object.takeError());
    return sizes;
  }
  for (const auto& [symbol, size] : llvm::object::computeSymbolSizes(**object)) {
    auto name = symbol.getName();
    if (name && name->starts_with("lamina_")) sizes[name->str()] = size;
    llvm::consumeError(name.takeError());
  }
  return sizes;
}

// Returns the machine that CODE_MACHINE names, or this machine with at most the instruction set that CODE_ISA names.
cpu::Machine machine_from_environment() {
  const char *const name = std::getenv("CODE_MACHINE"), *const isa = std::getenv("CODE_ISA");
  for (const DescribedMachine& described : described_machines()) {
    if (name != nullptr && described.name == name) return described.machine;
  }
  const cpu::Machine host = cpu::host_machine();
  const cpu::Target* const most = isa == nullptr ? nullptr : cpu::targets::find(*host.instructions.architecture, isa);
  return most == nullptr ? host : cpu::capped(host, *most);
}

// The code is not executed: the host may lack the machine's instructions.
TEST(CodeSize, DISABLED_CompileAll) {
  const cpu::Machine machine = machine_from_environment();
  for (const BitsCase& graph : bits_cases()) {
    for (const DataType dtype : graph.dtypes) {
      for (const int64_t size : {61, 1023, 20'557}) BitsRun(graph, 3, size, dtype, machine).compiled();
    }
  }
}

// Add, LayerNorm and GELU of f16 need 112 KB if integer arithmetic converts the elements.
uint64_t most_bytes_for(const cpu::Instructions& instructions) {
  if (!instructions->converts_f16) return 128 << 10;
  return cpu::vector_bits(instructions) == 512 ? 16 << 10 : 24 << 10;
}

class CodeSizeOnMachine : public ::testing::TestWithParam<DescribedMachine> {};

TEST_P(CodeSizeOnMachine, IsBoundedForAnyRow) {
  const uint64_t most_bytes = most_bytes_for(GetParam().machine.instructions);
  std::string pattern = (fs::temp_directory_path() / "lamina-code-size-XXXXXX").string();
  const fs::path folder = mkdtemp(pattern.data());
  expect_passes_in_own_process("CodeSize.DISABLED_CompileAll",
                               {{"LAMINA_CACHE_DIR", folder}, {"CODE_MACHINE", GetParam().name}});
  size_t functions = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    for (const auto& [name, size] : code_sizes(entry)) {
      EXPECT_LE(size, most_bytes) << name << " for " << GetParam().name;
      ++functions;
    }
  }
  EXPECT_GT(functions, 100u);
  fs::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Machines, CodeSizeOnMachine, ::testing::ValuesIn(described_machines()), name_of_machine);

// Memory that holds code is never writable and executable at once: SectionMemoryManager writes first and protects afterwards.
// The test needs its own process: oneDNN's generator uses writable code pages once a product has run.
TEST(GeneratedCode, DISABLED_Maps) {
  BitsRun(bits_cases().front(), 3, 61, DataType::f32)();
  std::ifstream maps("/proc/self/maps");
  size_t executable = 0;
  for (std::string line; std::getline(maps, line);) {
    const std::string permissions = line.substr(line.find(' ') + 1, 4);
    if (permissions.find('x') == std::string::npos) continue;
    ++executable;
    EXPECT_EQ(permissions.find('w'), std::string::npos) << line;
  }
  EXPECT_GT(executable, 0u);
}
TEST(GeneratedCode, NoMemoryIsWritableAndExecutable) { expect_passes_in_own_process("GeneratedCode.DISABLED_Maps", {}); }

}  // namespace
}  // namespace lamina::testing
