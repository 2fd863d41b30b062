// docs/ops equals the pages generated from the schemas.
#include "lamina/op_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "support/files.h"

namespace lamina::driver {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::text_of;

const fs::path kFolder = testing::kTree / "docs" / "ops";

TEST(OpPages, InTheTreeAreWhatTheSchemasGive) {
  for (const auto& [name, text] : op_pages())
    EXPECT_TRUE(text_of(kFolder / name) == text)
        << "docs/ops/" << name << " is not what its schema gives: build the target op_pages";
}

TEST(OpPages, AreOneAnOpAndAnIndex) {
  std::set<std::string> expected{"README.md"}, found;
  for (const OpKind kind : all_op_kinds()) expected.insert(std::string(name_of(kind)) + ".md");
  for (const auto& entry : fs::directory_iterator(kFolder)) found.insert(entry.path().filename().string());
  EXPECT_EQ(found, expected);
  const std::string index = text_of(kFolder / "README.md");
  for (const OpKind kind : all_op_kinds()) EXPECT_THAT(index, HasSubstr("](" + std::string(name_of(kind)) + ".md)"));
}

TEST(OpPages, SayWhatEachOutputLooksLike) {
  for (const OpKind kind : all_op_kinds()) {
    EXPECT_FALSE(schema_of(kind).formula.empty()) << name_of(kind);
    for (const PortSpec& port : schema_of(kind).outputs)
      EXPECT_TRUE(!port.meaning.empty() || kind == OpKind::Wildcard)
          << name_of(kind) << " says nothing of the shape of " << port.name;
  }
}

TEST(OpPages, ShowDefaultsRangesAndTypeCombinations) {
  const std::string page = op_page(schema_of(OpKind::LayerNorm));
  EXPECT_THAT(page, HasSubstr("| `epsilon` | f32 | default 1e-05 | a positive finite number |"));
  EXPECT_THAT(page, HasSubstr("| bf16 | f32, bf16 |"));
  EXPECT_THAT(page, HasSubstr("| `gamma` | T2 | required; only when use_affine is true |"));
  EXPECT_THAT(page, HasSubstr("`src` -1 to 3; `gamma` 0.5 to 1.5"));
  EXPECT_THAT(op_page(schema_of(OpKind::ReLU)), HasSubstr("## Accuracy\n\nExact, except for"));
  EXPECT_THAT(op_page(schema_of(OpKind::GroupNorm)), HasSubstr("| `groups` | s64 | required | 1 or more |"));
}

}  // namespace
}  // namespace lamina::driver
