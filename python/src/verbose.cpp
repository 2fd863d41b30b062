// set_verbose: passes the library's verbose lines to a Python function.
#include <cstddef>

#include "bindings.h"
#include "graph/lamina.hpp"
#include "graph/text.h"

namespace lamina::python {
namespace {

// Passes lines of lamina_set_verbose_output to a Python function. The function is never released: after it is replaced,
// another thread may still be calling it.
void tell_line(void* user, const char* line, size_t length) {
  const nb::gil_scoped_acquire held;
  try {
    nb::handle(static_cast<PyObject*>(user))(nb::str(line, length));
  } catch (nb::python_error& failed) {
    failed.discard_as_unraisable("the output function of lamina.set_verbose");
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
        "Calls `write` with a line per compilation and execution (level 1), also per pass (2), or never (0);\n"
        "level -1 follows LAMINA_VERBOSE. write: may be called on any thread, one at a time; None: lines go to\n"
        "stdout. Raises lamina.Error for another level.");
}

}  // namespace lamina::python
