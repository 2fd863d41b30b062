// In place of onednn/ in a build without it.
#include "backends/cpu/library/heavy_library.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

class Nothing final : public PrimitiveLibrary {
 public:
  std::string why_unsupported(const Graph&, const Op& op) const override {
    return join("the cpu backend runs ", name_of(op.kind),
                " by oneDNN, and this lamina was built without it (LAMINA_ONEDNN=OFF)");
  }
  std::unique_ptr<const Primitive> compile(const kernel::LibraryStep& step, const PrimitiveUse&) const override {
    LAMINA_CHECK(false, join(describe(step.op), " was planned as a step of a library that is not there"));
    return nullptr;
  }
};

}  // namespace

std::shared_ptr<const PrimitiveLibrary> heavy_library() {
  static const auto library = std::make_shared<const Nothing>();
  return library;
}

}  // namespace lamina::cpu
