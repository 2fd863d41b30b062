#include "backends/cpu/code/jit.h"

#include <mutex>
#include <optional>

#include "backends/cache/code_cache.h"
#include "backends/cache/sha256.h"
#include "backends/cpu/code/call_with_stack.h"
#include "backends/cpu/code/generator_version.h"
#include "backends/cpu/code/kernel_cache.h"
#include "backends/cpu/code/link_object.h"
#include "backends/cpu/code/object_code.h"
#include "backends/cpu/targets/target_hooks.h"
#include "handles/locks.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

// The number of recently used kernels in the cache: twice the number of executables that the compiler caches, which own their
// code too. Code needs 4 to 20 KB per kernel, and whole pages for its constants and data: about 50 MB at most.
constexpr size_t kMaxCachedKernels = 2048;

class Jit {
 public:
  static Jit& instance() {
    static Jit& jit = *new Jit;  // never destroyed: code may still run during static destruction
    return jit;
  }

  CompiledKernel compile(const kernel::Kernel& kernel, const Schedule& schedule, const Machine& machine) {
    const std::string key = key_of(kernel, schedule, machine);
    const std::lock_guard lock(mutex_);
    if (std::optional<CompiledKernel> known = cache_.find(key)) {
      known->from_cache = true;
      return *std::move(known);
    }
    CompiledKernel compiled{nullptr, symbol_of(kernel, key), false, nullptr};
    const CodeCache* const disk = CodeCache::from_environment();
    const std::string disk_key = disk == nullptr ? "" : disk_key_of(key);
    LinkedCode code;
    // Threads that only execute may compile too, and may have a small stack.
    call_with_stack(kStackForLlvm, [&] {
      if (machine.instructions.architecture != &host_architecture()) {
        compiled.from_cache = disk != nullptr && disk->find(disk_key).has_value();
        if (compiled.from_cache) return;
        const auto object = maker().make(kernel, schedule, machine, compiled.symbol);
        if (disk != nullptr) disk->store(disk_key, object->getBuffer());
        return;
      }
      if (disk != nullptr) code = stored_code(*disk, disk_key, compiled.symbol);
      compiled.from_cache = code.address != nullptr;
      if (compiled.from_cache) return;
      const auto object = maker().make(kernel, schedule, machine, compiled.symbol);
      if (disk != nullptr) disk->store(disk_key, object->getBuffer());
      code = new_code(*object, compiled.symbol);
    });
    compiled.function = reinterpret_cast<KernelFunction>(code.address);
    compiled.memory = std::move(code.memory);
    cache_.insert(key, compiled);
    return compiled;
  }

 private:
  // Everything on which the code depends except the versions of its generator, which are the same for the whole process. The
  // machine's instructions are part of the key; its other properties affect only the schedule.
  std::string key_of(const kernel::Kernel& kernel, const Schedule& schedule, const Machine& machine) const {
    return join(machine.cpu, " ", machine.features, " ", describe(machine.instructions), "\n", describe(schedule), "\n",
                kernel::print(kernel, false));
  }

  std::string disk_key_of(const std::string& key) const {
    return join(code_generator_version(), symbols_.any() ? ", unwindable\n" : "\n", key);
  }

  // The same in every process that generates this code, because the object contains it.
  static std::string symbol_of(const kernel::Kernel& kernel, const std::string& key) {
    return join("lamina_", kernel.name, "_", sha256_hex(key).substr(0, 12));
  }

  // Created when the first kernel is compiled. It is not needed if all kernels come from the disk.
  ObjectCodeMaker& maker() {
    if (!maker_) maker_.emplace(symbols_.any());
    return *maker_;
  }

  LinkedCode new_code(const llvm::MemoryBuffer& object, const std::string& symbol) {
    auto code = linker_.link(object.getMemBufferRef(), symbol);
    if (code) return *std::move(code);
    throw Error(Status::runtime_error, join("cpu backend: cannot compile a kernel: ", llvm::toString(code.takeError())));
  }

  // Has no address if the folder has no entry, or an entry without code for this symbol.
  LinkedCode stored_code(const CodeCache& disk, const std::string& key, const std::string& symbol) {
    const std::optional<std::string> object = disk.find(key);
    if (!object) return {};
    auto code = linker_.link({*object, symbol}, symbol);
    if (code) return *std::move(code);
    llvm::consumeError(code.takeError());
    return {};
  }

  // A process that forks while a kernel is compiled waits for the end: otherwise the child would have LLVM in an inconsistent
  // state.
  Mutex mutex_{LockRow::jit};
  const SymbolRequest symbols_ = symbol_request();
  ObjectLinker linker_{symbols_};
  std::optional<ObjectCodeMaker> maker_;
  KernelCache cache_{kMaxCachedKernels};
};

}  // namespace

CompiledKernel compile_kernel(const kernel::Kernel& kernel, const Schedule& schedule, const Machine& machine) {
  return Jit::instance().compile(kernel, schedule, machine);
}

}  // namespace lamina::cpu
