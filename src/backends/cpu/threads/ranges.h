// Units of work that threads take. Each thread takes the units of its own range in order, and then the last ones of other
// threads' ranges. So a thread finds data of its previous work in its caches, one thread walks consecutive rows, and other
// threads do the work of a thread that is late.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace lamina::cpu {

// Lock-free. deal() requires that no thread takes units of the previous stage.
class Ranges {
 public:
  static constexpr int kMost = 64;              // number of ranges; more threads share them
  static constexpr int64_t kStages = 1 << 16;   // stages whose numbers differ by a multiple of this are not distinguished
  static constexpr int64_t kLongest = 1 << 24;  // a range has fewer bundles

  struct Taken {
    int64_t begin = 0, end = 0;  // units; empty: there were none left
    int64_t count() const { return end - begin; }
  };

  // Divides units 0 to units - 1 of a stage (at least one) among `ranges` ranges (1 to kMost). A very large number of units
  // is taken in bundles.
  void assign(int64_t stage, int64_t units, int ranges) {
    units_ = units;
    bundle_ = units / (ranges * (kLongest - 1)) + 1;
    bundles_ = (units + bundle_ - 1) / bundle_;
    ranges_.store(ranges, std::memory_order_relaxed);
    for (int r = 0; r < ranges; ++r)
      word(r).store(packed(stage, 0, first(r + 1, ranges) - first(r, ranges)), std::memory_order_release);
  }

  // Takes units for the thread with number `slot`. Returns none if another stage has been published.
  Taken take(int64_t stage, int slot) {
    const int ranges = ranges_.load(std::memory_order_relaxed), own = slot % ranges;
    for (int i = 0; i < ranges; ++i) {
      const int r = (own + i) % ranges;
      const int64_t place = take_from(r, stage, i == 0);
      if (place < 0) continue;
      // The stage cannot end before this unit ends, so these numbers are valid.
      const int64_t begin = (first(r, ranges) + place) * bundle_;
      return {begin, begin + bundle_ < units_ ? begin + bundle_ : units_};
    }
    return {};
  }

  // Whether there may be units to take.
  bool has_any(int64_t stage) const {
    for (int r = 0; r < ranges_.load(std::memory_order_relaxed); ++r) {
      const uint64_t now = words_[static_cast<size_t>(r)].value.load(std::memory_order_acquire);
      if (is_of(now, stage) && begin_of(now) < end_of(now)) return true;
    }
    return false;
  }

 private:
  // The stage's last 16 bits, then the start and the end of the remaining units, with 24 bits each.
  struct alignas(64) Word {
    std::atomic<uint64_t> value = 0;
  };
  static uint64_t packed(int64_t stage, int64_t begin, int64_t end) {
    return static_cast<uint64_t>(stage % kStages) << 48 | static_cast<uint64_t>(begin) << 24 | static_cast<uint64_t>(end);
  }
  static bool is_of(uint64_t word, int64_t stage) { return static_cast<int64_t>(word >> 48) == stage % kStages; }
  static int64_t begin_of(uint64_t word) { return static_cast<int64_t>(word >> 24) % kLongest; }
  static int64_t end_of(uint64_t word) { return static_cast<int64_t>(word) & (kLongest - 1); }

  std::atomic<uint64_t>& word(int range) { return words_[static_cast<size_t>(range)].value; }
  int64_t first(int range, int ranges) const { return bundles_ * range / ranges; }

  // -1 if nothing is left.
  int64_t take_from(int range, int64_t stage, bool in_front) {
    uint64_t now = word(range).load(std::memory_order_acquire);
    for (;;) {
      const int64_t begin = begin_of(now), end = end_of(now);
      if (!is_of(now, stage) || begin == end) return -1;
      const uint64_t then = in_front ? packed(stage, begin + 1, end) : packed(stage, begin, end - 1);
      if (word(range).compare_exchange_weak(now, then, std::memory_order_acq_rel, std::memory_order_acquire))
        return in_front ? begin : end - 1;
    }
  }

  std::atomic<int> ranges_ = 0;
  int64_t units_ = 0, bundle_ = 1, bundles_ = 0;
  std::array<Word, kMost> words_;
};

}  // namespace lamina::cpu
