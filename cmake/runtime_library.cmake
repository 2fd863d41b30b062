# liblamina_runtime: what loads and runs exported models. It links neither LLVM nor the compiler's modules.
lamina_module(lamina_runtime_objects DIR src/runtime LINKS lamina_dispatch lamina_cache)
set_source_files_properties(src/runtime/c_api.cpp PROPERTIES COMPILE_DEFINITIONS LAMINA_VERSION="${PROJECT_VERSION}")

add_library(lamina_runtime SHARED ${PROJECT_SOURCE_DIR}/cmake/empty.cpp)
add_library(lamina::runtime ALIAS lamina_runtime)
set_target_properties(lamina_runtime PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} EXPORT_NAME runtime
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/runtime_exports.map)
target_include_directories(lamina_runtime INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
target_link_libraries(lamina_runtime PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,lamina_runtime_objects>)
# It is never unloaded, like liblamina, because of its threads.
target_link_options(lamina_runtime PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/runtime_exports.map
  -Wl,--no-undefined -Wl,--gc-sections -Wl,-z,nodelete)
install(TARGETS lamina_runtime EXPORT lamina-runtime-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT runtime)
install(FILES include/graph/lamina_runtime.h include/graph/lamina_runtime.hpp include/graph/data_types.def
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/graph COMPONENT runtime)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lamina)
install(EXPORT lamina-runtime-targets NAMESPACE lamina:: DESTINATION ${package_dir} COMPONENT runtime)
install(FILES ${PROJECT_BINARY_DIR}/lamina-config.cmake ${PROJECT_BINARY_DIR}/lamina-config-version.cmake
  DESTINATION ${package_dir} COMPONENT runtime)
