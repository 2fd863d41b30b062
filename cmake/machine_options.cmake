# Compiler options that depend on the target machine.
include(CheckCXXCompilerFlag)
include(CheckCXXSourceCompiles)

# Stack frames larger than a page are touched page by page, so that a stack overflow hits the guard page instead of the memory
# below it.
check_cxx_compiler_flag(-fstack-clash-protection LAMINA_FRAMES_CAN_BE_TOUCHED)
if(LAMINA_FRAMES_CAN_BE_TOUCHED)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fstack-clash-protection>)
endif()

# If the target has a fused multiply-add (AArch64, -march=native), compilers contract a * b + c, which then rounds once.
# lamina's own computations (constants of kernels, sums, expected values of tests) must be equal on all machines, so
# contraction is off.
check_cxx_source_compiles("
  #ifndef __FP_FAST_FMAF
  #error two instructions
  #endif
  int main() { return 0; }" LAMINA_COMPILER_MAY_CONTRACT)
if(LAMINA_COMPILER_MAY_CONTRACT)
  add_compile_options(-ffp-contract=off)
endif()
