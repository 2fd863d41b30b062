#include "backends/cpu/dispatch/product_units.h"

#include <algorithm>
#include <deque>

#include "backends/cpu/dispatch/primitive.h"

namespace lamina::cpu {

namespace {

using Unit = ProductUnit;

int64_t work_of(const Unit& unit) { return unit.rows() * unit.columns(); }

struct Range {
  int64_t first, end;
};

std::vector<Range> row_blocks(const ProductProgram& program) {
  std::vector<Range> blocks;
  for (int64_t first = 0; first < program.matrices.m; first += program.row_block)
    blocks.push_back({first, std::min(first + program.row_block, program.matrices.m)});
  return blocks;
}

// `shrinks`: the last blocks are smaller, so that all threads end at about the same time.
std::vector<Range> column_blocks(const ProductProgram& program, bool shrinks) {
  const int64_t n = program.matrices.n;
  std::vector<Range> blocks;
  for (int64_t first = 0, end = 0; first < n; first = end) {
    const int64_t share = shrinks ? (n - first) / (2 * program.threads) / program.columns * program.columns : n;
    end = std::min(first + std::min(program.column_block, std::max(share, program.columns)), n);
    blocks.push_back({first, end});
  }
  return blocks;
}

Unit unit_of(const ProductProgram& program, const Range& rows, const Range& columns) {
  const int64_t count = rows.end - rows.first, tiles = parts(count, program.rows);
  return {rows.first, tiles, count % tiles, count / tiles, columns.first, columns.end};
}

struct Halves {
  Unit first, second;
};
Halves cut_at_column(const Unit& unit, int64_t columns) {
  Halves halves{unit, unit};
  halves.first.end_column = halves.second.first_column = unit.first_column + columns;
  return halves;
}
Halves cut_at_tile(const Unit& unit, int64_t tiles) {
  Halves halves{unit, unit};
  halves.first.tiles = tiles;
  halves.first.taller = std::min(unit.taller, tiles);
  halves.second.first_row = halves.first.end_row();
  halves.second.tiles = unit.tiles - tiles;
  halves.second.taller = unit.taller - halves.first.taller;
  return halves;
}

// Gives each thread successive units, and cuts those between two threads: at a panel, and the panel at a tile of rows.
class EqualShares {
 public:
  EqualShares(const std::vector<Unit>& units, int threads, int64_t panel)
      : shares_(static_cast<size_t>(threads)), panel_(panel), left_(units.begin(), units.end()) {
    for (const Unit& unit : units) total_ += work_of(unit);
    while (!left_.empty()) {
      const Unit unit = left_.front();
      left_.pop_front();
      share(unit);
    }
  }

  // Those of all threads, as many for each.
  std::vector<Unit> units() const {
    size_t most = 0;
    for (const std::vector<Unit>& share : shares_) most = std::max(most, share.size());
    std::vector<Unit> all;
    for (std::vector<Unit> share : shares_) {
      share.resize(most, Unit{});
      all.insert(all.end(), share.begin(), share.end());
    }
    return all;
  }

 private:
  void share(const Unit& unit) {
    const bool is_last = thread_ + 1 == std::ssize(shares_);
    const int64_t room = total_ * (thread_ + 1) / std::ssize(shares_) - shared_;
    if (is_last || work_of(unit) <= room) return take(unit);
    if (unit.columns() > panel_) {
      const int64_t panels = std::max<int64_t>(room / (unit.rows() * panel_), 1);
      return put_back(cut_at_column(unit, panels * panel_));
    }
    const int64_t of_tile = work_of(unit) / unit.tiles, tiles = std::min((room + of_tile / 2) / of_tile, unit.tiles);
    if (tiles > 0 && tiles < unit.tiles) {
      const Halves halves = cut_at_tile(unit, tiles);
      take(halves.first);
      left_.push_front(halves.second);
    } else if (tiles > 0) {
      take(unit);
    } else {
      left_.push_front(unit);
    }
    ++thread_;
  }
  void take(const Unit& unit) {
    shares_[static_cast<size_t>(thread_)].push_back(unit);
    shared_ += work_of(unit);
  }
  void put_back(const Halves& halves) {
    left_.push_front(halves.second);
    left_.push_front(halves.first);
  }

  std::vector<std::vector<Unit>> shares_;
  const int64_t panel_;  // columns
  std::deque<Unit> left_;
  int64_t total_ = 0, shared_ = 0;
  int64_t thread_ = 0;
};

}  // namespace

// A thread takes successive units: they share the columns of the larger factor, so that it reads only a part of that.
std::vector<ProductUnit> product_units(const ProductProgram& program, bool may_cut) {
  const kernel::MatmulStack& matrices = program.matrices;
  const bool reads_in_place = !program.are_packed_ahead && !program.copies_panels;
  const bool is_shared = program.threads > 1 && matrices.products() == 1;
  const bool shrinks = is_shared && !may_cut && !reads_in_place && program.column_block < matrices.n;
  const std::vector<Range> rows = row_blocks(program), columns = column_blocks(program, shrinks);
  std::vector<Unit> units;
  if (matrices.n > matrices.m) {
    for (const Range& of_columns : columns)
      for (const Range& of_rows : rows) units.push_back(unit_of(program, of_rows, of_columns));
  } else {
    for (const Range& of_rows : rows)
      for (const Range& of_columns : columns) units.push_back(unit_of(program, of_rows, of_columns));
  }
  return is_shared && may_cut ? EqualShares(units, program.threads, program.columns).units() : units;
}

}  // namespace lamina::cpu
