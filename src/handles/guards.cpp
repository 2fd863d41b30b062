// The guards of function-local variables that are initialised on first use: the three functions that the compiler calls for
// such an initialisation. They replace those of the C++ library.
//
// A guard of the C++ library stays locked in a child if its parent forked while another thread was in the initialisation: the
// child waits for that thread forever. A guard of this file holds the number of the process that began the initialisation.
// If a fork came in between, the child initialises the variable again, in the memory of the incomplete one, whose parts are
// leaked. A thread must not fork while it initialises a variable.
//
// The functions have hidden visibility: only the library that contains them uses them.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "locks.h"

namespace lamina {
namespace {

// A guard has 64 bits, initially 0. Generated code reads the first byte: 1 if the variable is initialised.
static_assert(std::atomic_ref<uint64_t>::is_always_lock_free);
constexpr uint64_t kIsInitialised = 1, kIsBeingInitialised = 0x100;

bool is_initialised(uint64_t state) { return (state & kIsInitialised) != 0; }
uint64_t being_initialised() { return uint64_t{LockTable::generation()} << 32 | kIsBeingInitialised; }

}  // namespace
}  // namespace lamina

extern "C" {

// Returns 1 if the caller must initialise the variable.
[[gnu::visibility("hidden")]] int __cxa_guard_acquire(uint64_t* guard) {
  const std::atomic_ref<uint64_t> state(*guard);
  while (true) {
    uint64_t seen = state.load(std::memory_order_acquire);
    if (lamina::is_initialised(seen)) return 0;
    const uint64_t mine = lamina::being_initialised();
    if (seen != mine) {
      if (state.compare_exchange_weak(seen, mine, std::memory_order_acquire)) return 1;
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
}

[[gnu::visibility("hidden")]] void __cxa_guard_release(uint64_t* guard) {
  std::atomic_ref<uint64_t>(*guard).store(lamina::kIsInitialised, std::memory_order_release);
}

// Called if the initialisation throws.
[[gnu::visibility("hidden")]] void __cxa_guard_abort(uint64_t* guard) {
  std::atomic_ref<uint64_t>(*guard).store(0, std::memory_order_release);
}
}
