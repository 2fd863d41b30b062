#include "backends/cpu/code/object_code.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <system_error>
#include <vector>

#include "backends/cpu/llvm/passes.h"
#include "backends/cpu/targets/isa/target_hooks.h"
#include "handles/locks.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

// The optimisations that emission leaves to LLVM: accumulators into registers, common addresses once, invariants out of
// loops. Without its option, instcombine runs again to verify that nothing is left, and ends the process if something is.
constexpr const char* kPasses = "sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm),early-cse,dce";

std::unique_ptr<llvm::TargetMachine> make_generator(const Architecture& architecture) {
  // The registry of targets is a list without a lock.
  static Mutex& targets = *new Mutex(LockRow::llvm_targets);
  const std::lock_guard lock(targets);
  const std::string triple = triple_of(architecture);
  std::string fault = "this build of lamina or LLVM does not include it";
  const llvm::Target* const target =
      architecture.hooks->initialize() ? llvm::TargetRegistry::lookupTarget(triple, fault) : nullptr;
  if (target == nullptr)
    throw Error(Status::runtime_error, join("cpu backend: no code generator for ", architecture.name, ": ", fault));
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // FMA only where the IR requests it
  // The attributes of a function say what it is compiled for. Constants are close to the code (kernel_memory.h): with 64-bit
  // addresses, they would need registers that loops use.
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, "", "", options, llvm::Reloc::PIC_, llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default, /*JIT=*/true));
  if (machine == nullptr) throw Error(Status::runtime_error, "cpu backend: cannot create a code generator");
  return machine;
}

// InstCombine compares f16 elements before their conversion. Without an instruction for that, the code generator does it
// element by element, with three times the code. The exact conversion to float is cheap.
void compare_halves_as_floats(llvm::Function& function) {
  std::vector<llvm::FCmpInst*> comparisons;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    auto* const comparison = llvm::dyn_cast<llvm::FCmpInst>(&instruction);
    if (comparison != nullptr && comparison->getOperand(0)->getType()->getScalarType()->isHalfTy())
      comparisons.push_back(comparison);
  }
  for (llvm::FCmpInst* const comparison : comparisons) {
    llvm::IRBuilder<> b(comparison);
    llvm::Type* const halves = comparison->getOperand(0)->getType();
    llvm::Type* const floats = halves->getWithNewType(b.getFloatTy());
    for (unsigned i = 0; i < 2; ++i) comparison->setOperand(i, b.CreateFPExt(comparison->getOperand(i), floats));
  }
}

// The code generator's passes, with or without loop strength reduction, which searches for good induction variables and
// addresses and needs a third of the compile time.
class CodeGenerator final : public llvm::legacy::PassManagerBase {
 public:
  explicit CodeGenerator(bool reduces_strength) : reduces_strength_(reduces_strength) {}
  void add(llvm::Pass* pass) override {
    if (!reduces_strength_ && pass->getPassName() == "Loop Strength Reduction")
      delete pass;
    else
      passes_.add(pass);
  }
  void run(llvm::Module& module) { passes_.run(module); }

 private:
  bool reduces_strength_;
  llvm::legacy::PassManager passes_;
};

// LLVM is compiled without exceptions and ends the process if it gets no memory, unless a handler is installed for the whole
// process. Other users of this LLVM in the process are not affected: an exception that they do not expect ends the process
// too.
void throw_where_llvm_gets_no_memory() {
  static const bool is_told = [] {
    llvm::install_bad_alloc_error_handler([](void*, const char*, bool) { throw std::bad_alloc(); });
    return true;
  }();
  static_cast<void>(is_told);
}

// More memory than the code generation of a kernel needs. A limit on the process's memory is detected here, before LLVM has
// state to lose.
void require_memory_for_llvm() {
  constexpr size_t kEnough = size_t{32} << 20;
  std::error_code fault;
  llvm::sys::MemoryBlock tried = llvm::sys::Memory::allocateMappedMemory(
      kEnough, nullptr, llvm::sys::Memory::MF_READ | llvm::sys::Memory::MF_WRITE, fault);
  if (fault) throw std::bad_alloc();
  llvm::sys::Memory::releaseMappedMemory(tried);
}

// With one call, so that modules of several threads do not interleave.
void print_at_once(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, nullptr);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace

