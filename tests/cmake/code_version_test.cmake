# The version in the keys of cached machine code (cmake/code_version.cmake) changes with every source file that can change
# machine code, in any folder, and with no other file.
#
#   cmake -DPROJECT=<the project's folder> -DSCRATCH=<a folder for this test> -P code_version_test.cmake
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
if(NOT before MATCHES "LAMINA_EMITTER_HASH \"[0-9a-f]+\"")
  message(FATAL_ERROR "no hash in: ${before}")
endif()

function(expect_change file does_change)
  file(READ ${SCRATCH}/src/${file} content)
  file(APPEND ${SCRATCH}/src/${file} "// another line\n")
  version_of_sources(after)
  file(WRITE ${SCRATCH}/src/${file} "${content}")
  if(does_change AND after STREQUAL before)
    message(SEND_ERROR "${file} changes, the version does not")
  elseif(NOT does_change AND NOT after STREQUAL before)
    message(SEND_ERROR "the version changes with ${file}, which no machine code depends on")
  endif()
endfunction()

foreach(file IN ITEMS kernels/math/polynomials.h kernels/numerics.h kernels/kernel_ir.cpp kernels/ops/norm.cpp interface/data_type.cpp
    backends/cpu/run/kernel_runner.cpp backends/cpu/emit/values.cpp backends/cpu/schedule/tuning.h backends/cpu/vector/math.cpp
    backends/cpu/code/object_code.cpp)
  expect_change(${file} TRUE)
endforeach()
expect_change(passes/pipeline.cpp FALSE)
expect_change(backends/gpu/schedule/schedule.cpp FALSE)
file(WRITE ${SCRATCH}/src/backends/cpu/emit/new_walk.cpp "// a source that was not there\n")
version_of_sources(with_new_file)
if(with_new_file STREQUAL before)
  message(SEND_ERROR "a new source in a folder of the CPU backend does not change the version")
endif()
