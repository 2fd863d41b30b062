// The real libdnnl, if it is loaded beside this library. It creates engines and streams, so that its primitives and these
// graphs share them.
#pragma once

#include "onednn.h"

namespace onednn_graph {

// The functions used from it, without the prefix `dnnl_`.
#define ONEDNN_REAL_FUNCTIONS(FUNCTION) \
  FUNCTION(engine_get_count)            \
  FUNCTION(engine_create)               \
  FUNCTION(engine_get_kind)             \
  FUNCTION(engine_destroy)              \
  FUNCTION(stream_create)               \
  FUNCTION(stream_get_engine)           \
  FUNCTION(stream_wait)                 \
  FUNCTION(stream_destroy)              \
  FUNCTION(get_default_fpmath_mode)     \
  FUNCTION(set_default_fpmath_mode)     \
  FUNCTION(set_verbose)                 \
  FUNCTION(version)

struct RealLibrary {
#define ONEDNN_MEMBER(name) decltype(&dnnl_##name) name = nullptr;
  ONEDNN_REAL_FUNCTIONS(ONEDNN_MEMBER)
#undef ONEDNN_MEMBER
};

// Null as long as no libdnnl is loaded. Once found, the library does not change.
const RealLibrary* real_library();

}  // namespace onednn_graph
