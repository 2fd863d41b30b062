// Which modules may include which. A graph passes through the modules from top to bottom. A module includes only some of those
// above it and none below, so it can be read, tested and changed without them. A folder inside a module is a separate module.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "support/files.h"

namespace lamina::testing {
namespace {

namespace fs = std::filesystem;

struct Module {
  std::string name;
  std::vector<std::string> paths;  // its folders; the module with the longest matching path owns a file
  std::vector<std::string> knows;  // modules on earlier lines
};

const std::vector<Module>& modules() {
  static const std::vector<Module> all = {
      {"include", {"include/graph/"}, {}},
      {"handles", {"src/handles/"}, {}},
      {"interface", {"src/interface/"}, {"include"}},
      {"interface/ops", {"src/interface/ops/"}, {"interface"}},
      {"interface/json", {"src/interface/json/"}, {"interface"}},

      {"passes/core", {"src/passes/core/"}, {"interface"}},
      {"passes/patterns", {"src/passes/patterns/"}, {"passes/core", "interface"}},
      {"passes/fusion", {"src/passes/fusion/"}, {"passes/core", "interface"}},
      {"passes/tiling", {"src/passes/tiling/"}, {"passes/fusion", "passes/core", "interface"}},
      {"passes", {"src/passes/"}, {"passes/fusion", "passes/patterns", "passes/core", "interface"}},

      {"kernels/math", {"src/kernels/math/"}, {"interface"}},
      {"kernels", {"src/kernels/"}, {"kernels/math", "passes", "passes/tiling", "passes/fusion", "passes/core", "interface"}},
      {"kernels/ops", {"src/kernels/ops/"}, {"kernels", "kernels/math", "interface"}},

      {"backends", {"src/backends/"}, {"handles", "kernels", "passes/core", "interface"}},
      {"backends/cache", {"src/backends/cache/"}, {"interface"}},
      {"backends/schedule", {"src/backends/schedule/"}, {"interface"}},
      {"backends/tune",
       {"src/backends/tune/"},
       {"backends/schedule", "backends/cache", "backends", "kernels", "handles", "interface"}},
      {"reference", {"src/backends/reference/"}, {"backends", "passes", "interface"}},

      {"cpu/llvm", {"src/backends/cpu/llvm/"}, {}},
      {"cpu/targets", {"src/backends/cpu/targets/"}, {}},
      {"cpu/host", {"src/backends/cpu/host/"}, {"interface"}},
      {"cpu/targets/isa", {"src/backends/cpu/targets/isa/"}, {"cpu/targets", "cpu/llvm"}},
      {"cpu/program", {"src/backends/cpu/program/"}, {"backends/cache", "backends", "kernels", "interface"}},
      {"cpu/schedule",
       {"src/backends/cpu/schedule/"},
       {"cpu/program", "cpu/targets", "backends/schedule", "kernels", "interface"}},
      {"cpu/vector", {"src/backends/cpu/vector/"}, {"cpu/targets/isa", "cpu/targets", "cpu/llvm", "kernels/math", "interface"}},
      {"cpu/emit",
       {"src/backends/cpu/emit/"},
       {"cpu/vector", "cpu/schedule", "cpu/program", "cpu/targets/isa", "cpu/targets", "cpu/llvm", "kernels", "interface"}},
      {"cpu/product",
       {"src/backends/cpu/product/"},
       {"cpu/vector", "cpu/schedule", "cpu/program", "backends/schedule", "cpu/targets/isa", "cpu/targets", "cpu/llvm",
        "kernels", "interface"}},
      {"cpu/code",
       {"src/backends/cpu/code/"},
       {"backends/cache", "backends/tune", "backends/schedule", "cpu/emit", "cpu/product", "cpu/vector", "cpu/schedule",
        "cpu/program", "cpu/targets/isa", "cpu/targets", "cpu/llvm", "kernels", "handles", "interface"}},
      {"cpu/threads", {"src/backends/cpu/threads/"}, {"cpu/host", "backends", "handles", "interface"}},
      {"cpu/dispatch",
       {"src/backends/cpu/dispatch/"},
       {"cpu/program", "cpu/threads", "cpu/host", "backends", "kernels", "handles", "interface"}},
      {"cpu/library",
       {"src/backends/cpu/library/"},
       {"cpu/dispatch", "cpu/program", "cpu/host", "cpu/threads", "backends", "kernels", "handles", "interface"}},
      {"cpu/library/products",
       {"src/backends/cpu/library/products/"},
       {"cpu/library", "cpu/product", "cpu/dispatch", "cpu/program", "cpu/threads", "cpu/code", "cpu/schedule", "backends",
        "kernels", "interface"}},
      {"cpu/run",
       {"src/backends/cpu/run/"},
       {"cpu/library", "cpu/dispatch", "cpu/program", "cpu/threads", "cpu/code", "cpu/emit", "cpu/schedule", "cpu/host",
        "backends/tune", "backends", "kernels", "handles", "interface"}},
      {"cpu/tune",
       {"src/backends/cpu/tune/"},
       {"cpu/run", "cpu/dispatch", "cpu/program", "cpu/code", "cpu/schedule", "backends/tune", "backends", "kernels", "handles",
        "interface"}},
      {"cpu",
       {"src/backends/cpu/"},
       {"cpu/tune", "cpu/run", "cpu/library", "cpu/dispatch", "cpu/program", "cpu/threads", "cpu/code", "cpu/schedule",
        "backends", "kernels", "handles", "interface"}},

      {"gpu/languages", {"src/backends/gpu/languages/"}, {}},
      {"gpu/schedule", {"src/backends/gpu/schedule/"}, {"backends/schedule", "kernels", "interface"}},
      {"gpu/emit", {"src/backends/gpu/emit/"}, {"gpu/languages", "gpu/schedule", "kernels", "kernels/math", "interface"}},
      {"gpu",
       {"src/backends/gpu/"},
       {"gpu/emit", "gpu/languages", "gpu/schedule", "backends/tune", "backends/cache", "handles", "backends", "kernels",
        "interface"}},
      {"gpu/cuda", {"src/backends/gpu/cuda/"}, {"gpu", "gpu/languages", "handles", "backends/cache", "kernels", "interface"}},
      {"gpu/hip", {"src/backends/gpu/hip/"}, {"gpu", "interface"}},
      {"gpu/opencl", {"src/backends/gpu/opencl/"}, {"gpu", "gpu/languages", "handles", "interface"}},
      {"gpu/devices", {"src/backends/gpu/devices/"}, {"gpu/cuda", "gpu/opencl", "gpu", "backends", "interface"}},

      {"pictures", {"src/pictures/"}, {"interface/json", "interface"}},

      {"compiler",
       {"src/compiler/"},
       {"handles", "backends/cache", "backends", "kernels", "passes", "passes/tiling", "passes/fusion", "passes/core",
        "interface/json", "interface"}},
      {"api",
       {"src/api/"},
       {"compiler", "pictures", "handles", "backends", "passes", "passes/fusion", "passes/core", "interface/json", "interface",
        "include"}},
      {"runtime",
       {"src/runtime/"},
       {"cpu/dispatch", "cpu/program", "cpu/host", "backends/cache", "backends", "interface", "include"}},
      // They use only the public headers, like users; infiniop's handles have the same implementation as the library's.
      {"compat", {"compat/"}, {"handles", "include"}},
      {"compat/onednn_graph", {"compat/onednn_graph/"}, {"handles", "include"}},
      {"tools",
       {"tools/"},
       {"compiler", "pictures", "api", "reference", "backends", "kernels", "passes", "passes/fusion", "passes/core",
        "interface/json", "interface", "include"}},
      // Generates code for described machines, which the driver's engines do not support.
      {"tools/compile_for",
       {"tools/compile_for/"},
       {"tools", "compiler", "cpu", "cpu/run", "cpu/code", "cpu/schedule", "passes", "interface"}},
      {"benchmarks", {"benchmarks/"}, {"backends/tune",  "api",       "tools",       "backends/schedule",    "gpu/emit",
                                       "gpu/schedule",   "compat",    "cpu/product", "cpu/library/products", "cpu/library",
                                       "cpu/threads",    "compiler",  "cpu/code",    "cpu/schedule",         "cpu/host",
                                       "cpu/run",        "cpu/tune",  "cpu",         "gpu/devices",          "gpu",
                                       "backends",       "kernels",   "passes",      "passes/fusion",        "passes/core",
                                       "interface/json", "interface", "include"}},
  };
  return all;
}

// Headers of other libraries that only these modules may include.
struct Fence {
  std::string header;  // prefix of the name in angle brackets
  std::set<std::string> modules;
};

const std::vector<Fence> kFences = {
    {"llvm/", {"cpu/llvm", "backends/cache"}},  // it uses LLVM's hash
    {"nlohmann/", {"interface/json", "benchmarks"}},
    {"CLI/", {"tools"}},
    {"oneapi/", {"cpu/library", "compat/onednn_graph", "benchmarks"}},
};

const Module* module_of(const std::string& path) {
  const Module* found = nullptr;
  size_t longest = 0;
  for (const Module& module : modules())
    for (const std::string& beginning : module.paths)
      if (beginning.size() > longest && path.starts_with(beginning)) {
        found = &module;
        longest = beginning.size();
      }
  return found;
}

// Returns the file of the repository that an #include resolves to, relative to its root; "" for a header of another library.
std::string file_meant(const fs::path& includer, const std::string& name) {
  // The front end that has oneDNN's names is for users; the CPU backend includes oneDNN itself.
  if (name.starts_with("oneapi/") && includer.parent_path().filename() == "onednn") return "";
  std::vector<fs::path> folders = {includer.parent_path()};
  for (const char* const folder :
       {"src", "src/handles", "include", "tools", "tests", "compat/infiniop/include", "compat/onednn_primitive/include"})
    folders.push_back(kTree / folder);
  for (const fs::path& folder : folders)
    if (fs::is_regular_file(folder / name)) return fs::relative(folder / name, kTree).generic_string();
  return "";
}

struct Include {
  std::string from, name,
      to;  // the including file, the name that it writes, and the included file of the repository ("" if there is none)
};

std::vector<Include> includes_of_the_tree() {
  static const std::regex line("^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"]+)[>\"]", std::regex::multiline);
  static const std::set<std::string> kEndings = {".h", ".hpp", ".c", ".cpp", ".inl", ".def"};
  std::vector<Include> includes;
  for (const char* const folder : {"include", "src", "compat", "tools", "benchmarks"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kTree / folder)) {
      if (!entry.is_regular_file() || !kEndings.contains(entry.path().extension().string())) continue;
      const std::string from = fs::relative(entry.path(), kTree).generic_string();
      const std::string text = text_of(entry.path());
      for (std::sregex_iterator found(text.begin(), text.end(), line), end; found != end; ++found)
        includes.push_back({from, (*found)[1], file_meant(entry.path(), (*found)[1])});
    }
  }
  return includes;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "no other module" : text;
}

