#include "compiler/constant_cache.h"

#include <atomic>

namespace lamina::compiler {

namespace {

std::atomic<bool> is_on{true};
std::atomic<size_t> capacity{kNoLimit}, used{0};

bool take(size_t bytes) {
  size_t before = used.load();
  do {
    const size_t limit = capacity.load();
    if (before > limit || bytes > limit - before) return false;
  } while (!used.compare_exchange_weak(before, before + bytes));
  return true;
}

}  // namespace

void set_constant_cache(bool enabled) { is_on = enabled; }
bool has_constant_cache() { return is_on; }
void set_constant_cache_capacity(size_t bytes) { capacity = bytes; }
size_t constant_cache_capacity() { return capacity; }

ConstantsOfPartition::ConstantsOfPartition(const Executable& executable) {
  const size_t bytes = executable.constant_bytes();
  if (bytes == 0 || !has_constant_cache()) return;
  cached_ = executable.cache_constants();
  if (take(bytes))
    bytes_ = bytes;
  else
    cached_.reset();
}

ConstantsOfPartition::~ConstantsOfPartition() { used -= bytes_; }

}  // namespace lamina::compiler
