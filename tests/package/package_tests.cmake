# Tests of the delivered files: the exported symbols, the installed package, and the example of the README.
# ARGN: the version of all symbols and the library's SONAME
function(exports_test name target allowed at_least)
  add_test(NAME package.${name} COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DREADELF=${CMAKE_READELF} -DLIBRARY=$<TARGET_FILE:${target}>
    -DALLOWED=${allowed} -DAT_LEAST=${at_least} -DVERSION=${ARGV4} -DSONAME=${ARGV5}
    -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/check_exports.cmake)
endfunction()
exports_test(exports_only_the_c_abi lamina "^lamina_[a-z0-9_]+$" 50
  LAMINA_${lamina_abi_version} liblamina.so.${lamina_abi_version})
exports_test(runtime_exports_only_its_c_abi lamina_runtime "^lamina_(runtime|model)_[a-z0-9_]+$" 12
  LAMINA_RUNTIME_${lamina_abi_version} liblamina_runtime.so.${lamina_abi_version})
# Each front end is a separate library: it exports the names of its document and none of lamina's.
exports_test(infiniop_exports_only_its_documents_names lamina_infiniop "^infini(op|rt)[A-Z][A-Za-z]+$" 13)
exports_test(onednn_primitive_exports_only_namespace_dnnl lamina_onednn_primitive "^_Z(NK?|T[ISV]N)4dnnl" 40)
if(TARGET lamina_onednn_graph)
  exports_test(onednn_graph_exports_only_onednns_names lamina_onednn_graph "^dnnl_[a-z0-9_]+$" 70)
endif()

add_test(NAME package.installed_package_is_found_and_works
  COMMAND ${CMAKE_COMMAND} -DBUILD_DIR=${PROJECT_BINARY_DIR} -DWORK_DIR=${CMAKE_CURRENT_BINARY_DIR}/package
          -DCONSUMER_DIR=${CMAKE_CURRENT_LIST_DIR}/consumer -DEXAMPLES_DIR=${PROJECT_SOURCE_DIR}/examples
          -DINCLUDE_DIR=${PROJECT_SOURCE_DIR}/include -DCXX=${CMAKE_CXX_COMPILER} -DCXX_FLAGS=${CMAKE_CXX_FLAGS}
          -DGRAPH=${PROJECT_SOURCE_DIR}/examples/graphs/layer_norm.json -DGENERATOR=${CMAKE_GENERATOR} -P ${CMAKE_CURRENT_LIST_DIR}/check_package.cmake)

# The archives of LAMINA_SHARED=OFF, both in one program whose own symbols meet none of theirs.
lamina_static_library(lamina_archive ROOT lamina_api LINKS ${lamina_static_links})
lamina_static_library(lamina_runtime_archive ROOT lamina_runtime_objects)
exports_test(archive_exports_only_the_c_abi lamina_archive "^lamina_[a-z0-9_]+$" 50)
add_executable(static_consumer ${CMAKE_CURRENT_LIST_DIR}/consumer/consumer.cpp)
target_include_directories(static_consumer PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_link_options(static_consumer PRIVATE -Wl,--undefined=lamina_runtime_version)
target_link_libraries(static_consumer PRIVATE lamina_archive lamina_runtime_archive)
add_test(NAME package.archives_are_enough_for_a_program COMMAND static_consumer)

# The HTTP server of examples/serve.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
find_path(HTTPLIB_INCLUDE_DIR httplib.h)
find_library(HTTPLIB_LIBRARY cpp-httplib)
if(HTTPLIB_INCLUDE_DIR AND LAMINA_BUILD_TOOLS)
  add_executable(example_serve ${PROJECT_SOURCE_DIR}/examples/serve/serve.cpp)
  target_include_directories(example_serve SYSTEM PRIVATE ${HTTPLIB_INCLUDE_DIR})
  target_link_libraries(example_serve PRIVATE lamina_runtime lamina_warnings Threads::Threads
    $<$<BOOL:${HTTPLIB_LIBRARY}>:${HTTPLIB_LIBRARY}>)
  set(may_grow 2)
  if(CMAKE_CXX_FLAGS MATCHES sanitize)
    set(may_grow 1000)  # freed memory is kept
  endif()
  add_test(NAME package.server_answers_under_load
    COMMAND ${CMAKE_COMMAND} -DMAY_GROW=${may_grow} -DPYTHON=${Python3_EXECUTABLE} -DEXAMPLE_DIR=${PROJECT_SOURCE_DIR}/examples/serve
            -DDRIVER=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/lamina -DSERVER=$<TARGET_FILE:example_serve>
            -DWORK_DIR=${CMAKE_CURRENT_BINARY_DIR}/server -P ${CMAKE_CURRENT_LIST_DIR}/check_server.cmake)
else()
  add_test(NAME package.server_answers_under_load
    COMMAND sh -c "echo 'skipped: httplib.h is not there (scripts/setup brings libcpp-httplib-dev)'; exit 77")
  set_tests_properties(package.server_answers_under_load PROPERTIES SKIP_RETURN_CODE 77)
endif()

# The run paths of programs and libraries in the build tree, and how the loader interprets them.
set(loaded $<TARGET_FILE:lamina> $<TARGET_FILE:lamina_infiniop> $<TARGET_FILE:lamina_onednn_primitive> $<TARGET_FILE:test_api>)
set(started $<TARGET_FILE:readme_example>)
if(TARGET lamina_onednn_graph)
  list(APPEND loaded $<TARGET_FILE:lamina_onednn_graph>)
endif()
if(LAMINA_BUILD_TOOLS)
  list(APPEND loaded ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/lamina)
  list(APPEND started ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/lamina)
endif()
add_test(NAME package.nothing_is_loaded_from_the_working_directory
  COMMAND ${CMAKE_COMMAND} "-DFILES=${loaded}" "-DPROGRAMS=${started}" -DREADELF=${CMAKE_READELF}
          -DABI_VERSION=${lamina_abi_version} -DWORK_DIR=${CMAKE_CURRENT_BINARY_DIR}/planted -P ${CMAKE_CURRENT_LIST_DIR}/check_run_paths.cmake)

# Compiles and runs the README's C++ block unchanged, so the README cannot contain code that fails.
set(readme ${PROJECT_SOURCE_DIR}/README.md)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${readme})
file(READ ${readme} readme_text)
if(NOT readme_text MATCHES "```cpp\n([^`]*)```")
  message(FATAL_ERROR "README.md has no C++ block to test")
endif()
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/readme_example.cpp CONTENT "${CMAKE_MATCH_1}" @ONLY)
add_executable(readme_example ${CMAKE_CURRENT_BINARY_DIR}/readme_example.cpp)
target_link_libraries(readme_example PRIVATE lamina lamina_warnings)
add_test(NAME package.readme_example COMMAND readme_example)
