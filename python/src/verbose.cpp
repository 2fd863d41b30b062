// set_verbose: the lines that the library writes about what it does, given to a function of Python.
#include <cstddef>

#include "bindings.h"
#include "graph/lamina.hpp"
#include "graph/text.h"

namespace lamina::python {
namespace {

// Lines of lamina_set_verbose_output go to a Python function that is kept as long as it may be called: until another takes its
// place, and then for ever, since a line may be on its way.
void tell_line(void* user, const char* line, size_t length) {
  const nb::gil_scoped_acquire held;
  try {
    nb::handle(static_cast<PyObject*>(user))(nb::str(line, length));
  } catch (nb::python_error& failed) {
    failed.discard_as_unraisable("a function that lamina tells what it does");
  }
}

void set_verbose(int level, nb::object write) {
  PyObject* const kept = write.is_none() ? nullptr : write.release().ptr();
  const nb::gil_scoped_release a_line_may_be_written;
  error::wrap_c_api(lamina_set_verbose_output(level, kept == nullptr ? nullptr : &tell_line, kept));
}

}  // namespace

void bind_verbose(nb::module_& m) {
  m.def("set_verbose", &set_verbose, nb::arg("level"), nb::arg("write").none() = nb::none(),
        "Has `write` called with a line per compilation and execution (level 1), per pass too (2), or nothing (0); -1: what\n"
        "LAMINA_VERBOSE says. write: any thread calls it, one at a time; None: lines go to stdout. Raises lamina.Error for "
        "another level.");
}

}  // namespace lamina::python
