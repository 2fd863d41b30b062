#include "backends/cpu/dispatch/primitive.h"

#include "interface/status.h"

namespace lamina::cpu {

void Primitive::write(ProgramWriter&) const {
  throw Error(Status::unimplemented, join("a step by ", name(), " cannot be exported"));
}

}  // namespace lamina::cpu
