// HIP without a device: the words in which its program differs from the CUDA program, and hipRTC, which is opened at run time.
#include "backends/gpu/hip/compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <sstream>

#include "backends/gpu/gpu_kernels.h"

namespace lamina::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

gpu::KernelSource program(const gpu::Language& language) {
  const kernel::Kernel kernel = first_kernel_of(norm_backward_graph(DataType::bf16, 64, 1024));
  return gpu::emit_kernel(kernel, gpu::choose_schedule(kernel, {}), language, true, true);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The lines of `text` that `other` does not have, in order.
std::vector<std::string> lines_only_in(const std::string& text, const std::string& other) {
  const std::vector<std::string> all = lines_of(other);
  const std::set<std::string> known(all.begin(), all.end());
  std::vector<std::string> lines = lines_of(text);
  std::erase_if(lines, [&](const std::string& line) { return known.contains(line); });
  return lines;
}

TEST(Hip, DiffersFromCudaInTheseWords) {
  const gpu::KernelSource cuda = program(gpu::languages::cuda), hip = program(gpu::languages::hip);
  EXPECT_EQ(hip.symbols, cuda.symbols);
  EXPECT_THAT(
      lines_only_in(hip.text, cuda.text),
      ElementsAre("#define LM_KERNEL(size, resident) extern \"C\" __global__ void __launch_bounds__(size)",
                  "#define LM_SHUFFLE __shfl_xor(x, distance, 32)", "#define LM_FMA_F32 __builtin_fmaf(a, b, c)",
                  "#define LM_DIVIDE_F32 a / b", "#define LM_SQRT_F32 __builtin_sqrtf(x)",
                  "#define LM_BITS_F32 __builtin_bit_cast(lm_u32, x)", "#define LM_REAL_F32 __builtin_bit_cast(lm_f32, x)",
                  "#define LM_FMA_F64 __builtin_fma(a, b, c)", "#define LM_DIVIDE_F64 a / b",
                  "#define LM_SQRT_F64 __builtin_sqrt(x)", "#define LM_BITS_F64 __builtin_bit_cast(lm_u64, x)",
                  "#define LM_REAL_F64 __builtin_bit_cast(lm_f64, x)"));
  // CUDA's other lines are the same words, and conversions by instructions of the device.
  for (const std::string& line : lines_only_in(cuda.text, hip.text))
    EXPECT_TRUE(line.starts_with("#define LM_") || line.starts_with("#pragma nv_diag_suppress") ||
                std::string(gpu::languages::cuda.conversions).find(line) != std::string::npos)
        << line;
}

TEST(Hip, HiprtcCompilesTheProgramWhereItIsInstalled) {
  std::string why;
  const gpu::hip::HiprtcApi* const hiprtc = gpu::hip::hiprtc_api(why);
  if (hiprtc == nullptr) {
    EXPECT_THAT(why, HasSubstr("hipRTC, the run-time compiler of ROCm: not found: libhiprtc.so.7, "));
    GTEST_SKIP() << why;
  }
  const gpu::KernelSource source = program(gpu::languages::hip);
  for (const char* architecture : {"gfx90a", "gfx1100"})
    EXPECT_FALSE(gpu::hip::compile(*hiprtc, source.symbol, source.text, architecture).empty()) << architecture;
}

// A compiler that accepts programs with the word "kernel", and whose code object is "code".
gpu::hip::HiprtcApi mock_hiprtc() {
  using Program = gpu::hip::HiprtcApi::Program;
  static bool is_good;
  gpu::hip::HiprtcApi api;
  api.error_string = [](int) { return "HIPRTC_ERROR_COMPILATION"; };
  api.create_program = [](Program*, const char* text, const char*, int, const char* const*, const char* const*) {
    is_good = std::strstr(text, "kernel") != nullptr;
    return 0;
  };
  api.destroy_program = [](Program*) { return 0; };
  api.compile_program = [](Program, int, const char* const*) { return is_good ? 0 : 6; };
  api.code_size = api.log_size = [](Program, size_t* size) { return *size = 4, 0; };
  api.code = [](Program, char* text) { return std::memcpy(text, "code", 4), 0; };
  api.log = [](Program, char* text) { return std::memcpy(text, "why?", 4), 0; };
  return api;
}

TEST(Hip, ACompilerErrorHasTheLog) {
  const gpu::hip::HiprtcApi hiprtc = mock_hiprtc();
  EXPECT_EQ(gpu::hip::compile(hiprtc, "good", "a kernel", "gfx90a"), "code");
  try {
    gpu::hip::compile(hiprtc, "bad", "something else", "gfx90a");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "bug in lamina: hipRTC does not compile bad: HIPRTC_ERROR_COMPILATION\nwhy?");
  }
}

}  // namespace
}  // namespace lamina::testing
