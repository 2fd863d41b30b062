# Each header is compiled by itself, with the options of the target that it belongs to, so that nobody has to include another one
# first. What precompiled headers hide is scripts/check_includes.py's to find.

# One source for each header below FOLDER, which includes it and nothing else.
function(lamina_header_sources result folder)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${folder} ${folder}/*.h ${folder}/*.hpp)
  file(RELATIVE_PATH place ${PROJECT_SOURCE_DIR} ${folder})
  set(sources "")
  foreach(header IN LISTS headers)
    set(source ${PROJECT_BINARY_DIR}/stand_alone_headers/${place}/${header}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${folder}/${header}\"\n")
    list(APPEND sources ${source})
  endforeach()
  set(${result} ${sources} PARENT_SCOPE)
endfunction()

# lamina_stand_alone_headers(target FOLDER): compiles them as a part of `all` where tests are built.
function(lamina_stand_alone_headers target folder)
  if(NOT LAMINA_BUILD_TESTS)
    return()
  endif()
  lamina_header_sources(sources ${folder})
  if(NOT sources)
    return()
  endif()
  add_library(${target}_headers OBJECT ${sources})
  target_link_libraries(${target}_headers PRIVATE ${target} lamina_warnings)
  get_target_property(precompiled ${target} PRECOMPILE_HEADERS)
  if(precompiled)
    target_precompile_headers(${target}_headers REUSE_FROM ${target})
  endif()
endfunction()
