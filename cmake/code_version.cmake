# code_version.h: the version of the code generator, for the cache of machine code on disk. Code that other sources of the CPU
# backend have made is not found again, whatever the version of the project says.
#
# Included by the project it adds the header to lamina_cpu; run as a script (cmake -P) it writes the header.
if(CMAKE_SCRIPT_MODE_FILE)
  file(GLOB sources ${SOURCE_DIR}/*.cpp ${SOURCE_DIR}/*.h)
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
file(GLOB emitter_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cpu/*.cpp ${PROJECT_SOURCE_DIR}/src/backends/cpu/*.h)
add_custom_command(OUTPUT ${code_version_header}
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR}/src/backends/cpu -DHEADER=${code_version_header}
          -DVERSION=${PROJECT_VERSION} -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${emitter_sources} ${CMAKE_CURRENT_LIST_FILE} COMMENT "Hashing the sources of the CPU backend" VERBATIM)
target_sources(lamina_cpu PRIVATE ${code_version_header})
target_include_directories(lamina_cpu PRIVATE ${PROJECT_BINARY_DIR}/generated)
