# liblamina: one shared library of all modules that exports only the C ABI (cmake/exports.map), its install rules, and the
# package for find_package(lamina).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_library(lamina SHARED ${PROJECT_SOURCE_DIR}/cmake/empty.cpp)
add_library(lamina::lamina ALIAS lamina)
set_target_properties(lamina PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
target_compile_features(lamina INTERFACE cxx_std_17)
target_include_directories(lamina INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
# lamina_api is linked as a whole archive, because no other code references it; the linker then resolves what it needs.
target_link_libraries(lamina PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,lamina_api>)
target_link_options(lamina PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map -Wl,--no-undefined
  -Wl,--gc-sections)
# The library is never unloaded: its threads, callbacks registered with LLVM, and thread-local values of running threads refer
# to its code.
target_link_options(lamina PRIVATE -Wl,-z,nodelete)

install(TARGETS lamina EXPORT lamina-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT lamina NAMELINK_COMPONENT lamina)
install(FILES include/graph/lamina.h include/graph/lamina.hpp include/graph/lamina_common.hpp include/graph/layer_norm.h
  include/graph/layer_norm.hpp include/graph/cuda.h include/graph/opencl.h include/graph/text.h include/graph/op_kinds.def
  include/graph/data_types.def
  include/graph/attribute_kinds.def
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/graph COMPONENT lamina)
lamina_run_paths(lamina)
if(lamina_own_onednn)
  install(FILES ${lamina_own_onednn} DESTINATION ${CMAKE_INSTALL_LIBDIR} RENAME libdnnl.so.${dnnl_VERSION_MAJOR} COMPONENT lamina)
endif()
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lamina)
install(EXPORT lamina-targets NAMESPACE lamina:: DESTINATION ${package_dir} COMPONENT lamina)
configure_package_config_file(cmake/lamina-config.cmake.in ${PROJECT_BINARY_DIR}/lamina-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lamina-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lamina-config.cmake ${PROJECT_BINARY_DIR}/lamina-config-version.cmake
  DESTINATION ${package_dir} COMPONENT lamina)
