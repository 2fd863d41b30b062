// A memory cache of executables: compiling the same partition again costs one look-up.
//
// The key is everything that compilation depends on: the structure of the partition (ops, attributes, connections, the
// graph's knowledge of its tensors) and the tensors passed to compile. Ids and names are not part of it, so equal layers of a
// model share one executable. A hit needs no check of the tensors: equal tensors have already passed it.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/backend.h"
#include "handles/locks.h"
#include "interface/partition.h"

namespace lamina::compiler {

struct SharedExecutable {
  std::vector<LogicalTensor> inputs, outputs;  // the final ports, with the ids of the partition that was compiled first
  std::shared_ptr<const Executable> executable;
};

// Writes the key to `key`, whose capacity is reused.
void write_compile_key(std::string& key, const Backend& backend, const Partition& partition,
                       std::span<const LogicalTensor> inputs, std::span<const LogicalTensor> outputs);

// A thread-safe LRU cache.
class CompileCache {
 public:
  static CompileCache& instance();
  std::optional<SharedExecutable> find(const std::string& key);
  void insert(const std::string& key, SharedExecutable executable);
  void clear();
  size_t size();
  // The maximum number of executables; 0 disables the cache.
  void set_capacity(size_t capacity);
  size_t capacity();

 private:
  void drop_oldest_beyond(size_t entries);
  struct Entry {
    SharedExecutable shared;
    uint64_t used = 0;
  };
  Mutex mutex_{LockRow::compile_cache};
  std::unordered_map<std::string, Entry> entries_;
  uint64_t uses_ = 0;
  size_t capacity_ = 1024;
};

}  // namespace lamina::compiler
