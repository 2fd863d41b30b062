# liblamina_runtime: what loads and runs exported models. It links neither LLVM nor the compiler's modules.
lamina_module(lamina_runtime_objects DIR src/runtime LINKS lamina_dispatch lamina_cache)
set_source_files_properties(src/runtime/c_api.cpp PROPERTIES COMPILE_DEFINITIONS LAMINA_VERSION="${PROJECT_VERSION}")

if(LAMINA_SHARED)
  configure_file(cmake/runtime_exports.map.in ${PROJECT_BINARY_DIR}/runtime_exports.map @ONLY)
  add_library(lamina_runtime SHARED ${PROJECT_SOURCE_DIR}/cmake/empty.cpp)
  set_target_properties(lamina_runtime PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${lamina_abi_version}
    LINK_DEPENDS ${PROJECT_BINARY_DIR}/runtime_exports.map)
  target_link_libraries(lamina_runtime PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,lamina_runtime_objects>)
  # It is never unloaded, like liblamina, because of its threads.
  target_link_options(lamina_runtime PRIVATE -Wl,--version-script=${PROJECT_BINARY_DIR}/runtime_exports.map
    -Wl,--no-undefined -Wl,--gc-sections -Wl,-z,nodelete)
else()
  lamina_static_library(lamina_runtime ROOT lamina_runtime_objects)
endif()
add_library(lamina::runtime ALIAS lamina_runtime)
set_target_properties(lamina_runtime PROPERTIES EXPORT_NAME runtime)
target_include_directories(lamina_runtime INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${lamina_include_dir}>)

install(TARGETS lamina_runtime EXPORT lamina-runtime-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT runtime_development
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime_development)
lamina_package(lamina_runtime NAME lamina-runtime EXPORT lamina-runtime-targets COMPONENT runtime_development
  DESCRIPTION "Runs models that lamina exported" PRIVATE_LIBS "${lamina_static_flags}"
  HEADERS lamina_runtime.h lamina_runtime.hpp data_types.def)
