// The simple walks: a whole row, and the part of it that the call specifies.
#include "backends/cpu/emit/walk.h"

namespace lamina::cpu {

namespace {

class WholeWalk final : public Walk {
 public:
  WholeWalk(Emission& emission, const Run& run) : Walk(emission), run_(run) {}
  void over(const std::vector<Row*>& rows, const Body& body) const override {
    run_.count(*rows.front(), i64(0), kernel_.row_size(), body);
  }

 private:
  const Run& run_;
};

class PartWalk final : public Walk {
 public:
  PartWalk(Emission& emission, const Run& run) : Walk(emission), run_(run) {}
  void over(const std::vector<Row*>& rows, const Body& body) const override {
    run_.range(*rows.front(), e_.inner_begin, e_.inner_end, body);
  }

 private:
  const Run& run_;
};

}  // namespace

std::unique_ptr<Walk> walk_whole(Emission& emission, const Run& run) { return std::make_unique<WholeWalk>(emission, run); }
std::unique_ptr<Walk> walk_part(Emission& emission, const Run& run) { return std::make_unique<PartWalk>(emission, run); }

}  // namespace lamina::cpu
