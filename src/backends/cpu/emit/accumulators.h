// Accumulators: the 64 virtual lanes of a sum (product, maximum, minimum) along a row, in one of two forms.
//
// Along rows, the lanes are in vectors of the machine's width, which become registers: each vector of the chunk has one.
// Across rows, a lane of the 64 is a vector with one element per row. They are in an array in memory, where vector i mod 64
// accumulates element i of a run. A walk that only uses a few of them may *hold* these in registers meanwhile; if a row is so
// short that each element has a lane of its own, all of them.
//
// At the end of a block the lanes are folded: lane l with l + 32, then l + 16, ... The tree is the same for every width.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backends/cpu/emit/nan_flags.h"
#include "backends/cpu/emit/row.h"

namespace lamina::cpu {

enum class Combine { sum, product, maximum, minimum };

Combine combine_of(kernel::Reduction reduction);
llvm::Value* combine(Emission& e, Combine how, llvm::Value* a, llvm::Value* b);
llvm::Value* identity_of(Combine how, llvm::Type* type);
// Lane 0 of the tree over the first `count` lanes of a vector: lane l joins lane l + count / 2, and so on.
using Join = std::function<llvm::Value*(llvm::Value*, llvm::Value*)>;
llvm::Value* fold_lanes(Emission& e, const Join& join, llvm::Value* vector, int count);

class Accumulator : protected Part {
 public:
  virtual ~Accumulator() = default;
  Combine how() const { return how_; }
  kernel::Type type() const { return type_; }

  // Adds the elements at `lanes`, one vector each.
  void add(std::span<llvm::Value* const> values, std::span<const Lanes> lanes);
  void add_square(llvm::Value* value, const Lanes& lanes);
  // Return the combined value of the lanes, either reduced to one vector or as a value per row, and reset the lanes.
  virtual llvm::Value* fold_vectors() = 0;
  virtual llvm::Value* fold() = 0;

 protected:
  Accumulator(Emission& e, Combine how, kernel::Type type, int width);
  // Combines two of the accumulator's vectors without NaN checks: `nans_` records NaNs.
  llvm::Value* combine_lanes(llvm::Value* a, llvm::Value* b);
  virtual llvm::Value* slot(const Lanes& lanes) = 0;  // the address of the accumulator's lanes at `lanes`
  virtual llvm::Value* where_live(llvm::Value* value, llvm::Value* otherwise, const Lanes& lanes) = 0;

  const Combine how_;
  const kernel::Type type_;
  std::optional<NanFlags> nans_;  // for a maximum or a minimum
};

class LanesInRegisters final : public Accumulator {
 public:
  LanesInRegisters(Emission& e, Combine how, kernel::Type type);
  llvm::Value* fold_vectors() override;
  llvm::Value* fold() override;

 private:
  llvm::Value* slot(const Lanes& lanes) override { return vectors_[lanes.number]; }
  llvm::Value* where_live(llvm::Value* value, llvm::Value* otherwise, const Lanes& lanes) override;
  llvm::Value* fold_numbers();  // without NaNs
  void reset();

  std::vector<llvm::AllocaInst*> vectors_;
};

class LanesInMemory final : public Accumulator {
 public:
  LanesInMemory(Emission& e, Combine how, kernel::Type type);
  llvm::Value* fold_vectors() override;
  llvm::Value* fold() override { return fold_vectors(); }  // a vector with a lane per row is a value per row
  void reset();

  // Between hold and release, `count` lanes and those 32 above them are in registers, numbered in this order.
  void hold(int count);
  void start_held();
  // adds both halves to the array's lanes from `first` on; the array's upper half is not used
  void join_held(llvm::Value* first);
  void release() { held_.clear(); }
  // Until the next fold, all lanes of a run of `count` elements are in registers, numbered by position.
  void hold_run(int count);

 private:
  llvm::Value* slot(const Lanes& lanes) override;
  // Lanes without a row are computed too, and never read.
  llvm::Value* where_live(llvm::Value* value, llvm::Value*, const Lanes&) override { return value; }
  llvm::Value* slot_of(llvm::Value* lane) { return b_.CreateGEP(vector_, array_, lane); }
  llvm::Value* fold_array();
  llvm::Value* fold_run();
  llvm::Value* joined(size_t lane, size_t distance);
  void join_levels();
  void join(llvm::Value* lane, llvm::Value* half);
  void for_each_lane(int count, const std::function<void(llvm::Value*)>& body);
  int lanes_in_use() const;

  llvm::Type* const vector_;
  llvm::AllocaInst* const array_;
  std::vector<llvm::AllocaInst*> held_;
  bool holds_run_ = false;
  int in_memory_ = 0;  // the number of lanes of the array into which all others are joined
};

std::unique_ptr<Accumulator> make_accumulator(Emission& e, Combine how, kernel::Type type);

}  // namespace lamina::cpu
