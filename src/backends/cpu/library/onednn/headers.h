// The fence around oneDNN: the only file that includes its headers, so that their warnings stay outside and a change of its
// version is one file to look at. Only files of this module include it.
#pragma once

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif

#include <oneapi/dnnl/dnnl.hpp>

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
