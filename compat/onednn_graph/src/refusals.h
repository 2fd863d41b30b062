// What is told of calls that are refused: where verbosity asks for it, a line on the standard output with lamina's sentence,
// which a client of oneDNN cannot ask for.
//
//     lamina,error,dnnl_graph_add_op,invalid_graph_op,Clamp "op": ...
#pragma once

#include <oneapi/dnnl/dnnl_common_types.h>

namespace onednn_graph {

bool refusals_are_told();
void set_refusals_told(bool told);
// Before a call: what lamina said earlier is no reason of this one.
void forget_reason();
void tell_refusal(const char* function, dnnl_status_t status);

}  // namespace onednn_graph
