// Disassembles LayerNorm's walks and checks the instructions of the innermost loops, for machines of every architecture that
// this build can generate code for. The code is not executed.
#include <gtest/gtest.h>
#include <llvm-c/Disassembler.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/code/object_code.h"
#include "backends/cpu/llvm/headers.h"
#include "backends/cpu/schedule/schedule.h"
#include "backends/cpu/support/described_machines.h"
#include "backends/cpu/support/kernels_of_rows.h"
#include "backends/cpu/targets/isa/target_hooks.h"
#include "interface/status.h"

namespace lamina::testing {
namespace {

using kernel::Kernel;

struct Instruction {
  int64_t at, bytes;
  std::string text;  // "fadd v0.4s, v1.4s, v2.4s", words separated by single spaces
};

// Disassembles the function `symbol` of an object.
std::vector<Instruction> taken_apart(llvm::MemoryBufferRef buffer, const cpu::Machine& machine, const std::string& symbol) {
  llvm::InitializeAllDisassemblers();
  const auto object = llvm::cantFail(llvm::object::ObjectFile::createObjectFile(buffer));
  std::string code;
  for (const auto& [each, size] : llvm::object::computeSymbolSizes(*object)) {
    if (llvm::cantFail(each.getType()) != llvm::object::SymbolRef::ST_Function)
      continue;  // the file symbol may have the same name
    if (llvm::cantFail(each.getName()) != symbol) continue;
    const auto section = llvm::cantFail(each.getSection());
    const uint64_t begin = llvm::cantFail(each.getAddress()) - section->getAddress();
    code = llvm::cantFail(section->getContents()).substr(begin, size).str();
  }
  const std::string triple = cpu::triple_of(*machine.instructions.architecture);
  const std::unique_ptr<void, void (*)(void*)> disassembler(
      LLVMCreateDisasmCPUFeatures(triple.c_str(), machine.cpu.c_str(), machine.features.c_str(), nullptr, 0, nullptr, nullptr),
      LLVMDisasmDispose);
  LAMINA_CHECK(disassembler != nullptr, "no disassembler for " + triple);
  std::vector<Instruction> all;
  for (size_t at = 0; at < code.size();) {
    std::array<char, 256> text;
    auto* const bytes = reinterpret_cast<uint8_t*>(code.data() + at);
    const size_t size = LLVMDisasmInstruction(disassembler.get(), bytes, code.size() - at, at, text.data(), text.size());
    LAMINA_CHECK(size > 0, join("not an instruction, at ", static_cast<int64_t>(at)));
    std::string words;
    for (const char c : std::string_view(text.data())) {
      const char plain = c == '\t' ? ' ' : c;
      if (plain != ' ' || (!words.empty() && words.back() != ' ')) words += plain;
    }
    all.push_back({static_cast<int64_t>(at), static_cast<int64_t>(size), words});
    at += size;
  }
  return all;
}

// Returns the target of a relative branch, -1 for other instructions.
int64_t goal_of(const Instruction& instruction, bool is_x86) {
  const std::string& text = instruction.text;
  const bool jumps = is_x86
                         ? text.starts_with("j") && !text.starts_with("jmpq *")
                         : text.starts_with("b.") || text.starts_with("b ") || text.starts_with("cb") || text.starts_with("tb");
  if (!jumps) return -1;
  const size_t number = text.find_last_of(" #") + 1;
  const int64_t distance = std::strtoll(text.c_str() + number, nullptr, 0);
  return instruction.at + distance + (is_x86 ? instruction.bytes : 0);
}

// A loop reaches from the target of a backward jump to that jump; it is innermost if it contains no other such jump.
std::vector<std::vector<Instruction>> innermost_loops(const std::vector<Instruction>& code, bool is_x86) {
  std::vector<std::vector<Instruction>> loops;
  int64_t last_end = -1;
  for (const Instruction& jump : code) {
    const int64_t goal = goal_of(jump, is_x86);
    if (goal < 0 || goal > jump.at) continue;
    const bool is_innermost = goal > last_end;
    last_end = jump.at;
    if (!is_innermost) continue;
    std::vector<Instruction>& loop = loops.emplace_back();
    for (const Instruction& each : code)
      if (each.at >= goal && each.at <= jump.at) loop.push_back(each);
  }
  return loops;
}

// Whether the instruction processes one element of a vector register: its name shows this on x86-64, a register on AArch64.
bool is_of_one_element(const std::string& text, bool is_x86) {
  const std::string name = text.substr(0, text.find(' '));
  if (is_x86) {
    static const std::vector<std::string> kEndings = {"ss", "sd", "sh"};
    return name.starts_with("vpinsr") || name.starts_with("vpextr") || name.starts_with("pinsr") || name.starts_with("pextr") ||
           (text.find("mm") != std::string::npos && name.find("broadcast") == std::string::npos &&
            name.find("pmin") == std::string::npos && name.find("pmax") == std::string::npos &&
            std::any_of(kEndings.begin(), kEndings.end(), [&](const std::string& end) { return name.ends_with(end); }));
  }
  if (name == "umov" || name == "smov" || name == "ins" || text.find("}[") != std::string::npos) return true;
  if (text.starts_with("mov ") && text.find('[') != std::string::npos) return true;
  if (name.starts_with("ld") || name.starts_with("st")) return false;  // half of a vector
  for (size_t i = name.size(); i + 1 < text.size(); ++i) {
    const bool begins_word = text[i - 1] == ' ' || text[i - 1] == ',';
    if (begins_word && std::string_view("shdb").find(text[i]) != std::string_view::npos && text[i + 1] >= '0' &&
        text[i + 1] <= '9')
      return true;
  }
  return false;
}

bool is_of_vectors(const std::string& text, bool is_x86) {
  if (is_x86) return text.find("mm") != std::string::npos && !is_of_one_element(text, true);
  static const std::vector<std::string> kShapes = {".4s", ".2d", ".8h", ".s", ".d", ".h"};
  return text.starts_with("ldp q") || text.starts_with("ldr q") ||
         std::any_of(kShapes.begin(), kShapes.end(),
                     [&](const std::string& shape) { return text.find(shape) != std::string::npos; });
}

struct Loops {
  size_t count = 0, of_vectors = 0, of_one_element = 0, instructions = 0;
  std::string text;
};

Loops loops_of(const Kernel& unarranged, const cpu::Machine& machine, bool may_stream = false) {
  const Kernel kernel = cpu::with_rows_arranged(unarranged, machine);
  const cpu::Schedule schedule = cpu::choose_schedule(kernel, machine, may_stream);
  cpu::ObjectCodeMaker maker(false);
  const auto object = maker.make(cpu::source_of(kernel, schedule), machine, "walks");
  const bool is_x86 = machine.instructions.architecture == &cpu::targets::x86_64;
  Loops found;
  for (const auto& loop : innermost_loops(taken_apart(object->getMemBufferRef(), machine, "walks"), is_x86)) {
    ++found.count;
    for (const Instruction& each : loop) {
      ++found.instructions;
      found.of_vectors += is_of_vectors(each.text, is_x86);
      found.of_one_element += is_of_one_element(each.text, is_x86);
      found.text += each.text + "\n";
    }
    found.text += "\n";
  }
  return found;
}

class InnerLoops : public ::testing::TestWithParam<DescribedMachine> {
 protected:
  void SetUp() override {
    if (!GetParam().machine.instructions.architecture->hooks->initialize()) GTEST_SKIP() << "no code is made for it here";
  }
};

// Rows of whole chunks of 64 elements: first sums, then results. The types are f32 and types that are converted on load;
// instruction sets without such conversions use integer vectors.
TEST_P(InnerLoops, OfLayerNormWorkOnVectorsAlone) {
  for (const DataType dtype : {DataType::f32, DataType::bf16, DataType::f16, DataType::f64}) {
    const Loops loops = loops_of(layer_norm({64, 1024, dtype}), GetParam().machine);
    SCOPED_TRACE(join(name_of(dtype), "\n", loops.text));
    EXPECT_GE(loops.count, 2u);
    EXPECT_EQ(loops.of_one_element, 0u);
    EXPECT_GE(2 * loops.of_vectors, loops.instructions);
  }
}

// The numbers of non-temporal stores that follow each other with the same base register.
std::vector<int> runs_of_streams(const std::string& text) {
  std::vector<int> runs;
  std::string last;
  for (size_t at = text.find("vmovnt"); at != std::string::npos; at = text.find("vmovnt", at + 1)) {
    const size_t begin = text.find('(', at);
    const std::string base = text.substr(begin, text.find_first_of(",)", begin) - begin);
    if (base != last) runs.push_back(0);
    ++runs.back();
    last = base;
  }
  return runs;
}

// A norm whose input, a sum, is an output too: both are streamed, each two lines at a time, in vectors of half a line.
TEST(InnerLoopsOfTwoStreams, StoreWholeLinesOfEachInSuccession) {
  if (!cpu::targets::x86_64.hooks->initialize()) GTEST_SKIP() << "no code is made for x86-64 here";
  for (const DataType dtype : {DataType::f32, DataType::bf16, DataType::f16}) {
    Rows k("sum_and_norm", {32768, 1024, dtype});
    const kernel::Value sum = k.src("a") + k.src("b");
    const auto moments = k.builder().moments(sum);
    k.out(k.builder().center(sum, moments, 1.0 / sqrt(moments.variance + 1e-5)), "dst");
    k.out(sum, "sum");
    const Loops loops = loops_of(k.finish(), desktop().machine, true);
    SCOPED_TRACE(join(name_of(dtype), "\n", loops.text));
    const std::vector<int> runs = runs_of_streams(loops.text);
    EXPECT_GE(runs.size(), 2u);
    for (const int stores : runs) EXPECT_EQ(stores, 4);
  }
}

// Plain x86-64 is excluded: it has no fused multiply-add and calls fmaf for each element.
std::vector<DescribedMachine> machines_with_fma() {
  std::vector<DescribedMachine> machines = machines_of_all_architectures();
  std::erase_if(machines, [](const DescribedMachine& each) { return each.name == "plain"; });
  machines.push_back({"plain_aarch64", cpu::capped(neoverse_n1().machine, cpu::targets::generic)});
  return machines;
}

INSTANTIATE_TEST_SUITE_P(Machines, InnerLoops, ::testing::ValuesIn(machines_with_fma()), name_of_machine);

}  // namespace
}  // namespace lamina::testing
