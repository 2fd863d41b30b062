// Whose an engine or a stream is, and what lamina runs on in its stead.
#pragma once

#include <graph/lamina.h>

#include "onednn.h"

namespace onednn_graph {

dnnl_status_t kind_of(dnnl_engine_t engine, dnnl_engine_kind_t& kind);
dnnl_status_t engine_of(const_dnnl_stream_t stream, dnnl_engine_t& engine);
dnnl_status_t wait_for(dnnl_stream_t stream);

// lamina's engine in the place of a client's, and a stream of it: lamina's streams of the CPU hold nothing of what runs on
// them, so that one serves all of the client's streams, on any threads.
struct OurEngine {
  lamina_engine_t engine = nullptr;
  lamina_stream_t stream = nullptr;
};
// Live as long as the engine, or for ever. unimplemented for an engine that is not of the CPU.
dnnl_status_t lamina_engine_of(dnnl_engine_t engine, OurEngine& ours);

}  // namespace onednn_graph
