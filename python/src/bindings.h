// The functions that add each file's bindings to the module lamina._core, in the order of their calls.
#pragma once

#include <nanobind/nanobind.h>
// Converters of standard library types. Every file must include them: without one, nanobind treats the type as an unbound
// class, which fails only when the function is called.
#include <nanobind/stl/map.h>
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
void bind_profile(nb::module_& m);             // profiles.cpp
void bind_verbose(nb::module_& m);             // verbose.cpp
void bind_fingerprints(nb::module_& m);        // fingerprints.cpp
void bind_draws(nb::module_& m);               // draws.cpp
void bind_export(nb::module_& m);              // models.cpp

}  // namespace lamina::python
