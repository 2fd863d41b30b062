#include "backends/cpu/code/link_object.h"

#include <dlfcn.h>

#include <cstdint>
#include <memory>

#include "backends/cpu/code/kernel_memory.h"
#include "backends/cpu/targets/isa/target_hooks.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

// The process provides memset, memcpy and, on machines without FMA, fmaf.
class ProcessSymbols final : public llvm::LegacyJITSymbolResolver {
 public:
  llvm::JITSymbol findSymbol(const std::string& name) override {
    return {reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, name.c_str())), llvm::JITSymbolFlags::Exported};
  }
  llvm::JITSymbol findSymbolInLogicalDylib(const std::string&) override { return nullptr; }
};

llvm::Error fault_of(const std::string& text) { return llvm::createStringError(llvm::inconvertibleErrorCode(), text); }

}  // namespace

llvm::Expected<LinkedCode> ObjectLinker::link(llvm::MemoryBufferRef buffer, const std::string& symbol) const {
  auto object = llvm::object::ObjectFile::createObjectFile(buffer);
  if (!object) return object.takeError();
  if (!(*object)->isELF()) return fault_of("it is not an ELF object");
  const llvm::Triple::ArchType own = llvm::Triple(triple_of(host_architecture())).getArch(), given = (*object)->getArch();
  if (given != own)
    return fault_of(join("it is for ", llvm::Triple::getArchTypeName(given).str(), ", this machine is ",
                         llvm::Triple::getArchTypeName(own).str()));
  auto memory = std::make_unique<KernelMemory>();
  ProcessSymbols process;
  llvm::RuntimeDyld loader(*memory, process);
  const auto loaded = loader.loadObject(**object);
  if (!loader.hasError()) loader.resolveRelocations();
  if (loader.hasError()) return fault_of(loader.getErrorString().str());
  void* const address = reinterpret_cast<void*>(loader.getSymbol(symbol).getAddress());
  if (address == nullptr) return fault_of("it does not define " + symbol);
  loader.registerEHFrames();
  std::string fault;
  if (memory->finalizeMemory(&fault)) return fault_of(fault);
  if (listeners_.empty()) return LinkedCode{address, std::move(memory)};
  KernelMemory* const told = memory.release();  // never freed
  for (llvm::JITEventListener* const listener : listeners_)
    listener->notifyObjectLoaded(reinterpret_cast<uint64_t>(told), **object, *loaded);
  return LinkedCode{address, std::shared_ptr<const void>(told, [](const void*) {})};
}

}  // namespace lamina::cpu
