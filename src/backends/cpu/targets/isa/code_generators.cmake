# Code can also be generated for other architectures, if the LLVM in use supports them. A static LLVM is linked only for this
# one.
foreach(kind IN ITEMS X86 AArch64)
  if(kind IN_LIST LLVM_TARGETS_TO_BUILD AND (NOT LAMINA_STATIC_LLVM OR kind STREQUAL LLVM_NATIVE_ARCH))
    string(TOUPPER ${kind} upper_kind)
    list(APPEND kinds_of_code LAMINA_LLVM_${upper_kind})
  endif()
endforeach()
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/x86_64.cpp ${CMAKE_CURRENT_LIST_DIR}/aarch64.cpp PROPERTIES
  COMPILE_DEFINITIONS "${kinds_of_code}")
