# What is installed where. Components:
#   runtime              liblamina_runtime
#   library              liblamina and the front ends of compat
#   runtime_development  headers, CMake package and pkg-config file of the runtime; needs runtime
#   development          those of the library; needs library and runtime_development
#   tools                the driver with its manual page and completions
#   python               the Python package
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Until 1.0 a minor version may break the ABI, so it is part of the libraries' names and of the version of their symbols.
set(lamina_abi_version ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(lamina_abi_version 0.${PROJECT_VERSION_MINOR})
endif()

set(lamina_include_dir ${CMAKE_INSTALL_INCLUDEDIR}/lamina)
set(lamina_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lamina)
# Libraries of others that lamina brings along.
set(lamina_private_lib_dir ${CMAKE_INSTALL_LIBDIR}/lamina)

# Objects do not depend on where they are built. In builds with tests the paths stay, for debuggers.
if(NOT LAMINA_BUILD_TESTS)
  cmake_path(IS_PREFIX PROJECT_SOURCE_DIR ${PROJECT_BINARY_DIR} is_inside)
  if(NOT is_inside)
    add_compile_options(-ffile-prefix-map=${PROJECT_BINARY_DIR}=lamina/build)
  endif()
  add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=lamina)
endif()

# lamina_package(target NAME pkg-config's name EXPORT targets COMPONENT name DESCRIPTION text PRIVATE_LIBS flags HEADERS files):
# installs headers, the CMake targets and a pkg-config file.
function(lamina_package target)
  cmake_parse_arguments(PACKAGE "" "EXPORT;COMPONENT;DESCRIPTION;NAME;PRIVATE_LIBS" "HEADERS" ${ARGN})
  list(TRANSFORM PACKAGE_HEADERS PREPEND ${PROJECT_SOURCE_DIR}/include/graph/)
  install(FILES ${PACKAGE_HEADERS} DESTINATION ${lamina_include_dir}/graph COMPONENT ${PACKAGE_COMPONENT})
  install(EXPORT ${PACKAGE_EXPORT} NAMESPACE lamina:: DESTINATION ${lamina_package_dir} COMPONENT ${PACKAGE_COMPONENT})
  set(pkg_config_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}/${pkg_config_dir} OUTPUT_VARIABLE prefix)
  get_target_property(library ${target} OUTPUT_NAME)
  if(NOT library)
    set(library ${target})
  endif()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/lamina.pc.in ${PROJECT_BINARY_DIR}/${PACKAGE_NAME}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${PACKAGE_NAME}.pc DESTINATION ${pkg_config_dir} COMPONENT ${PACKAGE_COMPONENT})
endfunction()

configure_package_config_file(cmake/lamina-config.cmake.in ${PROJECT_BINARY_DIR}/lamina-config.cmake
  INSTALL_DESTINATION ${lamina_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lamina-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lamina-config.cmake ${PROJECT_BINARY_DIR}/lamina-config-version.cmake
  DESTINATION ${lamina_package_dir} COMPONENT runtime_development)
