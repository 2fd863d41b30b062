# Cross-builds for 64-bit ARM on another machine, with Debian's g++-aarch64-linux-gnu and a folder of Debian's arm64 packages,
# which scripts/test-arm creates (LAMINA_ARM64_ROOT, .deps/arm64). The programs run under qemu-user; the environment variable
# QEMU_CPU selects the emulated CPU.
set(LAMINA_ARM64_ROOT ${CMAKE_CURRENT_LIST_DIR}/../../.deps/arm64 CACHE PATH "Debian's arm64 packages, unpacked")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES LAMINA_ARM64_ROOT)
file(REAL_PATH ${LAMINA_ARM64_ROOT} root)

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_SYSROOT ${root})
# Libraries, headers and packages come from the folder; programs come from this machine.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(LLVM_DIR ${root}/usr/lib/llvm-19/lib/cmake/llvm)

find_program(LAMINA_QEMU_AARCH64 NAMES qemu-aarch64 qemu-aarch64-static)
if(LAMINA_QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${LAMINA_QEMU_AARCH64} -L ${root})
endif()
