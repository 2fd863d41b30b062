#include "backends/cpu/vector/vector_jit.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include "backends/cpu/code/host_machine.h"
#include "backends/cpu/code/llvm_orc.h"
#include "backends/cpu/llvm/passes.h"
#include "backends/cpu/targets/isa/target_hooks.h"

namespace lamina::cpu::testing {

bool is_x86() { return host_machine().instructions.architecture == &targets::x86_64; }

namespace {

bool has_512_bits(const std::string& level) { return is_x86() && (level == "x86-64-v4" || !level.starts_with("x86-64")); }

template <typename T>
T value_of(llvm::Expected<T> expected) {
  if (!expected) throw std::runtime_error(llvm::toString(expected.takeError()));
  return std::move(*expected);
}

void check(llvm::Error error) {
  if (error) throw std::runtime_error(llvm::toString(std::move(error)));
}

llvm::orc::JITTargetMachineBuilder machine_builder(const std::string& level) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::orc::JITTargetMachineBuilder builder{llvm::Triple(llvm::sys::getProcessTriple())};
  builder.setCPU(is_x86() ? level : targets::aarch64.plain_cpu);
  if (level == "sve") builder.getFeatures().AddFeature("+sve");
  if (has_512_bits(level)) builder.getFeatures().AddFeature("-prefer-256-bit");
  return builder;
}

bool has_all(const llvm::TargetMachine& machine, llvm::StringRef features) {
  llvm::SmallVector<llvm::StringRef, 4> names;
  features.split(names, ',', -1, false);
  return std::all_of(names.begin(), names.end(),
                     [&](llvm::StringRef name) { return machine.getMCSubtargetInfo()->checkFeatures("+" + name.str()); });
}

// Returns the best target for a machine of this level, with all of the machine's other features.
Instructions instructions_of(const llvm::TargetMachine& machine, const std::string& level) {
  const Architecture& architecture = *host_machine().instructions.architecture;
  Instructions found{.architecture = &architecture};
  for (const Target* each : targets::of(architecture)) {
    if (has_all(machine, each->needs)) found.target = each;
  }
  if (level == targets::generic.name) found.target = &targets::generic;
  if (!found->names_processor) return found;
  if (found->vector_bits == 0) found.scalable_bits = host_machine().instructions.scalable_bits;
  found.rounds_to_bf16 = *found->needs_for_bf16 != '\0' && has_all(machine, found->needs_for_bf16);
  found.computes_in_f16 = has_all(machine, found->needs_for_f16);
  return found;
}

// for (i = 0; i < count; i += width) store(emit(load(src + i)), dst + i)
void write_loop(llvm::Function& function, const Emit& emit, llvm::Type* src, llvm::Type* dst, int width,
                const Instructions& target) {
  auto& context = function.getContext();
  auto* entry = llvm::BasicBlock::Create(context, "entry", &function);
  auto* loop = llvm::BasicBlock::Create(context, "loop", &function);
  auto* done = llvm::BasicBlock::Create(context, "done", &function);
  llvm::IRBuilder<> b(entry);
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  auto* index = b.CreatePHI(b.getInt64Ty(), 2);
  const auto lanes = [&](llvm::Type* scalar) -> llvm::Type* {
    return width == 1 ? scalar : llvm::FixedVectorType::get(scalar, static_cast<unsigned>(width));
  };
  llvm::Value* from = b.CreateGEP(src, function.getArg(0), index);
  llvm::Value* value = emit(b, b.CreateAlignedLoad(lanes(src), from, llvm::Align(1)), target);
  b.CreateAlignedStore(value, b.CreateGEP(dst, function.getArg(1), index), llvm::Align(1));
  auto* next = b.CreateAdd(index, b.getInt64(static_cast<uint64_t>(width)));
  index->addIncoming(b.getInt64(0), entry);
  index->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpSLT(next, function.getArg(2)), loop, done);
  b.SetInsertPoint(done);
  b.CreateRetVoid();
}

}  // namespace

VectorJit::VectorJit(const std::string& level) : level_(level) {
  auto builder = machine_builder(level);
  machine_ = value_of(builder.createTargetMachine());
  jit_ = value_of(llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(builder).create());
}

