#include "backends/cpu/jit.h"

#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include "backends/cpu/code_cache.h"
#include "backends/cpu/emit_llvm.h"
#include "backends/cpu/jit_symbols.h"
#include "backends/cpu/llvm_headers.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

template <typename T>
T take(llvm::Expected<T> expected, const char* what) {
  if (!expected) throw Error(Status::runtime_error, join("cpu backend: ", what, ": ", llvm::toString(expected.takeError())));
  return std::move(*expected);
}

void take(llvm::Error error, const char* what) {
  if (error) throw Error(Status::runtime_error, join("cpu backend: ", what, ": ", llvm::toString(std::move(error))));
}

Isa host_isa() {
  static const Isa isa = [] {
    const auto features = llvm::sys::getHostCPUFeatures();
    const auto has = [&](const char* name) { return features.lookup(name); };
    if (has("avx512f") && has("avx512vl") && has("avx512dq") && has("avx512bw")) return Isa::avx512;
    return has("avx2") && has("fma") && has("f16c") ? Isa::avx2 : Isa::generic;
  }();
  return isa;
}

// What a function is compiled for. On AVX-512 the machine's own name is used, so that the code is scheduled for it.
struct Target {
  std::string cpu, features;
  TargetFeatures flags;
};

Target target_of(Isa isa) {
  switch (isa) {
    case Isa::generic: return {"x86-64", "", {}};
    case Isa::avx2: return {"x86-64-v3", "", {.sse41 = true, .f16c = true, .avx512 = false, .avx512_bf16 = false}};
    case Isa::avx512: break;
  }
  std::string features;
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
    features += (features.empty() ? "" : ",") + std::string(feature.second ? "+" : "-") + feature.first().str();
  }
  return {llvm::sys::getHostCPUName().str(), features,
          {.sse41 = true, .f16c = true, .avx512 = true, .avx512_bf16 = llvm::sys::getHostCPUFeatures().lookup("avx512bf16")}};
}

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
    const Target target = target_of(isa);
    const CodeCache* const disk = CodeCache::from_environment();
    const std::string disk_key = disk == nullptr ? "" : disk_key_of(target, key);
    if (disk != nullptr) compiled.function = stored_code(*disk, disk_key, compiled.symbol);
    compiled.from_cache = compiled.function != nullptr;
    if (!compiled.from_cache) {
      auto object = make_object(kernel, schedule, target, compiled.symbol);
      if (disk != nullptr) disk->keep(disk_key, std::string_view(object->getBufferStart(), object->getBufferSize()));
      compiled.function = take(link(std::move(object), compiled.symbol), "cannot compile a kernel");
    }
    code_.emplace(key, compiled);
    return compiled;
  }

 private:
  Jit() {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    auto builder = take(llvm::orc::JITTargetMachineBuilder::detectHost(), "cannot describe this machine");
    builder.setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
    builder.getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;  // FMA only where it is written
    machine_ = take(builder.createTargetMachine(), "cannot make a code generator");
    llvm::orc::LLJITBuilder jit;
    jit.setJITTargetMachineBuilder(std::move(builder));
    jit.setObjectLinkingLayerCreator([listeners = listeners_for(symbols_)](llvm::orc::ExecutionSession& session, const llvm::Triple&) {
      auto layer = std::make_unique<llvm::orc::RTDyldObjectLinkingLayer>(
          session, [] { return std::make_unique<llvm::SectionMemoryManager>(); });
      for (llvm::JITEventListener* listener : listeners) layer->registerJITEventListener(*listener);
      return layer;
    });
    jit_ = take(jit.create(), "cannot start the JIT");
    // memset, memcpy and, where the machine has no FMA, fmaf come from the process.
    jit_->getMainJITDylib().addGenerator(
        take(llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(jit_->getDataLayout().getGlobalPrefix()), "cannot see the process's symbols"));
  }

  // All that the code depends on but the versions of what makes it and the machine, which are the same for the whole process.
  std::string key_of(const kernel::Kernel& kernel, const Schedule& schedule, Isa isa) const {
    return join(static_cast<int>(isa), "/", describe(schedule), "\n", kernel::print(kernel, false));
  }

  std::string disk_key_of(const Target& target, const std::string& key) const {
    return join(code_generator_version(), symbols_.any() ? ", unwindable\n" : "\n", target.cpu, " ", target.features, "\n", key);
  }

  // The same in every process that makes this code: it is a part of the object.
  static std::string symbol_of(const kernel::Kernel& kernel, const std::string& key) {
    return join("lamina_", kernel.name, "_", sha256_hex(key).substr(0, 12));
  }

  std::unique_ptr<llvm::MemoryBuffer> make_object(const kernel::Kernel& kernel, const Schedule& schedule, const Target& target,
                                                  const std::string& symbol) {
    llvm::LLVMContext context;
    llvm::Module module(symbol, context);
    module.setDataLayout(jit_->getDataLayout());
    module.setTargetTriple(machine_->getTargetTriple().str());
    emit_kernel(module, symbol, kernel, schedule, target.flags);
    llvm::Function* const function = module.getFunction(symbol);
    function->addFnAttr("target-cpu", target.cpu);
    function->addFnAttr("target-features", target.features);
    if (symbols_.any()) function->setUWTableKind(llvm::UWTableKind::Async);  // so that a debugger sees who called
    std::string fault;
    llvm::raw_string_ostream stream(fault);
    LAMINA_CHECK(!llvm::verifyModule(module, &stream), fault + kernel::print(kernel));
    optimize(*function);
    if (std::getenv("LAMINA_PRINT_LLVM") != nullptr) module.print(llvm::errs(), nullptr);
    return take(llvm::orc::SimpleCompiler(*machine_)(module), "cannot compile a kernel");
  }

  llvm::Expected<KernelFunction> link(std::unique_ptr<llvm::MemoryBuffer> object, const std::string& symbol) {
    const auto tracker = jit_->getMainJITDylib().createResourceTracker();
    if (llvm::Error error = jit_->addObjectFile(tracker, std::move(object))) return error;
    auto address = jit_->lookup(symbol);
    if (address) return address->toPtr<KernelFunction>();
    llvm::consumeError(tracker->remove());  // the symbol can be defined anew
    return address.takeError();
  }

  // Null where the folder has no entry, or one that is no code for this symbol.
  KernelFunction stored_code(const CodeCache& disk, const std::string& key, const std::string& symbol) {
    const std::optional<std::string> object = disk.find(key);
    if (!object) return nullptr;
    auto function = link(llvm::MemoryBuffer::getMemBufferCopy(*object, symbol), symbol);
    if (function) return *function;
    llvm::consumeError(function.takeError());
    return nullptr;
  }

  // Just what emission leaves to do: accumulators into registers, common addresses once, invariants out of loops.
  void optimize(llvm::Function& function) {
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager sccs;
    llvm::ModuleAnalysisManager modules;
    llvm::PassBuilder passes(machine_.get());
    passes.registerModuleAnalyses(modules);
    passes.registerCGSCCAnalyses(sccs);
    passes.registerFunctionAnalyses(functions);
    passes.registerLoopAnalyses(loops);
    passes.crossRegisterProxies(loops, functions, sccs, modules);
    llvm::FunctionPassManager pipeline;
    take(passes.parsePassPipeline(pipeline, "sroa,early-cse,instcombine,simplifycfg,loop-mssa(licm),early-cse,dce"), "cannot build the pass pipeline");
    pipeline.run(function, functions);
  }

  std::mutex mutex_;
  const SymbolRequest symbols_ = symbol_request();
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  std::unordered_map<std::string, CompiledKernel> code_;
};

}  // namespace

Isa chosen_isa() {
  const char* const cap = std::getenv("LAMINA_MAX_ISA");
  if (cap == nullptr || *cap == '\0') return host_isa();
  const std::string name = cap;
  const bool known = name == "generic" || name == "avx2" || name == "avx512";
  if (!known) throw Error(Status::invalid_arguments, join("LAMINA_MAX_ISA is \"", name, "\", allowed is generic, avx2 or avx512"));
  const Isa wanted = name == "generic" ? Isa::generic : name == "avx2" ? Isa::avx2 : Isa::avx512;
  return std::min(wanted, host_isa());
}

int vector_bits(Isa isa) { return isa == Isa::avx512 ? 512 : isa == Isa::avx2 ? 256 : 128; }

CompiledKernel compile_kernel(const kernel::Kernel& kernel, const Schedule& schedule, Isa isa) {
  return Jit::instance().compile(kernel, schedule, isa);
}

}  // namespace lamina::cpu
