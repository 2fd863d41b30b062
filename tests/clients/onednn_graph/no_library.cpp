// Replaces the search for the real libdnnl: there is none, so engines and streams are the drop-in's own.
#include "real_library.h"

namespace onednn_graph {

const RealLibrary* real_library() { return nullptr; }

}  // namespace onednn_graph