// LLVM's objects for one function.
struct ObjectCodeMaker::CodegenContext {
  CodegenContext(const std::string& name, llvm::LLVMContext& context, llvm::TargetMachine& machine)
      : symbol(name), module(name, context), passes(&machine) {
    module.setDataLayout(machine.createDataLayout());
    module.setTargetTriple(machine.getTargetTriple().str());
  }

  void optimize(const Instructions& instructions);
  void generate(llvm::TargetMachine& machine, bool reduces_strength);
  llvm::Function& function() { return *module.getFunction(symbol); }

  const std::string symbol;
  llvm::Module module;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder passes;
  llvm::FunctionPassManager pipeline;
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream out{object};
  std::unique_ptr<CodeGenerator> generator;
};

ObjectCodeMaker::ObjectCodeMaker(bool with_unwind_tables) : with_unwind_tables_(with_unwind_tables) {
  throw_where_llvm_gets_no_memory();
}

std::unique_ptr<llvm::MemoryBuffer> ObjectCodeMaker::make(const CodeSource& source, const Machine& machine,
                                                          const std::string& symbol) {
  require_memory_for_llvm();
  std::unique_ptr<llvm::TargetMachine>& generator = generators_[machine.instructions.architecture];
  if (generator == nullptr) generator = make_generator(*machine.instructions.architecture);
  auto context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<CodegenContext> codegen;
  try {
    codegen = std::make_unique<CodegenContext>(symbol, *context, *generator);
    emit(*codegen, source, machine);
    compile(*codegen, *generator, source, machine);
  } catch (const std::bad_alloc&) {
    static_cast<void>(codegen.release());
    static_cast<void>(context.release());
    static_cast<void>(generator.release());
    throw;
  }
  codegen->generator.reset();
  return std::make_unique<llvm::SmallVectorMemoryBuffer>(std::move(codegen->object), symbol, /*RequiresNullTerminator=*/false);
}

void ObjectCodeMaker::emit(CodegenContext& codegen, const CodeSource& source, const Machine& machine) const {
  source.emit({codegen.module, codegen.symbol, machine.instructions});
  llvm::Function& function = codegen.function();
  function.addFnAttr("target-cpu", machine.cpu);
  function.addFnAttr("target-features", machine.features);
  // a stack overflow faults here, and does not write to memory below the stack
  function.addFnAttr("probe-stack", "inline-asm");
  if (with_unwind_tables_) function.setUWTableKind(llvm::UWTableKind::Async);
}

void ObjectCodeMaker::compile(CodegenContext& codegen, llvm::TargetMachine& generator, const CodeSource& source,
                              const Machine& machine) const {
  std::string fault;
  llvm::raw_string_ostream stream(fault);
  LAMINA_CHECK(!llvm::verifyModule(codegen.module, &stream), fault + source.structure);
  codegen.optimize(machine.instructions);
  if (std::getenv("LAMINA_PRINT_LLVM") != nullptr) print_at_once(codegen.module);
  if (void (*const call)() = called_while_code_is_generated; call != nullptr) call();
  codegen.generate(generator, source.reduces_strength);
}

void ObjectCodeMaker::CodegenContext::optimize(const Instructions& instructions) {
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(sccs);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, sccs, modules);
  if (llvm::Error error = passes.parsePassPipeline(pipeline, kPasses)) {
    throw Error(Status::runtime_error, join("cpu backend: cannot build the pass pipeline: ", llvm::toString(std::move(error))));
  }
  pipeline.run(function(), functions);
  // The analyses are invalid now, because the code generator changes the code.
  modules.clear();
  sccs.clear();
  functions.clear();
  loops.clear();
  if (!instructions.computes_in_f16) compare_halves_as_floats(function());
}

void ObjectCodeMaker::CodegenContext::generate(llvm::TargetMachine& machine, bool reduces_strength) {
  generator = std::make_unique<CodeGenerator>(reduces_strength);
  llvm::MCContext* mc = nullptr;
  if (machine.addPassesToEmitMC(*generator, mc, out)) {
    throw Error(Status::runtime_error, "cpu backend: this machine's code generator cannot write object files");
  }
  generator->run(module);
}

}  // namespace lamina::cpu
