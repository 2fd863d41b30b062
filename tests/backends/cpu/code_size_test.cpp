// The size of generated code, whatever the length of a row: at most 16 KB a kernel for AVX-512; narrower registers take more
// instructions. Kernels that draw random numbers are larger and not held here. Sizes are those of the functions in the objects
// that the cache on disk holds.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "backends/cpu/bits.h"
#include "backends/cpu/code/llvm_headers.h"
#include "support/own_process.h"

namespace lamina::testing {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHeaderBytes = 56;  // of an entry: see code_cache.cpp

// The bytes of code in an entry of the cache, by function.
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

TEST(CodeSize, DISABLED_CompileAll) {
  for (const BitsCase& graph : bits_cases()) {
    if (graph.counts_rows) continue;
    for (const DataType dtype : graph.dtypes) {
      for (const int64_t size : {61, 1023, 20'557}) BitsRun(graph, 3, size, dtype)({.isa = std::getenv("CODE_ISA")});
    }
  }
}

TEST(CodeSize, IsBoundedForAnyRow) {
  for (const auto& [isa, most_bytes] : {std::pair<const char*, uint64_t>{"avx512", 16 << 10}, {"avx2", 24 << 10}}) {
    std::string pattern = (fs::temp_directory_path() / "lamina-code-size-XXXXXX").string();
    const fs::path folder = mkdtemp(pattern.data());
    expect_passes_in_own_process("CodeSize.DISABLED_CompileAll", {{"LAMINA_CACHE_DIR", folder}, {"CODE_ISA", isa}});
    size_t functions = 0;
    for (const auto& entry : fs::directory_iterator(folder)) {
      for (const auto& [name, size] : code_sizes(entry)) {
        EXPECT_LE(size, most_bytes) << name << " for " << isa;
        ++functions;
      }
    }
    EXPECT_GT(functions, 100u);
    fs::remove_all(folder);
  }
}

// Memory that holds code is never writable and executable at once: SectionMemoryManager writes first and protects then.
TEST(GeneratedCode, NoMemoryIsWritableAndExecutable) {
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

}  // namespace
}  // namespace lamina::testing
