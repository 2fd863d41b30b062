# liblamina: one library of all modules that exports only the C ABI (cmake/exports.map.in), its install rules, and the package
# for find_package(lamina). LAMINA_SHARED says whether it is shared.
if(LAMINA_SHARED)
  configure_file(cmake/exports.map.in ${PROJECT_BINARY_DIR}/exports.map @ONLY)
  add_library(lamina SHARED ${PROJECT_SOURCE_DIR}/cmake/empty.cpp)
  set_target_properties(lamina PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${lamina_abi_version}
    LINK_DEPENDS ${PROJECT_BINARY_DIR}/exports.map)
  # lamina_api is linked as a whole archive, because no other code references it; the linker then resolves what it needs.
  target_link_libraries(lamina PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,lamina_api>)
  target_link_options(lamina PRIVATE -Wl,--version-script=${PROJECT_BINARY_DIR}/exports.map -Wl,--no-undefined -Wl,--gc-sections)
  # The library is never unloaded: its threads, callbacks registered with LLVM, and thread-local values of running threads
  # refer to its code.
  target_link_options(lamina PRIVATE -Wl,-z,nodelete)
  lamina_run_paths(lamina)
else()
  lamina_static_library(lamina ROOT lamina_api LINKS ${lamina_static_links})
endif()
add_library(lamina::lamina ALIAS lamina)
target_compile_features(lamina INTERFACE cxx_std_17)
target_include_directories(lamina INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${lamina_include_dir}>)

install(TARGETS lamina EXPORT lamina-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
lamina_package(lamina NAME lamina EXPORT lamina-targets COMPONENT development
  DESCRIPTION "Graphs of deep-learning operations, fused and compiled" PRIVATE_LIBS "${lamina_llvm_flags} ${lamina_static_flags}"
  HEADERS lamina.h lamina.hpp lamina_common.hpp layer_norm.h layer_norm.hpp cuda.h opencl.h text.h export.h
    op_kinds.def attribute_kinds.def)
if(lamina_own_onednn)
  install(FILES ${lamina_installed_onednn} DESTINATION ${lamina_private_lib_dir} COMPONENT library)
endif()
