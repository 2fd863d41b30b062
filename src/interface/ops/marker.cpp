// Ops without mathematics: End marks a graph output, Wildcard represents an op that lamina does not know.
#include "interface/ops/parts.h"

namespace lamina {

using namespace parts;

}  // namespace lamina

LAMINA_SCHEMA(End) {
  return {.kind = OpKind::End,
          .op_class = OpClass::marker,
          .formula = "no computation: src is an output of the graph",
          .inputs = {port("src", "any")},
          .outputs = {},
          .traits = {.copies = true}};
}

LAMINA_SCHEMA(Wildcard) {
  return {.kind = OpKind::Wildcard,
          .op_class = OpClass::opaque,
          .formula = "opaque",
          .inputs = {{.name = "src", .type = "any", .presence = Presence::variadic, .meaning = "any number of tensors"}},
          .outputs = {{.name = "dst", .type = "any", .presence = Presence::variadic, .meaning = "any number of tensors"}}};
}
