// What each file puts into the module lamina._core, in the order in which the module takes it.
#pragma once

#include <nanobind/nanobind.h>
// How types of the standard library become Python's. Here, so that no file goes without one: nanobind would take such a type
// for a class of ours, and refuse it only when it is called.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace lamina::python {

namespace nb = nanobind;

void bind_logical_tensor(nb::module_& m);      // logical_tensors.cpp
void bind_op(nb::module_& m);                  // graphs.cpp
void bind_graph(nb::module_& m);               // graphs.cpp
void bind_partition(nb::module_& m);           // partitions.cpp
void bind_compiled_partition(nb::module_& m);  // partitions.cpp
void bind_executable(nb::module_& m);          // partitions.cpp
void bind_explain(nb::module_& m);             // partitions.cpp
void bind_verbose(nb::module_& m);             // verbose.cpp

}  // namespace lamina::python
