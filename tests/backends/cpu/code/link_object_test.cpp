// Linking turns object files into code, or returns an error without side effects.
#include "backends/cpu/code/link_object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "backends/cpu/code/llvm_orc.h"
#include "support/emulator.h"

namespace lamina::testing {
namespace {

using cpu::ObjectLinker;
using ::testing::AllOf, ::testing::HasSubstr;

// An object with `int caller() { return value(); }`; `value` emits the returned value.
std::string object_that_returns(const std::function<llvm::Value*(llvm::IRBuilder<>&, llvm::Module&)>& value) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::LLVMContext context;
  llvm::Module module("test", context);
  llvm::IRBuilder<> b(context);
  auto* const type = llvm::FunctionType::get(b.getInt32Ty(), {});
  auto* const caller = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "caller", module);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "", caller));
  b.CreateRet(value(b, module));
  auto builder = llvm::cantFail(llvm::orc::JITTargetMachineBuilder::detectHost());
  auto machine = llvm::cantFail(builder.createTargetMachine());
  module.setDataLayout(machine->createDataLayout());
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream out(object);
  llvm::legacy::PassManager passes;
  EXPECT_FALSE(machine->addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::ObjectFile));
  passes.run(module);
  return std::string(object.data(), object.size());
}

std::string object_that_calls(const std::string& callee) {
  return object_that_returns([&](llvm::IRBuilder<>& b, llvm::Module& module) {
    return b.CreateCall(module.getOrInsertFunction(callee, llvm::FunctionType::get(b.getInt32Ty(), {})));
  });
}

std::string fault_of(const std::string& object, const std::string& symbol) {
  ObjectLinker linker({});
  auto code = linker.link({object, "test"}, symbol);
  return code ? "none" : llvm::toString(code.takeError());
}

TEST(LinkObject, CodeCallsFunctionsOfTheProcess) {
  ObjectLinker linker({});
  const std::string object = object_that_calls("getpid");
  for (int again = 0; again < 2; ++again) {  // an object may be linked repeatedly
    auto code = linker.link({object, "test"}, "caller");
    ASSERT_TRUE(!!code) << llvm::toString(code.takeError());
    EXPECT_EQ(reinterpret_cast<int (*)()>(code->address)(), getpid());
  }
}

// New code may get the address of released code: the processor must not run stale instructions from its cache.
TEST(LinkObject, CodeTakesThePlaceOfOtherCode) {
  ObjectLinker linker({});
  std::set<void*> places;
  constexpr int kTimes = 60;
  for (int number = 0; number < kTimes; ++number) {
    const std::string object = object_that_returns(
        [number](llvm::IRBuilder<>& b, llvm::Module&) { return b.getInt32(static_cast<uint32_t>(number)); });
    auto code = linker.link({object, "test"}, "caller");
    ASSERT_TRUE(!!code) << llvm::toString(code.takeError());
    EXPECT_EQ(reinterpret_cast<int (*)()>(code->address)(), number);
    places.insert(code->address);
  }
  if (places.size() == kTimes && kIsEmulated) GTEST_SKIP() << "the emulator gives no place twice";
  EXPECT_LT(places.size(), size_t{kTimes}) << "no place was taken twice";
}

TEST(LinkObjectDeathTest, CodeRunsAsLongAsItsMemoryIsHeld) {
  ObjectLinker linker({});
  const std::string object = object_that_calls("getpid");
  auto code = linker.link({object, "test"}, "caller");
  ASSERT_TRUE(!!code) << llvm::toString(code.takeError());
  auto* const caller = reinterpret_cast<int (*)()>(code->address);
  auto copy = code->memory;
  code->memory = nullptr;
  EXPECT_EQ(caller(), getpid());
  EXPECT_DEATH((copy = nullptr, caller()), "");
}

TEST(LinkObject, AFunctionThatTheProcessDoesNotHaveIsAnError) {
  EXPECT_THAT(fault_of(object_that_calls("no_such_function_anywhere"), "caller"), HasSubstr("no_such_function_anywhere"));
}

TEST(LinkObject, AnObjectWithoutTheSymbolIsAnError) {
  EXPECT_THAT(fault_of(object_that_calls("getpid"), "another"), HasSubstr("another"));
}

TEST(LinkObject, AnObjectCutOffAnywhereIsAnError) {
  const std::string whole = object_that_calls("getpid");
  for (size_t bytes = 0; bytes < whole.size(); bytes += bytes < 80 ? 1 : 37)
    EXPECT_NE(fault_of(whole.substr(0, bytes), "caller"), "none") << bytes;
}

TEST(LinkObject, AnObjectForAnotherMachineIsAnError) {
  std::string object = object_that_calls("getpid");
  const std::string own = object.substr(18, 2), arm("\xb7\0", 2), x86("\x3e\0", 2);  // e_machine
  object.replace(18, 2, own == arm ? x86 : arm);
  EXPECT_THAT(fault_of(object, "caller"), AllOf(HasSubstr("aarch64"), HasSubstr("x86_64")));
}

}  // namespace
}  // namespace lamina::testing
