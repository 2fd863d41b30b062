// The mathematics knows no backend: no file of src/kernels names one, so that a second backend needs no change there.
#include <gtest/gtest.h>

#include <regex>

#include "support/files.h"

namespace lamina::kernel {
namespace {

namespace fs = std::filesystem;

// The code of a file, without its comments, which may well explain whom a rule serves.
std::string code_of(const fs::path& path) { return std::regex_replace(testing::text_of(path), std::regex("//[^\n]*"), ""); }

TEST(Rooms, NoLoweringNamesABackend) {
  const std::regex backend("\\b(backends/|cpu|gpu|cuda|opencl|reference_backend|llvm)", std::regex::icase);
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(testing::kTree / "src" / "kernels")) {
    if (!entry.is_regular_file()) continue;
    ++files;
    const std::string code = code_of(entry.path());
    std::smatch found;
    EXPECT_FALSE(std::regex_search(code, found, backend)) << entry.path() << " names " << found.str();
  }
  EXPECT_GT(files, 20);
}

}  // namespace
}  // namespace lamina::kernel
