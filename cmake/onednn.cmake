# oneDNN 3.2 or newer, the system's or the one that scripts/setup unpacked into .deps/onednn. The CPU backend runs library ops
# with it; benchmarks and tests compare with it.
option(LAMINA_ONEDNN "Run convolutions and matrix products of 16 and 8 bits on the CPU by oneDNN" ON)
find_package(dnnl 3.2 CONFIG QUIET PATHS ${PROJECT_SOURCE_DIR}/.deps/onednn)
if(TARGET DNNL::dnnl)
  message(STATUS "oneDNN ${dnnl_VERSION}: ${dnnl_DIR}")
elseif(LAMINA_ONEDNN)
  message(FATAL_ERROR "oneDNN 3.2 or newer is not there. scripts/setup installs it. With -DLAMINA_ONEDNN=OFF lamina is built without "
    "it, and generated code runs what oneDNN would run")
else()
  message(STATUS "oneDNN: not found (scripts/setup installs it); comparisons with it are left out")
endif()
