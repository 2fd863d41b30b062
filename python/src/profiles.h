// Which stream executions of the calling thread use while they are profiled.
#pragma once

#include "graph/lamina.hpp"

namespace lamina::python {

const stream* profiling_stream();  // null: this thread is not being profiled

}  // namespace lamina::python