TEST(Layers, KnowEarlierLinesAlone) {
  std::set<std::string> earlier;
  for (const Module& module : modules()) {
    for (const std::string& known : module.knows) EXPECT_TRUE(earlier.contains(known)) << module.name << " knows " << known;
    EXPECT_TRUE(earlier.insert(module.name).second) << module.name << " stands twice";
  }
}

TEST(Layers, IncludeWhatTheyMayKnow) {
  std::set<std::string> inhabited;
  for (const Include& include : includes_of_the_tree()) {
    const Module* const from = module_of(include.from);
    ASSERT_NE(from, nullptr) << include.from << " lies in no module";
    inhabited.insert(from->name);
    const Module* const to = include.to.empty() ? nullptr : module_of(include.to);
    if (to == nullptr || to == from) continue;
    inhabited.insert(to->name);
    EXPECT_TRUE(std::find(from->knows.begin(), from->knows.end(), to->name) != from->knows.end())
        << include.from << " includes " << include.to << ": " << from->name << " -> " << to->name << ", but " << from->name
        << " knows " << listed(from->knows);
  }
  for (const Module& module : modules()) EXPECT_TRUE(inhabited.contains(module.name)) << module.name << " has no files";
}

// Headers that include each other depend on the order of inclusion.
TEST(Layers, HeadersIncludeEachOtherInOneDirection) {
  std::map<std::string, std::set<std::string>> knows;
  for (const Include& include : includes_of_the_tree())
    if (!include.to.empty() && fs::path(include.from).extension() != ".cpp") knows[include.from].insert(include.to);
  // Removes files whose includes were all removed, until none or only cycles remain.
  for (bool changed = true; changed;) {
    changed = false;
    for (auto file = knows.begin(); file != knows.end();) {
      std::erase_if(file->second, [&](const std::string& included) { return !knows.contains(included); });
      const bool is_leaf = file->second.empty();
      file = is_leaf ? knows.erase(file) : std::next(file);
      changed |= is_leaf;
    }
  }
  for (const auto& [file, included] : knows)
    ADD_FAILURE() << file << " and " << *included.begin() << " include each other, at last";
}

