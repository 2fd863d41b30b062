# code_version.h: the versions of the code generators, for keys of machine code and of measured times. What other sources have
# generated is never reused, even if the project's version is the same. A version is a hash of every source that can change the
# code of a backend: the backend, its schedules, the kernel IR with its constants and mathematics, the tables of data types and
# small floats, and the public lists.
#
# Included by the project it adds the header to lamina_cpu and lamina_gpu; run as a script (cmake -P) it writes the header.
set(emitter_modules_cpu backends/cpu backends/schedule kernels interface)
set(emitter_modules_gpu backends/gpu backends/schedule kernels interface)

# ARGN: CONFIGURE_DEPENDS or nothing
function(lamina_emitter_sources result backend source_dir)
  set(patterns ${source_dir}/../include/graph/*.def)
  foreach(module IN LISTS emitter_modules_${backend})
    foreach(ending IN ITEMS cpp h def inl)
      list(APPEND patterns ${source_dir}/${module}/*.${ending})
    endforeach()
  endforeach()
  file(GLOB_RECURSE sources ${ARGN} ${patterns})
  set(${result} ${sources} PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  foreach(backend IN ITEMS cpu gpu)
    lamina_emitter_sources(sources ${backend} ${SOURCE_DIR})
    set(hashes "")
    foreach(source IN LISTS sources)
      file(SHA256 ${source} hash)
      string(APPEND hashes ${hash})
    endforeach()
    string(SHA256 hash "${hashes}")
    string(SUBSTRING ${hash} 0 16 hash_${backend})
  endforeach()
  file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define LAMINA_VERSION \"${VERSION}\"
#define LAMINA_EMITTER_HASH \"${hash_cpu}\"
#define LAMINA_GPU_EMITTER_HASH \"${hash_gpu}\"
")
  return()
endif()

set(code_version_header ${PROJECT_BINARY_DIR}/generated/code_version.h)
lamina_emitter_sources(sources_cpu cpu ${PROJECT_SOURCE_DIR}/src CONFIGURE_DEPENDS)
lamina_emitter_sources(sources_gpu gpu ${PROJECT_SOURCE_DIR}/src CONFIGURE_DEPENDS)
add_custom_command(OUTPUT ${code_version_header}
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR}/src -DHEADER=${code_version_header}
          -DVERSION=${PROJECT_VERSION} -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${sources_cpu} ${sources_gpu} ${CMAKE_CURRENT_LIST_FILE}
  COMMENT "Hashing the sources that decide what machine code is made" VERBATIM)
add_custom_target(lamina_code_version DEPENDS ${code_version_header})
foreach(module IN ITEMS lamina_cpu lamina_gpu)
  add_dependencies(${module} lamina_code_version)
  target_include_directories(${module} PRIVATE ${PROJECT_BINARY_DIR}/generated)
endforeach()
