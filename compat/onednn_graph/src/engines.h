// Maps a client's engines and streams to those that lamina runs on.
#pragma once

#include <graph/lamina.h>

#include "onednn.h"

namespace onednn_graph {

dnnl_status_t kind_of(dnnl_engine_t engine, dnnl_engine_kind_t& kind);
dnnl_status_t engine_of(const_dnnl_stream_t stream, dnnl_engine_t& engine);
dnnl_status_t wait_for(dnnl_stream_t stream);

// The lamina engine for a client's engine, and a stream of it. lamina's CPU streams have no state, so one stream serves all
// streams of the client, on any thread.
struct OurEngine {
  lamina_engine_t engine = nullptr;
  lamina_stream_t stream = nullptr;
};
// The result is valid as long as the engine. Returns unimplemented for an engine of another device than the CPU.
dnnl_status_t lamina_engine_of(dnnl_engine_t engine, OurEngine& ours);

}  // namespace onednn_graph
