// Reports of failed calls: if verbosity requests it, a line on the standard output with lamina's error sentence, which
// oneDNN's interface cannot return.
//
//     lamina,error,dnnl_graph_add_op,invalid_graph_op,Clamp "op": ...
#pragma once

#include <oneapi/dnnl/dnnl_common_types.h>

namespace onednn_graph {

bool refusals_are_told();
void set_refusals_told(bool told);
// Clears the error sentence before a call, so that it cannot be mistaken for that call's reason.
void forget_reason();
void tell_refusal(const char* function, dnnl_status_t status);

}  // namespace onednn_graph