TEST(Layers, KeepOtherLibrariesBehindTheirFences) {
  std::map<std::string, int> uses;
  for (const Include& include : includes_of_the_tree()) {
    for (const Fence& fence : kFences) {
      if (!include.to.empty() || !include.name.starts_with(fence.header)) continue;
      ++uses[fence.header];
      const Module* const module = module_of(include.from);
      ASSERT_NE(module, nullptr) << include.from;
      EXPECT_TRUE(fence.modules.contains(module->name)) << include.from << " includes <" << include.name << ">; only "
                                                        << listed({fence.modules.begin(), fence.modules.end()}) << " may";
    }
  }
  EXPECT_EQ(uses.size(), kFences.size());
}

// Returns a file's code without comments, which may mention backends.
std::string code_of(const fs::path& path) { return std::regex_replace(text_of(path), std::regex("//[^\n]*"), ""); }

// No file of src/kernels names a backend, so that a new backend needs no change there.
TEST(Layers, NoLoweringNamesABackend) {
  const std::regex backend("\\b(backends/|cpu|gpu|cuda|opencl|reference_backend|llvm)", std::regex::icase);
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kTree / "src" / "kernels")) {
    if (!entry.is_regular_file()) continue;
    ++files;
    const std::string code = code_of(entry.path());
    std::smatch found;
    EXPECT_FALSE(std::regex_search(code, found, backend)) << entry.path() << " names " << found.str();
  }
  EXPECT_GT(files, 20);
}

