# oneDNN 3.2 or newer, where there is one: the system's, or the one that scripts/setup unpacked into .deps/onednn.
# Optional: benchmarks that compare with it are left out without it.
find_package(dnnl 3.2 CONFIG QUIET PATHS ${PROJECT_SOURCE_DIR}/.deps/onednn)
if(TARGET DNNL::dnnl)
  message(STATUS "oneDNN ${dnnl_VERSION}: ${dnnl_DIR}")
else()
  message(STATUS "oneDNN: not found (scripts/setup installs it); comparisons with it are left out")
endif()
