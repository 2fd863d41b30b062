// Executables in memory, by all that compiling looks at: compiling what was compiled before costs a look-up.
//
// The key is the structure of the partition (ops, attributes, how they are joined, what the graph knows of its tensors) and the
// tensors that compile was given. Ids and names are not part of it, so equal layers of a model share one executable. A look-up
// that succeeds needs no check of the tensors: the same ones have passed.
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
  std::vector<LogicalTensor> inputs, outputs;  // the ports, final; ids are those of the partition that was compiled first
  std::shared_ptr<const Executable> executable;
};

// Written into `key`, whose memory is used again.
void write_compile_key(std::string& key, const Backend& backend, const Partition& partition,
                       std::span<const LogicalTensor> inputs, std::span<const LogicalTensor> outputs);

// Thread-safe. Holds the executables that were used last.
class CompileCache {
 public:
  static CompileCache& instance();
  std::optional<SharedExecutable> find(const std::string& key);
  void keep(const std::string& key, SharedExecutable executable);
  void clear();
  size_t size();
  // How many are kept at most; 0: none.
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