// Path prefixes of files that may name an instruction set: descriptions of targets and of other machines, compiler
// options, SHA-256 by instructions of its own, and a loop that is compiled for several widths of vectors.
const std::vector<std::string> kTargetFiles = {"src/backends/cache/sha256_blocks.cpp",
                                               "src/backends/cpu/targets/",
                                               "src/backends/cpu/host/",
                                               "src/backends/cpu/llvm/",
                                               "tools/compile_for/",
                                               "benchmarks/roofline/",
                                               "python/src/draws.cpp",
                                               "cmake/toolchains/"};

// `piece` is a lower-case part of a name: "avx512" in target.avx512_bf16.
bool is_instruction_set(const std::string& piece) {
  const auto begins = [&](const char* with) { return piece.starts_with(with); };
  const auto has = [&](const char* part) { return piece.find(part) != std::string::npos; };
  static const std::set<std::string> kNames = {"amd64", "arm64", "ia32", "neon", "sve", "sve2", "sme", "rvv"};
  return kNames.contains(piece) || has("x86") || has("aarch64") || has("riscv") || has("mmintrin") || begins("avx") ||
         begins("sse2") || begins("sse3") || begins("sse4") || begins("xmm") || begins("ymm") || begins("zmm") ||
         begins("mm256") || begins("mm512");
}

// Returns the first instruction set that a text names; "" if there is none.
std::string instruction_set_in(const std::string& text) {
  std::string piece;
  for (const char c : text + " ") {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      piece += static_cast<char>(std::tolower(byte));
    } else {
      if (is_instruction_set(piece)) return piece;
      piece.clear();
    }
  }
  return "";
}

// All other files query the targets, so that a new instruction set needs no change there.
TEST(Layers, NoFileButATargetsNamesAnInstructionSet) {
  static const std::set<std::string> kEndings = {".h", ".hpp", ".c", ".cpp", ".inl", ".def", ".cmake", ".txt"};
  std::vector<fs::path> files = {kTree / "CMakeLists.txt"};
  for (const char* const folder : {"include", "src", "compat", "tools", "benchmarks", "cmake", "python"})
    for (const auto& entry : fs::recursive_directory_iterator(kTree / folder))
      if (entry.is_regular_file() && kEndings.contains(entry.path().extension().string())) files.push_back(entry.path());
  std::set<std::string> used;
  for (const fs::path& file : files) {
    const std::string path = fs::relative(file, kTree).generic_string(), ending = file.extension().string();
    const bool is_cmake = ending == ".cmake" || ending == ".txt";
    const std::string code = is_cmake ? std::regex_replace(text_of(file), std::regex("#[^\n]*"), "") : code_of(file);
    const std::string found = instruction_set_in(code);
    const auto target = std::find_if(kTargetFiles.begin(), kTargetFiles.end(),
                                     [&](const std::string& beginning) { return path.starts_with(beginning); });
    if (found.empty()) continue;
    if (target != kTargetFiles.end())
      used.insert(*target);
    else
      ADD_FAILURE() << path << " names " << found << "; only target files may: " << listed(kTargetFiles);
  }
  for (const std::string& beginning : kTargetFiles)
    EXPECT_TRUE(used.contains(beginning)) << beginning << "* names none any more";
}

}  // namespace
}  // namespace lamina::testing
