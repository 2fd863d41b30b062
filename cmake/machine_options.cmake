# What the compiler is told where the machine that the code is for has it.
include(CheckCXXCompilerFlag)
include(CheckCXXSourceCompiles)

# Frames of more than a page are touched page by page: one that leaves the stack meets its guard, not what lies below.
check_cxx_compiler_flag(-fstack-clash-protection LAMINA_FRAMES_CAN_BE_TOUCHED)
if(LAMINA_FRAMES_CAN_BE_TOUCHED)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fstack-clash-protection>)
endif()

# Where a * b + c is one instruction for all code (AArch64, -march=native), compilers take it, which rounds once. What lamina computes
# is the same on each machine: constants of kernels, sums of its own, what tests expect.
check_cxx_source_compiles("
  #ifndef __FP_FAST_FMAF
  #error two instructions
  #endif
  int main() { return 0; }" LAMINA_COMPILER_MAY_CONTRACT)
if(LAMINA_COMPILER_MAY_CONTRACT)
  add_compile_options(-ffp-contract=off)
endif()
