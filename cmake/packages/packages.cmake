# Debian packages by CPack (scripts/packages). One package per component (cmake/layout.cmake):
#   liblamina-runtime0.N  liblamina0.N  liblamina-runtime-dev  liblamina-dev  lamina-tools  python3-lamina
# The names of the libraries' packages have the ABI's version, so packages of several versions can be installed.
set(LAMINA_MAINTAINER "lamina developers <lamina@lists.invalid>" CACHE STRING "Maintainer of the packages: NAME <ADDRESS>")
set(packages ${CMAKE_CURRENT_LIST_DIR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_PACKAGE_CONTACT ${LAMINA_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL runtime library runtime_development development tools python)
set(CPACK_OUTPUT_FILE_PREFIX ${PROJECT_BINARY_DIR}/deb)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SOURCE lamina)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
if(lamina_own_onednn)
  list(APPEND CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lamina)
endif()

# Every package has a copyright file and a changelog, whose date is that of the sources.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)  # of SOURCE_DATE_EPOCH, if set
configure_file(${packages}/changelog.in ${PROJECT_BINARY_DIR}/packages/changelog.Debian @ONLY)
execute_process(COMMAND gzip -9nf changelog.Debian WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/packages COMMAND_ERROR_IS_FATAL ANY)

# lamina_debian_package(component NAME package SECTION section DEPENDS packages... TEXT description)
function(lamina_debian_package component)
  cmake_parse_arguments(DEB "" "NAME;SECTION;TEXT" "DEPENDS;RECOMMENDS" ${ARGN})
  string(TOUPPER ${component} upper)
  list(JOIN DEB_DEPENDS ", " depends)
  list(JOIN DEB_RECOMMENDS ", " recommends)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${DEB_NAME} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${DEB_SECTION} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_RECOMMENDS "${recommends}" PARENT_SCOPE)
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${DEB_TEXT}" PARENT_SCOPE)
  install(FILES ${packages}/copyright ${PROJECT_BINARY_DIR}/packages/changelog.Debian.gz
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${DEB_NAME} COMPONENT ${component})
endfunction()

set(same "(= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
lamina_debian_package(runtime NAME liblamina-runtime${lamina_abi_version} SECTION libs
  TEXT "runtime of exported lamina models
liblamina_runtime loads a model that the driver exported to one file, and
runs it. It needs no compiler, no LLVM and no Python.")
lamina_debian_package(library NAME liblamina${lamina_abi_version} SECTION libs
  TEXT "graphs of deep-learning operations, fused and compiled
lamina is a graph-level library of deep-learning operations with a fusion
compiler for CPUs and GPUs. It checks a graph, partitions it, fuses each
partition, compiles it for the machine and runs it.
.
This package has the library, and libraries with the interfaces of oneDNN's
layer normalization primitive, of infiniop and of oneDNN Graph over it.")
lamina_debian_package(runtime_development NAME liblamina-runtime-dev SECTION libdevel
  DEPENDS "liblamina-runtime${lamina_abi_version} ${same}"
  TEXT "runtime of exported lamina models (development files)
Headers, CMake package and pkg-config file for programs that run models with
liblamina_runtime.")
lamina_debian_package(development NAME liblamina-dev SECTION libdevel
  DEPENDS "liblamina${lamina_abi_version} ${same}" "liblamina-runtime-dev ${same}"
  TEXT "graphs of deep-learning operations (development files)
Headers, CMake package, pkg-config file and examples for programs that use
liblamina from C or C++.")
lamina_debian_package(tools NAME lamina-tools SECTION science DEPENDS "liblamina${lamina_abi_version} ${same}"
  TEXT "compile, inspect and measure graphs of deep-learning operations
The command lamina replays dumps of graphs with checks and timings, explains
what was fused and why, draws graphs, tunes schedules, and exports models to
one file.")
find_package(Python REQUIRED COMPONENTS Interpreter)
math(EXPR next_python "${Python_VERSION_MINOR} + 1")
lamina_debian_package(python NAME python3-lamina SECTION python
  DEPENDS "liblamina${lamina_abi_version} ${same}" "liblamina-runtime${lamina_abi_version} ${same}" "python3 (>= 3.${Python_VERSION_MINOR})" "python3 (<< 3.${next_python})"
  RECOMMENDS python3-numpy
  TEXT "graphs of deep-learning operations (Python 3)
The Python package lamina: graphs and functions of arrays, ONNX models, and a
backend of torch.compile. Arrays of numpy and PyTorch are not copied.")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${packages}/postinst ${packages}/prerm)

# lamina_debian_libraries(COMPONENT libraries...): how packages of others come to depend on these libraries (shlibs), and that
# the loader's cache is renewed (triggers).
function(lamina_debian_libraries component)
  set(folder ${PROJECT_BINARY_DIR}/packages/${component})
  set(lines "")
  foreach(library IN LISTS ARGN)
    get_target_property(version ${library} SOVERSION)
    string(APPEND lines "lib${library} ${version} ${CPACK_DEBIAN_${component}_PACKAGE_NAME} (>= ${PROJECT_VERSION})\n")
  endforeach()
  file(WRITE ${folder}/shlibs "${lines}")
  file(WRITE ${folder}/triggers "activate-noawait ldconfig\n")
  set(CPACK_DEBIAN_${component}_PACKAGE_CONTROL_EXTRA ${folder}/shlibs ${folder}/triggers PARENT_SCOPE)
endfunction()
set(front_ends lamina_onednn_primitive lamina_infiniop)
if(TARGET lamina_onednn_graph)
  list(APPEND front_ends lamina_onednn_graph)
endif()
lamina_debian_libraries(RUNTIME lamina_runtime)
lamina_debian_libraries(LIBRARY lamina ${front_ends})
set(CPACK_POST_BUILD_SCRIPTS ${packages}/without_ldconfig.cmake)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/liblamina-dev COMPONENT development)
include(CPack)
