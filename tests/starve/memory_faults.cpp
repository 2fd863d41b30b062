#include "starve/memory_faults.h"

#include <execinfo.h>
#include <link.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#if LAMINA_FAILS_ALLOCATIONS

// The original functions of glibc, which the replacements call.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
}

namespace starve {
namespace {

// The address range of a library's code. Both libraries are loaded before main and stay loaded.
struct CodeRange {
  uintptr_t begin = 0, end = 0;
  bool holds(const void* address) const {
    const auto at = reinterpret_cast<uintptr_t>(address);
    return at >= begin && at < end;
  }
};
CodeRange llvm, openmp, onednn, lamina_code;

int note_library(dl_phdr_info* info, size_t, void*) {
  const std::string_view name = info->dlpi_name;
  CodeRange* range = nullptr;
  if (name.find("libLLVM") != name.npos) range = &llvm;
  if (name.find("libgomp") != name.npos) range = &openmp;
  if (name.find("libdnnl") != name.npos) range = &onednn;
  if (name.find("liblamina") != name.npos) range = &lamina_code;
  for (int i = 0; range != nullptr && i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    range->begin = info->dlpi_addr + part.p_vaddr;
    range->end = range->begin + part.p_memsz;
  }
  return 0;
}

// These belong to the executable's static TLS, so accesses allocate nothing.
thread_local int64_t left = 0, seen = 0, most_bytes = 0;
thread_local Owner failing = Owner::all_but_llvm;
thread_local bool counts = false, has_failed = false, was_llvm_asked = false;
std::atomic<int64_t> live = 0;
std::array<char, 256> label_text;

// OpenMP and oneDNN also allocate through the system's functions, for example when they start a thread.
bool is_of_others(const void* const* frames, int count) {
  for (int i = 0; i < count; ++i) {
    if (openmp.holds(frames[i]) || onednn.holds(frames[i])) return true;
    if (lamina_code.holds(frames[i])) return false;
  }
  return false;
}

bool is_counted(const void* caller) {
  switch (failing) {
    case Owner::lamina: return lamina_code.holds(caller);
    case Owner::llvm: return llvm.holds(caller);
    case Owner::all_but_llvm: return !openmp.holds(caller) && !onednn.holds(caller) && !llvm.holds(caller);
  }
  return false;
}

bool fails(size_t bytes, const void* caller) {
  if (most_bytes > 0 && static_cast<int64_t>(bytes) > most_bytes) return true;
  was_llvm_asked = was_llvm_asked || (counts && llvm.holds(caller));
  if (!counts || !is_counted(caller)) return false;
  ++seen;
  if (--left != 0) return false;
  counts = false;  // the check itself allocates
  std::array<void*, 128> frames;
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  counts = true;
  if (is_of_others(frames.data(), count)) {
    left = 1;  // the next allocation
    return false;
  }
  has_failed = true;
  return true;
}

void* noted(void* memory, const void* caller) {
  if (memory != nullptr && !openmp.holds(caller)) live.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

void* taken(size_t bytes, size_t alignment, const void* caller) {
  if (fails(bytes, caller)) {
    errno = ENOMEM;
    return nullptr;
  }
  return noted(alignment == 0 ? __libc_malloc(bytes) : __libc_memalign(alignment, bytes), caller);
}

void* thrown_unless_taken(size_t bytes, size_t alignment, const void* caller) {
  void* const memory = taken(bytes == 0 ? 1 : bytes, alignment, caller);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void given_back(void* memory, const void* caller) {
  if (memory != nullptr && !openmp.holds(caller)) live.fetch_sub(1, std::memory_order_relaxed);
  __libc_free(memory);
}

// The process is about to end: reports which code requested the memory.
void tell_and_end(int signal) {
  counts = false;
  std::array<void*, 64> frames;
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  dprintf(STDERR_FILENO, "starve: signal %d in %s, failing allocation %ld\n", signal, label_text.data(),
          static_cast<long>(seen));
  backtrace_symbols_fd(frames.data(), count, STDERR_FILENO);
  _exit(1);
}

const bool is_ready = [] {
  dl_iterate_phdr(note_library, nullptr);
  std::array<void*, 1> frame;
  backtrace(frame.data(), 1);  // the first call loads what backtrace needs
  for (const int signal : {SIGABRT, SIGSEGV}) ::signal(signal, tell_and_end);
  return true;
}();

}  // namespace

void fail_allocation(int64_t number, Owner owner) {
  left = number;
  seen = 0;
  failing = owner;
  has_failed = was_llvm_asked = false;
  counts = is_ready;
}
bool stop_failing() {
  counts = false;
  return has_failed;
}
bool llvm_was_at_work() { return was_llvm_asked; }
int64_t allocations_seen() { return seen; }
void fail_above(int64_t bytes) { most_bytes = bytes; }
int64_t live_pieces() { return live; }
void set_label(const char* label) { std::snprintf(label_text.data(), label_text.size(), "%s", label); }

}  // namespace starve

#define CALLER __builtin_return_address(0)

extern "C" {
void* malloc(size_t size) { return starve::taken(size, 0, CALLER); }
void free(void* memory) { starve::given_back(memory, CALLER); }
void* calloc(size_t number, size_t size) {
  if (starve::fails(number * size, CALLER)) return nullptr;
  return starve::noted(__libc_calloc(number, size), CALLER);
}
void* realloc(void* memory, size_t size) {
  if (memory == nullptr) return starve::taken(size, 0, CALLER);
  if (size > 0 && starve::fails(size, CALLER)) return nullptr;
  return __libc_realloc(memory, size);
}
void* memalign(size_t alignment, size_t size) { return starve::taken(size, alignment, CALLER); }
void* aligned_alloc(size_t alignment, size_t size) { return starve::taken(size, alignment, CALLER); }
int posix_memalign(void** memory, size_t alignment, size_t size) {
  void* const got = starve::taken(size, alignment, CALLER);
  if (got == nullptr) return ENOMEM;
  *memory = got;
  return 0;
}
}

void* operator new(size_t size) { return starve::thrown_unless_taken(size, 0, CALLER); }
void* operator new[](size_t size) { return starve::thrown_unless_taken(size, 0, CALLER); }
void* operator new(size_t size, std::align_val_t alignment) {
  return starve::thrown_unless_taken(size, static_cast<size_t>(alignment), CALLER);
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return starve::thrown_unless_taken(size, static_cast<size_t>(alignment), CALLER);
}
void* operator new(size_t size, const std::nothrow_t&) noexcept { return starve::taken(size, 0, CALLER); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return starve::taken(size, 0, CALLER); }
void operator delete(void* memory) noexcept { starve::given_back(memory, CALLER); }
void operator delete[](void* memory) noexcept { starve::given_back(memory, CALLER); }
void operator delete(void* memory, size_t) noexcept { starve::given_back(memory, CALLER); }
void operator delete[](void* memory, size_t) noexcept { starve::given_back(memory, CALLER); }
void operator delete(void* memory, std::align_val_t) noexcept { starve::given_back(memory, CALLER); }
void operator delete[](void* memory, std::align_val_t) noexcept { starve::given_back(memory, CALLER); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { starve::given_back(memory, CALLER); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { starve::given_back(memory, CALLER); }

#else

namespace starve {
void fail_allocation(int64_t, Owner) {}
bool stop_failing() { return false; }
bool llvm_was_at_work() { return false; }
int64_t allocations_seen() { return 0; }
void fail_above(int64_t) {}
int64_t live_pieces() { return 0; }
void set_label(const char*) {}
}  // namespace starve

#endif
