// Allocations that fail when a test asks for it: this program replaces malloc, related functions and operator new, also for
// the libraries that it loads, and tells by the address of the caller whose allocation one is.
#pragma once

#include <cstdint>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LAMINA_FAILS_ALLOCATIONS 0  // a sanitizer replaces malloc itself
#else
#define LAMINA_FAILS_ALLOCATIONS 1
#endif

namespace starve {

// Whose allocations are counted and fail. OpenMP's and oneDNN's own never do: both end the process where they get no memory.
// lamina: those that its code asks for itself, and no library that it calls, an OpenCL driver among them, nor the standard
// library's functions, which all of these call.
enum class Owner { all_but_llvm, llvm, lamina };

// From here on the `number`-th allocation (1 is the first) of this thread fails, once.
void fail_allocation(int64_t number, Owner owner);
// From here on none fails. Whether one did.
bool stop_failing();
// Whether LLVM asked for memory since allocations began to fail.
bool llvm_was_at_work();
// How many there were between the last two calls.
int64_t allocations_seen();
// From here on all of this thread larger than this number of bytes fail; 0: none.
void fail_above(int64_t bytes);

// Pieces of memory that the process has and did not give back, OpenMP's aside.
int64_t live_pieces();

// What is told on stderr should the process end while an allocation fails.
void set_label(const char* label);

}  // namespace starve
