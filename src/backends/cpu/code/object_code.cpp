#include "backends/cpu/code/object_code.h"

#include <cstdlib>
#include <vector>

#include "backends/cpu/code/llvm_passes.h"
#include "backends/cpu/emit/emit_kernel.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

// Just what emission leaves to do: accumulators into registers, common addresses once, invariants out of loops. Without its
// option instcombine runs once more to see that nothing is left, and ends the process where something is.
constexpr const char* kPasses = "sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm),early-cse,dce";

std::unique_ptr<llvm::TargetMachine> machine_for_this_process() {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  const std::string triple = llvm::sys::getProcessTriple();
  std::string fault;
  const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(triple, fault);
  if (target == nullptr) throw Error(Status::runtime_error, join("cpu backend: no code generator for this machine: ", fault));
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // FMA only where it is written
  // What a function is compiled for stands in its attributes. Constants lie near the code (kernel_memory.h): with an address of
  // 64 bits each they would take the registers that hold them across a loop.
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, "", "", options, llvm::Reloc::PIC_, llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default, /*JIT=*/true));
  if (machine == nullptr) throw Error(Status::runtime_error, "cpu backend: cannot make a code generator");
  return machine;
}

// InstCombine compares f16 elements as they were before their conversion. Where no instruction does that, the code generator
// goes element by element, for three times the code; the conversion, which loses nothing, is cheap.
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

// The code generator's passes, with or without loop strength reduction: it looks for good induction variables and addresses,
// for a third of the compile time.
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

}  // namespace

ObjectCodeMaker::ObjectCodeMaker(bool with_unwind_tables)
    : with_unwind_tables_(with_unwind_tables), machine_(machine_for_this_process()) {}

std::unique_ptr<llvm::MemoryBuffer> ObjectCodeMaker::make(const kernel::Kernel& kernel, const Schedule& schedule,
                                                          const Machine& machine, const std::string& symbol) {
  llvm::LLVMContext context;
  llvm::Module module(symbol, context);
  module.setDataLayout(machine_->createDataLayout());
  module.setTargetTriple(machine_->getTargetTriple().str());
  emit_kernel(module, symbol, kernel, schedule, machine.flags);
  llvm::Function* const function = module.getFunction(symbol);
  function->addFnAttr("target-cpu", machine.cpu);
  function->addFnAttr("target-features", machine.features);
  if (with_unwind_tables_) function->setUWTableKind(llvm::UWTableKind::Async);
  std::string fault;
  llvm::raw_string_ostream stream(fault);
  LAMINA_CHECK(!llvm::verifyModule(module, &stream), fault + kernel::print(kernel));
  optimize(*function, machine.flags);
  if (std::getenv("LAMINA_PRINT_LLVM") != nullptr) module.print(llvm::errs(), nullptr);
  // Along a row an address is a base and an index already; across rows it is a product, which the pass makes a sum.
  return object_of(module, schedule.transposed);
}

void ObjectCodeMaker::optimize(llvm::Function& function, const TargetFeatures& target) {
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
  if (llvm::Error error = passes.parsePassPipeline(pipeline, kPasses)) {
    throw Error(Status::runtime_error, join("cpu backend: cannot build the pass pipeline: ", llvm::toString(std::move(error))));
  }
  pipeline.run(function, functions);
  if (!target.avx512_fp16) compare_halves_as_floats(function);
}

std::unique_ptr<llvm::MemoryBuffer> ObjectCodeMaker::object_of(llvm::Module& module, bool reduces_strength) {
  llvm::SmallVector<char, 0> object;
  {
    llvm::raw_svector_ostream out(object);
    CodeGenerator generator(reduces_strength);
    llvm::MCContext* context = nullptr;
    if (machine_->addPassesToEmitMC(generator, context, out)) {
      throw Error(Status::runtime_error, "cpu backend: this machine's code generator makes no object files");
    }
    generator.run(module);
  }
  return std::make_unique<llvm::SmallVectorMemoryBuffer>(std::move(object), module.getName(), /*RequiresNullTerminator=*/false);
}

}  // namespace lamina::cpu
