# lamina_static_library(target ROOT module LINKS libraries): one archive with all code that `module` needs. It contains one
# object, linked from the modules, in which symbols that are not part of the C ABI are local: they can not meet those of the
# program. LINKS: what a program links besides.

# Appends the modules of `module`, each after those that need it, to `result`.
function(lamina_modules_below result module)
  set(found ${${result}})
  list(REMOVE_ITEM found ${module})
  list(APPEND found ${module})
  get_target_property(links ${module} LINK_LIBRARIES)
  foreach(link IN LISTS links)
    if(link MATCHES "^lamina_" AND TARGET ${link})
      get_target_property(type ${link} TYPE)
      if(type STREQUAL "STATIC_LIBRARY")
        lamina_modules_below(found ${link})
      endif()
    endif()
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

function(lamina_static_library target)
  cmake_parse_arguments(STATIC "" "ROOT" "LINKS" ${ARGN})
  set(modules "")
  lamina_modules_below(modules ${STATIC_ROOT})
  list(REMOVE_ITEM modules ${STATIC_ROOT})
  list(TRANSFORM modules REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE archives)
  set(object ${PROJECT_BINARY_DIR}/${target}.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${CMAKE_CXX_COMPILER} -r -nostdlib -Wl,--force-group-allocation
            -Wl,--whole-archive $<TARGET_FILE:${STATIC_ROOT}> -Wl,--no-whole-archive
            -Wl,--start-group ${archives} -Wl,--end-group -o ${object}
    # objcopy makes no unique symbol local (those of inline variables), so they become weak first.
    COMMAND ${CMAKE_OBJCOPY} --wildcard --weaken-symbol=_Z* ${object}
    COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=lamina_* ${object}
    DEPENDS ${STATIC_ROOT} ${modules} COMMENT "Linking the code of ${target}" VERBATIM)
  add_library(${target} STATIC ${object})
  set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${target} INTERFACE ${STATIC_LINKS} ${OpenMP_CXX_LIB_NAMES} ${CMAKE_DL_LIBS} stdc++ m)
endfunction()

set(lamina_static_links ${lamina_llvm})
if(LAMINA_ONEDNN)
  list(APPEND lamina_static_links DNNL::dnnl)
endif()
# What a program links besides the static archives, for pkg-config.
string(REPLACE ";" " -l" lamina_static_flags "-l${OpenMP_CXX_LIB_NAMES};${CMAKE_DL_LIBS};stdc++;m")
string(REPLACE ";" " -l" lamina_llvm_flags "-L${LLVM_LIBRARY_DIR} -l${lamina_llvm}")
if(LAMINA_ONEDNN)
  string(APPEND lamina_llvm_flags " -ldnnl")
endif()
