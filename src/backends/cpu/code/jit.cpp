#include "backends/cpu/code/jit.h"

#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "backends/cache/code_cache.h"
#include "backends/cache/sha256.h"
#include "backends/cpu/code/call_with_stack.h"
#include "backends/cpu/code/generator_version.h"
#include "backends/cpu/code/kernel_cache.h"
#include "backends/cpu/code/link_object.h"
#include "backends/cpu/code/object_code.h"
#include "backends/cpu/targets/isa/target_hooks.h"
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

  // Threads compile different kernels in parallel. A thread that requests a kernel that is being compiled waits for it.
  CompiledCode compile(const CodeSource& source, const Machine& machine) {
    const std::string code_key = key_of(source, machine), key = machine.keeps_objects ? "object\n" + code_key : code_key;
    // A fork waits for kernels that are being compiled; otherwise LLVM's state in the child could be inconsistent.
    Mutex same_kernel(LockRow::jit, std::hash<std::string>()(key));
    const std::lock_guard lock(same_kernel);
    if (std::optional<CompiledCode> known = find(key)) {
      known->from_cache = true;
      return *std::move(known);
    }
    CompiledCode compiled{.symbol = symbol_of(source, code_key)};
    const CodeCache* const disk = CodeCache::from_environment();
    const std::string disk_key = disk == nullptr ? "" : disk_key_of(code_key);
    LinkedCode code;
    // Threads that only execute may compile too, and may have a small stack.
    call_with_stack(kStackForLlvm, [&] {
      if (machine.keeps_objects) {
        std::optional<std::string> stored = disk != nullptr ? disk->find(disk_key) : std::nullopt;
        compiled.from_cache = stored.has_value();
        if (!stored) stored = make_object(source, machine, compiled.symbol)->getBuffer().str();
        if (disk != nullptr && !compiled.from_cache) disk->store(disk_key, *stored);
        compiled.object = std::make_shared<const std::string>(*std::move(stored));
        return;
      }
      if (machine.instructions.architecture != &host_architecture()) {
        compiled.from_cache = disk != nullptr && disk->find(disk_key).has_value();
        if (compiled.from_cache) return;
        const auto object = make_object(source, machine, compiled.symbol);
        if (disk != nullptr) disk->store(disk_key, object->getBuffer());
        return;
      }
      if (disk != nullptr) code = stored_code(*disk, disk_key, compiled.symbol);
      compiled.from_cache = code.address != nullptr;
      if (compiled.from_cache) return;
      const auto object = make_object(source, machine, compiled.symbol);
      if (disk != nullptr) disk->store(disk_key, object->getBuffer());
      code = new_code(*object, compiled.symbol);
    });
    compiled.address = code.address;
    compiled.memory = std::move(code.memory);
    insert(key, compiled);
    return compiled;
  }

 private:
  // Everything on which the code depends except the versions of its generator, which are the same for the whole process. The
  // machine's instructions are part of the key; its other properties affect only the schedule.
  static std::string key_of(const CodeSource& source, const Machine& machine) {
    return join(machine.cpu, " ", machine.features, " ", describe(machine.instructions), "\n", source.structure);
  }

  std::string disk_key_of(const std::string& key) const {
    return join(code_generator_version(), symbols_.any() ? ", unwindable\n" : "\n", key);
  }

  // The same in every process that generates this code, because the object contains it.
  static std::string symbol_of(const CodeSource& source, const std::string& key) {
    return join("lamina_", source.name, "_", sha256_hex(key).substr(0, 12));
  }

  std::optional<CompiledCode> find(const std::string& key) {
    const std::lock_guard lock(state_);
    return cache_.find(key);
  }
  void insert(const std::string& key, const CompiledCode& compiled) {
    const std::lock_guard lock(state_);
    cache_.insert(key, compiled);
  }

  // Uses an idle code generator, or a new one if all are in use. If all kernels come from the disk, none is created.
  std::unique_ptr<llvm::MemoryBuffer> make_object(const CodeSource& source, const Machine& machine, const std::string& symbol) {
    std::unique_ptr<ObjectCodeMaker> maker = idle_maker();
    if (maker == nullptr) maker = std::make_unique<ObjectCodeMaker>(symbols_.any());
    try {
      auto object = maker->make(source, machine, symbol);
      keep_idle(std::move(maker));
      return object;
    } catch (...) {
      keep_idle(std::move(maker));
      throw;
    }
  }

  std::unique_ptr<ObjectCodeMaker> idle_maker() {
    const std::lock_guard lock(state_);
    if (idle_.empty()) return nullptr;
    std::unique_ptr<ObjectCodeMaker> maker = std::move(idle_.back());
    idle_.pop_back();
    return maker;
  }
  // At most as many generators are idle as were in use at the same time. Frees the generator if there is no memory to list it.
  void keep_idle(std::unique_ptr<ObjectCodeMaker> maker) noexcept {
    const std::lock_guard lock(state_);
    try {
      idle_.push_back(std::move(maker));
    } catch (const std::bad_alloc&) {
    }
  }

  LinkedCode new_code(const llvm::MemoryBuffer& object, const std::string& symbol) const {
    auto code = linker_.link(object.getMemBufferRef(), symbol);
    if (code) return *std::move(code);
    throw Error(Status::runtime_error, join("cpu backend: cannot compile a kernel: ", llvm::toString(code.takeError())));
  }

  // Has no address if the folder has no entry, or an entry without code for this symbol.
  LinkedCode stored_code(const CodeCache& disk, const std::string& key, const std::string& symbol) const {
    const std::optional<std::string> object = disk.find(key);
    if (!object) return {};
    auto code = linker_.link({*object, symbol}, symbol);
    if (code) return *std::move(code);
    llvm::consumeError(code.takeError());
    return {};
  }

  const SymbolRequest symbols_ = symbol_request();
  const ObjectLinker linker_{symbols_};
  Mutex state_{LockRow::jit_state};  // protects the members below
  std::vector<std::unique_ptr<ObjectCodeMaker>> idle_;
  KernelCache cache_{kMaxCachedKernels};
};

}  // namespace

CompiledCode compile_code(const CodeSource& source, const Machine& machine) { return Jit::instance().compile(source, machine); }

CompiledKernel compile_kernel(const kernel::Kernel& kernel, const Schedule& schedule, const Machine& machine) {
  CompiledCode code = compile_code(source_of(kernel, schedule), machine);
  const auto function = code.as<KernelFunction>();
  return {std::move(code), function};
}

}  // namespace lamina::cpu
