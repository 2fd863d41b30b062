# Run paths to libraries outside the system folders, equal in the build tree and after installation. By default CMake links
# one set of paths and replaces it on installation. It pads the first set with separators to reserve space for the second, and
# a trailing separator is an empty entry, which the loader interprets as the working directory.
# LLVM's folder, if the loader does not search it.
set(lamina_llvm_run_path "")
if(NOT LAMINA_STATIC_LLVM)
  get_target_property(llvm_file LLVM LOCATION)
  file(REAL_PATH ${llvm_file} llvm_file)
  get_filename_component(llvm_folder ${llvm_file} DIRECTORY)
  if(NOT llvm_folder IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
    set(lamina_llvm_run_path ${llvm_folder})
  endif()
endif()

# A oneDNN outside the system folders. It is installed in a folder of lamina's own, so that it is not found by other programs;
# the build tree has a link to it in a folder of that name.
set(lamina_own_onednn "")
if(LAMINA_ONEDNN)
  get_target_property(onednn_file DNNL::dnnl LOCATION)
  get_filename_component(onednn_folder ${onednn_file} DIRECTORY)
  if(NOT onednn_folder IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
    file(REAL_PATH ${onednn_file} lamina_own_onednn)
    # What is installed of it has no symbol table.
    set(lamina_installed_onednn ${PROJECT_BINARY_DIR}/installed_onednn/libdnnl.so.${dnnl_VERSION_MAJOR})
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/installed_onednn)
    execute_process(COMMAND ${CMAKE_STRIP} -o ${lamina_installed_onednn} ${lamina_own_onednn} COMMAND_ERROR_IS_FATAL ANY)
  endif()
endif()

# lamina_run_paths(target FROM folder): `folder` is the folder of the libraries relative to the folder of the target, or "".
# It must be correct in the build tree, too. Libraries in a system folder, as those of a distribution's packages, need no path.
function(lamina_run_paths target)
  cmake_parse_arguments(PATHS "" "FROM" "" ${ARGN})
  set(own "$ORIGIN")
  if(PATHS_FROM)
    set(own "$ORIGIN/${PATHS_FROM}")
  endif()
  set(paths ${own} ${lamina_llvm_run_path})
  if(CMAKE_INSTALL_FULL_LIBDIR IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
    set(paths ${lamina_llvm_run_path})
    set(own ${CMAKE_INSTALL_FULL_LIBDIR})
  endif()
  if(lamina_own_onednn)
    cmake_path(RELATIVE_PATH lamina_private_lib_dir BASE_DIRECTORY ${CMAKE_INSTALL_LIBDIR} OUTPUT_VARIABLE private)
    list(APPEND paths ${own}/${private})
    get_target_property(type ${target} TYPE)
    set(folder ${PROJECT_BINARY_DIR})
    if(type STREQUAL "EXECUTABLE")
      set(folder ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
    endif()
    file(REAL_PATH "${PATHS_FROM}" folder BASE_DIRECTORY ${folder})
    file(MAKE_DIRECTORY ${folder}/${private})
    file(CREATE_LINK ${lamina_own_onednn} ${folder}/${private}/libdnnl.so.${dnnl_VERSION_MAJOR} SYMBOLIC)
  endif()
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${paths}")
endfunction()
