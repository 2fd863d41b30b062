# code_version.h: the version of the code generator, for the cache of machine code on disk. Code that other sources have
# generated is never reused, even if the project's version is the same. The version is a hash of every source that can change
# machine code: the CPU backend, its schedules, the kernel IR with its constants and mathematics, the tables of data types and small floats,
# and the public lists.
#
# Included by the project it adds the header to lamina_cpu; run as a script (cmake -P) it writes the header.
if(CMAKE_SCRIPT_MODE_FILE)
  set(sources "")
  foreach(module IN ITEMS backends/cpu backends/schedule kernels interface)
    file(GLOB_RECURSE module_sources ${SOURCE_DIR}/${module}/*.cpp ${SOURCE_DIR}/${module}/*.h ${SOURCE_DIR}/${module}/*.def ${SOURCE_DIR}/${module}/*.inl)
    list(APPEND sources ${module_sources})
  endforeach()
  file(GLOB lists ${SOURCE_DIR}/../include/graph/*.def)
  list(APPEND sources ${lists})
  set(hashes "")
  foreach(source IN LISTS sources)
    file(SHA256 ${source} hash)
    string(APPEND hashes ${hash})
  endforeach()
  string(SHA256 hash "${hashes}")
  string(SUBSTRING ${hash} 0 16 hash)
  file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define LAMINA_VERSION \"${VERSION}\"\n#define LAMINA_EMITTER_HASH \"${hash}\"\n")
  return()
endif()

set(code_version_header ${PROJECT_BINARY_DIR}/generated/code_version.h)
set(emitter_patterns ${PROJECT_SOURCE_DIR}/include/graph/*.def)
foreach(module IN ITEMS backends/cpu backends/schedule kernels interface)
  foreach(ending IN ITEMS cpp h def inl)
    list(APPEND emitter_patterns ${PROJECT_SOURCE_DIR}/src/${module}/*.${ending})
  endforeach()
endforeach()
file(GLOB_RECURSE emitter_sources CONFIGURE_DEPENDS ${emitter_patterns})
add_custom_command(OUTPUT ${code_version_header}
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR}/src -DHEADER=${code_version_header}
          -DVERSION=${PROJECT_VERSION} -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${emitter_sources} ${CMAKE_CURRENT_LIST_FILE} COMMENT "Hashing the sources that decide what machine code is made" VERBATIM)
target_sources(lamina_cpu PRIVATE ${code_version_header})
target_include_directories(lamina_cpu PRIVATE ${PROJECT_BINARY_DIR}/generated)
