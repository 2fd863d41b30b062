// Fingerprints of tensors, by which the contents of two calls are compared.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <thread>
#include <vector>

#include "bindings.h"
#include "views.h"

namespace lamina::python {
namespace {

constexpr size_t kLanes = 8, kWord = sizeof(uint64_t);
constexpr size_t kPieceBytes = size_t{1} << 18;  // a thread takes one piece after the other

// One-to-one in each argument, so that a change of one word always changes the result.
uint64_t mixed(uint64_t hash, uint64_t word) { return std::rotl((hash ^ word) * 0x9E3779B97F4A7C15u, 29); }

// Independent lanes keep the multiplier busy.
uint64_t fingerprint(const char* memory, size_t bytes) {
  std::array<uint64_t, kLanes> lanes{1, 2, 3, 4, 5, 6, 7, 8};
  size_t at = 0;
  for (; at + kLanes * kWord <= bytes; at += kLanes * kWord) {
    std::array<uint64_t, kLanes> words;
    std::memcpy(words.data(), memory + at, sizeof words);
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = mixed(lanes[lane], words[lane]);
  }
  uint64_t hash = bytes;
  for (const uint64_t lane : lanes) hash = mixed(hash, lane);
  for (; at < bytes; at += kWord) {
    uint64_t word = 0;
    std::memcpy(&word, memory + at, std::min(kWord, bytes - at));
    hash = mixed(hash, word);
  }
  return hash;
}

// From the first element to past the last one.
size_t span_of(const View& view) {
  int64_t last = 0;
  for (int i = 0; i < view.rank; ++i) {
    const auto at = static_cast<size_t>(i);
    if (view.dims[at] == 0) return 0;
    last += (view.dims[at] - 1) * view.strides[at];
  }
  return (static_cast<size_t>(last) + 1) * static_cast<size_t>(view.bits) / 8;
}

struct Piece {
  const char* memory;
  size_t bytes, tensor;
};

// Own threads: OpenMP's do not survive a fork, and this runs in forked processes, too.
std::vector<uint64_t> fingerprints_of(const std::vector<Piece>& pieces, size_t tensors, int threads) {
  std::vector<uint64_t> parts(pieces.size()), whole(tensors, 0);
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < pieces.size(); i = next++) parts[i] = fingerprint(pieces[i].memory, pieces[i].bytes);
  };
  {
    std::vector<std::jthread> helpers;
    try {
      for (size_t i = 1; i < std::min(static_cast<size_t>(threads), pieces.size()); ++i) helpers.emplace_back(work);
    } catch (const std::system_error&) {
      // the system has no more threads: those that it gave do the work
    }
    work();
  }
  for (size_t i = 0; i < pieces.size(); ++i) whole[pieces[i].tensor] = mixed(whole[pieces[i].tensor], parts[i]);
  return whole;
}

std::vector<uint64_t> fingerprints(nb::handle tensors, int threads) {
  std::vector<Piece> pieces;
  size_t count = 0;
  for (const nb::handle object : tensors) {
    const View view = view_of(object, false, "a tensor");
    const size_t bytes = span_of(view);
    for (size_t at = 0; at < bytes; at += kPieceBytes)
      pieces.push_back({static_cast<const char*>(view.memory) + at, std::min(kPieceBytes, bytes - at), count});
    ++count;
  }
  const nb::gil_scoped_release others_may_run;
  return fingerprints_of(pieces, count, threads);
}

}  // namespace

void bind_fingerprints(nb::module_& m) {
  m.def("fingerprints", &fingerprints, nb::arg("tensors"), nb::arg("threads") = 1,
        "Returns a number for the bytes of each object of a sequence, from its first element to past its last one.\n\n"
        "Equal bytes have equal numbers. A change of one aligned word of 8 bytes always changes the number; other\n"
        "changes leave it as it is with a probability of about 2^-64. threads: the most that read at once. The GIL\n"
        "is released meanwhile. Raises lamina.Error for an object that shares no memory of the CPU.");
}

}  // namespace lamina::python
