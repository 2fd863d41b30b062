# The versions in keys of machine code and of measured times (cmake/code_version.cmake) change with every source file that can
# change the code of their backend, in any folder, and with no other file.
#
#   cmake -DPROJECT=<the project's folder> -DSCRATCH=<a folder for this test> -P code_version_test.cmake
cmake_minimum_required(VERSION 3.25)
set(header ${SCRATCH}/code_version.h)

function(version_of_sources result)
  execute_process(COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${SCRATCH}/src -DHEADER=${header} -DVERSION=1.2.3
    -P ${PROJECT}/cmake/code_version.cmake RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "code_version.cmake fails")
  endif()
  file(READ ${header} text)
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
foreach(module IN ITEMS backends kernels interface passes)
  file(COPY ${PROJECT}/src/${module} DESTINATION ${SCRATCH}/src)
endforeach()
version_of_sources(before)

function(hash_in result name text)
  if(NOT text MATCHES "#define ${name} \"([0-9a-f]+)\"")
    message(FATAL_ERROR "no ${name} in: ${text}")
  endif()
  set(${result} ${CMAKE_MATCH_1} PARENT_SCOPE)
endfunction()

# ARGN: the names of the hashes that change with `file`; the others do not.
function(expect_change file)
  file(READ ${SCRATCH}/src/${file} content)
  file(APPEND ${SCRATCH}/src/${file} "// another line\n")
  version_of_sources(after)
  file(WRITE ${SCRATCH}/src/${file} "${content}")
  foreach(name IN ITEMS LAMINA_EMITTER_HASH LAMINA_GPU_EMITTER_HASH)
    hash_in(hash_before ${name} "${before}")
    hash_in(hash_after ${name} "${after}")
    if(name IN_LIST ARGN AND hash_after STREQUAL hash_before)
      message(SEND_ERROR "${file} changes, ${name} does not")
    elseif(NOT name IN_LIST ARGN AND NOT hash_after STREQUAL hash_before)
      message(SEND_ERROR "${name} changes with ${file}, on which it does not depend")
    endif()
  endforeach()
endfunction()

foreach(file IN ITEMS kernels/math/polynomials.h kernels/numerics.h kernels/kernel_ir.cpp kernels/ops/norm.cpp interface/data_type.cpp
    backends/schedule/legal_product.h)
  expect_change(${file} LAMINA_EMITTER_HASH LAMINA_GPU_EMITTER_HASH)
endforeach()
foreach(file IN ITEMS backends/cpu/run/kernel_runner.cpp backends/cpu/emit/values.cpp backends/cpu/schedule/tuning.h
    backends/cpu/vector/math.cpp backends/cpu/code/object_code.cpp)
  expect_change(${file} LAMINA_EMITTER_HASH)
endforeach()
foreach(file IN ITEMS backends/gpu/emit/prelude.inl backends/gpu/emit/values.cpp backends/gpu/languages/language.h
    backends/gpu/schedule/schedule_fields.def backends/gpu/kernel_runner.cpp)
  expect_change(${file} LAMINA_GPU_EMITTER_HASH)
endforeach()
expect_change(passes/pipeline.cpp)
file(WRITE ${SCRATCH}/src/backends/cpu/emit/new_walk.cpp "// a source that was not there\n")
version_of_sources(with_new_file)
if(with_new_file STREQUAL before)
  message(SEND_ERROR "a new source in a folder of the CPU backend does not change the version")
endif()
