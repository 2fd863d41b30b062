// Profile: the times of the steps of a thread's executions.
#include "profiles.h"

#include <map>
#include <memory>
#include <string>

#include "bindings.h"
#include "executable.h"
#include "graph/text.h"
#include "names.h"

namespace lamina::python {
namespace {

thread_local std::shared_ptr<const stream> of_this_thread;

class Profile {
 public:
  Profile() = default;
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  void start() {
    if (of_this_thread != nullptr)
      throw error(lamina_invalid_arguments, "this thread is already being profiled, allowed is one profile at a time");
    of_this_thread = stream_;
  }
  void stop() {
    if (of_this_thread == stream_) of_this_thread = nullptr;
  }
  std::string text(const std::string& format, const std::string& title) const {
    static const std::map<std::string, lamina_profile_format_t> formats = {
        {"json", lamina_profile_json}, {"table", lamina_profile_table}, {"trace", lamina_profile_trace}};
    const lamina_profile_format_t wanted = chosen(format, formats, "format");
    const nb::gil_scoped_release others_may_run;
    return text_of([&](lamina_text_f write, void* user) {
      return lamina_stream_write_profile(stream_->get(), wanted, title.c_str(), write, user);
    });
  }

 private:
  // A thread that still measures keeps its stream.
  std::shared_ptr<const stream> stream_ = std::make_shared<const stream>(cpu_engine(), stream::flags::profiling);
};

}  // namespace

const stream* profiling_stream() { return of_this_thread.get(); }

void bind_profile(nb::module_& m) {
  nb::class_<Profile>(m, "Profile", "The times of the steps of all compiled code that a thread runs.")
      .def(nb::init<>(), "Creates a profile without times.")
      .def("start", &Profile::start,
           "Measures what this thread runs from now on. Raises lamina.Error if it is being profiled already.")
      .def("stop", &Profile::stop, "Ends measuring. No effect if this thread is not being measured by this profile.")
      .def("text", &Profile::text, nb::arg("format"), nb::arg("title") = "",
           "Returns the profile as a text. format: json, table or trace (Chrome's trace event format).");
}

}  // namespace lamina::python
