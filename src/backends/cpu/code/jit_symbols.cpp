#include "backends/cpu/code/jit_symbols.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "interface/status.h"

namespace lamina::cpu {

namespace {

// Appends `ADDRESS SIZE NAME` for each function. perf reads the file when it writes its report.
class PerfMap final : public llvm::JITEventListener {
 public:
  PerfMap() {
    // Other JITs of the process write to the same file. The folder is writable by all users, so a file of another user is not
    // used.
    file_ = open(join("/tmp/perf-", getpid(), ".map").c_str(),
                 O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
    struct stat status;
    if (file_ < 0 || (fstat(file_, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid())) return;
    close(file_);
    file_ = -1;
  }

  void notifyObjectLoaded(ObjectKey, const llvm::object::ObjectFile& object,
                          const llvm::RuntimeDyld::LoadedObjectInfo& loaded) override {
    const auto placed = loaded.getObjectForDebug(object);  // with the final addresses
    if (file_ < 0 || placed.getBinary() == nullptr) return;
    std::string lines;
    llvm::raw_string_ostream out(lines);
    for (const auto& [symbol, size] : llvm::object::computeSymbolSizes(*placed.getBinary())) {
      auto type = symbol.getType();
      auto name = symbol.getName();
      auto address = symbol.getAddress();
      const bool readable = !!type && !!name && !!address;
      if (readable && *type == llvm::object::SymbolRef::ST_Function)
        out << llvm::format("%llx %llx ", *address, size) << *name << "\n";
      llvm::consumeError(type.takeError());
      llvm::consumeError(name.takeError());
      llvm::consumeError(address.takeError());
    }
    if (write(file_, lines.data(), lines.size()) < 0) return;  // the profile then lacks these names
  }

 private:
  int file_ = -1;
};

}  // namespace

SymbolRequest symbol_request() {
  SymbolRequest request;
  const char* const text = std::getenv("LAMINA_JIT_SYMBOLS");
  for (std::string_view rest = text == nullptr ? "" : text; !rest.empty();) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(item.size() + 1, rest.size()));
    if (item == "perf")
      request.perf = true;
    else if (item == "jitdump")
      request.jitdump = true;
    else if (item == "gdb")
      request.gdb = true;
    else
      throw Error(Status::invalid_arguments,
                  join("LAMINA_JIT_SYMBOLS has \"", item, "\", allowed is a list of perf, jitdump and gdb"));
  }
  return request;
}

std::vector<llvm::JITEventListener*> listeners_for(const SymbolRequest& request) {
  std::vector<llvm::JITEventListener*> listeners;
  if (request.perf) listeners.push_back(new PerfMap);  // the code that it lists is never freed
  if (request.gdb) listeners.push_back(llvm::JITEventListener::createGDBRegistrationListener());
  if (request.jitdump) {
    llvm::JITEventListener* const jitdump = llvm::JITEventListener::createPerfJITEventListener();
    if (jitdump == nullptr)
      throw Error(Status::invalid_arguments,
                  "LAMINA_JIT_SYMBOLS has jitdump, but this LLVM was built without it; allowed is perf or gdb");
    listeners.push_back(jitdump);
  }
  return listeners;
}

}  // namespace lamina::cpu