VectorJit::~VectorJit() = default;

void VectorJit::optimize(llvm::Module& module) {
  llvm::PassBuilder builder(machine_.get());
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

llvm::orc::ThreadSafeModule VectorJit::build(const std::string& name, const Emit& emit, const ElementType& src,
                                             const ElementType& dst, int width) {
  auto context = std::make_unique<llvm::LLVMContext>();
  auto module = std::make_unique<llvm::Module>(name, *context);
  module->setDataLayout(machine_->createDataLayout());
  module->setTargetTriple(machine_->getTargetTriple().str());
  auto* pointer = llvm::PointerType::getUnqual(*context);
  auto* type =
      llvm::FunctionType::get(llvm::Type::getVoidTy(*context), {pointer, pointer, llvm::Type::getInt64Ty(*context)}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, *module);
  if (is_x86()) function->addFnAttr("target-cpu", level_);
  const Instructions instructions = instructions_of(*machine_, level_);
  if (!is_x86()) instructions.architecture->hooks->mark(*function, instructions, vector_bits(instructions));
  if (has_512_bits(level_)) {
    function->addFnAttr("prefer-vector-width", "512");
    function->addFnAttr("min-legal-vector-width", "512");
  }
  function->addParamAttr(0, llvm::Attribute::NoAlias);
  function->addParamAttr(1, llvm::Attribute::NoAlias);
  write_loop(*function, emit, src(*context), dst(*context), width, instructions);
  std::string complaint;
  llvm::raw_string_ostream text(complaint);
  if (llvm::verifyModule(*module, &text)) throw std::runtime_error(complaint);
  optimize(*module);
  return {std::move(module), std::move(context)};
}

ArrayFunction VectorJit::compile(const Emit& emit, const ElementType& src, const ElementType& dst, int width) {
  const std::string name = "function" + std::to_string(functions_++);
  check(jit_->addIRModule(build(name, emit, src, dst, width)));
  return value_of(jit_->lookup(name)).toPtr<ArrayFunction>();
}

std::string VectorJit::assembly(const Emit& emit, const ElementType& src, const ElementType& dst, int width) {
  auto module = build("printed", emit, src, dst, width);
  llvm::SmallString<0> assembly;
  llvm::raw_svector_ostream stream(assembly);
  llvm::legacy::PassManager passes;
  machine_->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile);
  module.withModuleDo([&](llvm::Module& m) { passes.run(m); });
  if (std::getenv("LAMINA_PRINT_ASSEMBLY") != nullptr) llvm::errs() << assembly;
  return assembly.str().str();
}

int VectorJit::instruction_count(const Emit& emit, const ElementType& src, const ElementType& dst, int width) {
  std::istringstream lines(assembly(emit, src, dst, width));
  int count = 0;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(".LBB")) inside = true;
    if (!inside || !line.starts_with("\t") || line.starts_with("\t.")) continue;
    ++count;
    if (line.starts_with("\tj")) break;
  }
  return count;
}

std::vector<std::string> runnable_levels() {
  if (!is_x86()) {
    std::vector<std::string> names;
    const Architecture& architecture = *host_machine().instructions.architecture;
    for (const Target* each : targets::of(architecture)) {
      if (targets::contains(*host_machine().instructions.target, *each)) names.emplace_back(each->name);
    }
    return names;
  }
  std::vector<std::string> levels{"x86-64", "x86-64-v2"};
  const auto host = llvm::sys::getHostCPUFeatures();
  const auto has = [&](const char* feature) { return host.lookup(feature); };
  if (has("avx2") && has("fma") && has("f16c") && has("bmi2")) levels.emplace_back("x86-64-v3");
  if (has("avx512f") && has("avx512vl") && has("avx512dq") && has("avx512bw")) levels.emplace_back("x86-64-v4");
  if (levels.back() == "x86-64-v4" && has("avx512bf16") && has("avx512vnni")) levels.emplace_back("cooperlake");
  if (levels.back() == "cooperlake" && has("avx512fp16")) levels.emplace_back("sapphirerapids");
  return levels;
}

}  // namespace lamina::cpu::testing
