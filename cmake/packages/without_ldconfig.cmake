# Removes the scripts that CPack adds to packages with libraries: they call ldconfig, as the trigger in the package already
# does. CPack runs this after it has written the packages, and has no option for it.
foreach(package IN LISTS CPACK_PACKAGE_FILES)
  get_filename_component(folder ${package} NAME)
  set(folder ${CPACK_TEMPORARY_DIRECTORY}/${folder}.files)
  file(REMOVE_RECURSE ${folder})
  execute_process(COMMAND dpkg-deb --raw-extract ${package} ${folder} COMMAND_ERROR_IS_FATAL ANY)
  if(NOT EXISTS ${folder}/DEBIAN/postrm)
    continue()
  endif()
  file(REMOVE ${folder}/DEBIAN/postinst ${folder}/DEBIAN/postrm)
  execute_process(COMMAND dpkg-deb --root-owner-group -Zxz --build ${folder} ${package} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endforeach()
