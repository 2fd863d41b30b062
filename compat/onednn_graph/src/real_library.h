// The real libdnnl, beside which this library stands: engines and streams come from it, so that its primitives and these graphs
// share them.
#pragma once

#include "onednn.h"

namespace onednn_graph {

struct RealLibrary {
  decltype(&dnnl_engine_get_count) engine_get_count = nullptr;
  decltype(&dnnl_engine_create) engine_create = nullptr;
  decltype(&dnnl_engine_get_kind) engine_get_kind = nullptr;
  decltype(&dnnl_engine_destroy) engine_destroy = nullptr;
  decltype(&dnnl_stream_create) stream_create = nullptr;
  decltype(&dnnl_stream_get_engine) stream_get_engine = nullptr;
  decltype(&dnnl_stream_wait) stream_wait = nullptr;
  decltype(&dnnl_stream_destroy) stream_destroy = nullptr;
  decltype(&dnnl_get_default_fpmath_mode) get_default_fpmath_mode = nullptr;
  decltype(&dnnl_set_default_fpmath_mode) set_default_fpmath_mode = nullptr;
  decltype(&dnnl_set_verbose) set_verbose = nullptr;
  decltype(&dnnl_version) version = nullptr;
};

// Null as long as none is loaded. One that is found stays the one.
const RealLibrary* real_library();

}  // namespace onednn_graph
