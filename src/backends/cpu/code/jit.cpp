#include "backends/cpu/code/jit.h"

#include <mutex>
#include <optional>
#include <unordered_map>

#include "backends/cache/code_cache.h"
#include "backends/cache/sha256.h"
#include "backends/cpu/code/generator_version.h"
#include "backends/cpu/code/link_object.h"
#include "backends/cpu/code/object_code.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

class Jit {
 public:
  static Jit& instance() {
    static Jit& jit = *new Jit;  // never destroyed: code may still run while statics are torn down
    return jit;
  }

  CompiledKernel compile(const kernel::Kernel& kernel, const Schedule& schedule, Isa isa) {
    const std::string key = key_of(kernel, schedule, isa);
    const std::lock_guard lock(mutex_);
    if (const auto found = code_.find(key); found != code_.end()) {
      CompiledKernel known = found->second;
      known.from_cache = true;
      return known;
    }
    CompiledKernel compiled{nullptr, symbol_of(kernel, key), false};
    const Target& target = target_of(isa);
    const CodeCache* const disk = CodeCache::from_environment();
    const std::string disk_key = disk == nullptr ? "" : disk_key_of(target, key);
    if (disk != nullptr) compiled.function = stored_code(*disk, disk_key, compiled.symbol);
    compiled.from_cache = compiled.function != nullptr;
    if (!compiled.from_cache) {
      const auto object = maker().make(kernel, schedule, target, compiled.symbol);
      if (disk != nullptr) disk->keep(disk_key, object->getBuffer());
      compiled.function = new_code(*object, compiled.symbol);
    }
    code_.emplace(key, compiled);
    return compiled;
  }

 private:
  // All that the code depends on but the versions of what makes it and the machine, which are the same for the whole process.
  std::string key_of(const kernel::Kernel& kernel, const Schedule& schedule, Isa isa) const {
    return join(static_cast<int>(isa), "/", describe(schedule), "\n", kernel::print(kernel, false));
  }

  std::string disk_key_of(const Target& target, const std::string& key) const {
    return join(code_generator_version(), symbols_.any() ? ", unwindable\n" : "\n", target.cpu, " ", target.features, "\n",
                key);
  }

  // The same in every process that makes this code: it is a part of the object.
  static std::string symbol_of(const kernel::Kernel& kernel, const std::string& key) {
    return join("lamina_", kernel.name, "_", sha256_hex(key).substr(0, 12));
  }

  // Made when the first kernel is compiled: where all of them come from the disk it is not needed.
  ObjectCodeMaker& maker() {
    if (!maker_) maker_.emplace(symbols_.any());
    return *maker_;
  }

  KernelFunction new_code(const llvm::MemoryBuffer& object, const std::string& symbol) {
    auto address = linker_.link(object.getMemBufferRef(), symbol);
    if (address) return reinterpret_cast<KernelFunction>(*address);
    throw Error(Status::runtime_error, join("cpu backend: cannot compile a kernel: ", llvm::toString(address.takeError())));
  }

  // Null where the folder has no entry, or one that is no code for this symbol.
  KernelFunction stored_code(const CodeCache& disk, const std::string& key, const std::string& symbol) {
    const std::optional<std::string> object = disk.find(key);
    if (!object) return nullptr;
    auto address = linker_.link({*object, symbol}, symbol);
    if (address) return reinterpret_cast<KernelFunction>(*address);
    llvm::consumeError(address.takeError());
    return nullptr;
  }

  std::mutex mutex_;
  const SymbolRequest symbols_ = symbol_request();
  ObjectLinker linker_{symbols_};
  std::optional<ObjectCodeMaker> maker_;
  std::unordered_map<std::string, CompiledKernel> code_;
};

}  // namespace

CompiledKernel compile_kernel(const kernel::Kernel& kernel, const Schedule& schedule, Isa isa) {
  return Jit::instance().compile(kernel, schedule, isa);
}

}  // namespace lamina::cpu
