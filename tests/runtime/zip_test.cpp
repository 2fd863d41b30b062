// Archives as the compiler writes them and the runtime reads them, also those with records for large members.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <string_view>

#include "compiler/zip_writer.h"
#include "interface/status.h"
#include "runtime/zip_directory.h"

namespace lamina::testing {
namespace {

std::string archive(uint64_t most) {
  std::ostringstream out;
  compiler::ZipWriter zip(out, most);
  zip.add("first", std::string_view("1234567"), 64);
  zip.add("folder/second", std::string(5000, 'x'), 4096);
  zip.add("empty", std::string_view(), 64);
  zip.finish();
  return std::move(out).str();
}

// All members are small, the later ones are large, all are large.
TEST(Zip, IsReadAsItWasWritten) {
  for (const uint64_t most : {0xFFFFFFFFU, 1000U, 0U}) {
    const std::string file = archive(most);
    const auto members = runtime::read_zip_directory(file);
    ASSERT_EQ(members.size(), 3U) << most;
    EXPECT_EQ(members[0].name, "first");
    EXPECT_EQ(members[0].data, "1234567");
    EXPECT_EQ((members[0].data.data() - file.data()) % 64, 0);
    EXPECT_EQ(members[1].name, "folder/second");
    EXPECT_EQ(members[1].data, std::string(5000, 'x'));
    EXPECT_EQ((members[1].data.data() - file.data()) % 4096, 0);
    EXPECT_EQ(members[2].data, "");
  }
}

TEST(Zip, OfLargeMembersIsRefusedWhereverItEnds) {
  const std::string file = archive(0);
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_THROW(runtime::read_zip_directory(std::string_view(file).substr(0, size)), Error) << size;
}

}  // namespace
}  // namespace lamina::testing
