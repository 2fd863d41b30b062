// HIP to machine code through hipRTC, which is opened at run time. Names, values and semantics are AMD's. There is
// no HIP device in this library yet: only tests compile.
#pragma once

#include <cstddef>
#include <string>

struct _hiprtcProgram;

namespace lamina::gpu::hip {

// Every function that lamina calls, as result, symbol, member, parameters.
#define LAMINA_HIPRTC_FUNCTIONS(F)                                                     \
  F(const char*, hiprtcGetErrorString, error_string, (int))                            \
  F(int, hiprtcCreateProgram, create_program,                                          \
    (Program*, const char*, const char*, int, const char* const*, const char* const*)) \
  F(int, hiprtcDestroyProgram, destroy_program, (Program*))                            \
  F(int, hiprtcCompileProgram, compile_program, (Program, int, const char* const*))    \
  F(int, hiprtcGetCodeSize, code_size, (Program, size_t*))                             \
  F(int, hiprtcGetCode, code, (Program, char*))                                        \
  F(int, hiprtcGetProgramLogSize, log_size, (Program, size_t*))                        \
  F(int, hiprtcGetProgramLog, log, (Program, char*))

struct HiprtcApi {
  using Program = ::_hiprtcProgram*;
  static constexpr const char *name = "hipRTC", *prefix = "hiprtc";
#define LAMINA_MEMBER(result, symbol, member, parameters) result(*member) parameters = nullptr;
  LAMINA_HIPRTC_FUNCTIONS(LAMINA_MEMBER)
#undef LAMINA_MEMBER
};

// The process's library, opened once. Null if there is none or a function is missing; `why` then says what was tried.
const HiprtcApi* hiprtc_api(std::string& why);

// Returns the code object for an architecture such as gfx90a. Throws Error(runtime_error) with the compiler's log.
std::string compile(const HiprtcApi& hiprtc, const std::string& symbol, const std::string& text,
                    const std::string& architecture);

}  // namespace lamina::gpu::hip
