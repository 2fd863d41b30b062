# What a user gets: the exported symbols, the installed package, and the example of the README.
add_test(NAME package.exports_only_the_c_abi
  COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DLIBRARY=$<TARGET_FILE:lamina> -P ${CMAKE_CURRENT_LIST_DIR}/check_exports.cmake)

add_test(NAME package.installed_package_is_found_and_works
  COMMAND ${CMAKE_COMMAND} -DBUILD_DIR=${PROJECT_BINARY_DIR} -DWORK_DIR=${CMAKE_CURRENT_BINARY_DIR}/package
          -DCONSUMER_DIR=${CMAKE_CURRENT_LIST_DIR}/consumer -DCXX=${CMAKE_CXX_COMPILER} -DCXX_FLAGS=${CMAKE_CXX_FLAGS}
          -P ${CMAKE_CURRENT_LIST_DIR}/check_package.cmake)

# The README's C++ block, word for word, as a program: it cannot drift from what works.
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
