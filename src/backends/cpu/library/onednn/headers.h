// The only file that includes oneDNN's headers, so that their warnings are suppressed in one place and a new version affects
// one file. Only files of this module include it.
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
