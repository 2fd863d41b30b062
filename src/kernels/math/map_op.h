// The names of the kernel IR's maps.
#pragma once

namespace lamina::kernel {

// map_ops.def lists what each map computes, and the types that it accepts.
enum class MapOp {
#define LAMINA_MAP_OP(name, operands, takes, gives, cost) name,
#include "kernels/math/map_ops.def"
};

}  // namespace lamina::kernel
