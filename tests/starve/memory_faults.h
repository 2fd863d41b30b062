// Allocations that fail on request. This program replaces malloc, its relatives and operator new, also for the libraries that
// it loads, and uses the caller's address to find whose allocation it is.
#pragma once

#include <cstdint>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LAMINA_FAILS_ALLOCATIONS 0  // a sanitizer replaces malloc itself
#else
#define LAMINA_FAILS_ALLOCATIONS 1
#endif

namespace starve {

// The code whose allocations are counted and fail. Allocations of OpenMP and oneDNN never fail: both end the process without
// memory. lamina: allocations by its own code, without those of libraries that it calls, such as an OpenCL driver and the
// standard library's functions, which all of them call.
enum class Owner { all_but_llvm, llvm, lamina };

// From now on, the `number`-th allocation (counted from 1) of this thread fails, once.
void fail_allocation(int64_t number, Owner owner);
// From now on, no allocation fails. Returns whether one failed.
bool stop_failing();
// Whether LLVM requested memory since fail_allocation.
bool llvm_was_at_work();
// The number of allocations between the last two calls.
int64_t allocations_seen();
// From now on, all allocations of this thread above this number of bytes fail; 0: none.
void fail_above(int64_t bytes);

// The number of blocks that the process has not released, without OpenMP's.
int64_t live_pieces();

// The text printed to stderr if the process ends while an allocation fails.
void set_label(const char* label);

}  // namespace starve
