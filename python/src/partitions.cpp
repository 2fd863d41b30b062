// Bindings of Partition, CompiledPartition and Executable, and of explanations.
#include <cstddef>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "executable.h"
#include "graph/text.h"
#include "names.h"

namespace lamina::python {
namespace {

using graph::logical_tensor;

// Calls the Python progress function during a compilation, which runs without the GIL. An exception cancels the compilation
// and is rethrown after it has ended.
struct Progress {
  nb::handle call;
  std::exception_ptr thrown = nullptr;

  static int tell(void* user, size_t done, size_t total, const char* name) {
    Progress& self = *static_cast<Progress*>(user);
    const nb::gil_scoped_acquire held;
    try {
      return nb::cast<bool>(nb::bool_(self.call(done, total, name))) ? 1 : 0;
    } catch (...) {
      self.thrown = std::current_exception();
      return 1;
    }
  }
};

graph::compiled_partition compile(const graph::partition& self, const std::vector<logical_tensor>& inputs,
                                  const std::vector<logical_tensor>& outputs, const nb::object& progress) {
  Progress told{progress};
  if (!progress.is_none()) error::wrap_c_api(lamina_set_compile_progress(&Progress::tell, &told));
  const auto ended = [&](const std::exception_ptr& failed) {
    if (!progress.is_none()) lamina_set_compile_progress(nullptr, nullptr);
    if (told.thrown != nullptr) std::rethrow_exception(told.thrown);
    if (failed != nullptr) std::rethrow_exception(failed);
  };
  std::optional<graph::compiled_partition> made;
  std::exception_ptr failed = nullptr;
  {
    const nb::gil_scoped_release others_may_run;
    try {
      made = self.compile(inputs, outputs, cpu_engine());
    } catch (...) {
      failed = std::current_exception();
    }
  }
  ended(failed);
  return *std::move(made);
}

const std::map<std::string, lamina_graph_explanation_t> kFormats = {
    {"json", lamina_graph_explanation_json}, {"html", lamina_graph_explanation_html}, {"dot", lamina_graph_explanation_dot}};

std::string explain(const std::vector<graph::partition>& partitions,
                    const std::vector<std::optional<graph::compiled_partition>>& compiled, bool compile_them,
                    const std::string& format, const std::string& title, const std::optional<std::string>& report) {
  const lamina_graph_explanation_t wanted = chosen(format, kFormats, "format");
  if (!compiled.empty() && compiled.size() != partitions.size())
    throw error(lamina_invalid_arguments, std::to_string(compiled.size()) +
                                              " compiled partitions are given, allowed is none or " +
                                              std::to_string(partitions.size()));
  std::vector<const_lamina_graph_partition_t> given;
  std::vector<const_lamina_graph_compiled_partition_t> codes;
  for (const graph::partition& partition : partitions) given.push_back(partition.get());
  for (const auto& code : compiled) codes.push_back(code ? code->get() : nullptr);
  const nb::gil_scoped_release others_may_run;
  return text_of([&](lamina_text_f write, void* user) {
    return lamina_graph_partitions_explain(given.size(), given.data(), codes.empty() ? nullptr : codes.data(),
                                           compile_them ? cpu_engine().get() : nullptr, wanted, title.c_str(),
                                           report ? report->c_str() : nullptr, write, user);
  });
}

std::vector<Step> steps_from(nb::list steps) {
  std::vector<Step> made;
  for (const nb::handle step : steps)
    made.push_back({nb::cast<graph::compiled_partition>(step[0]), nb::cast<std::vector<size_t>>(step[1]),
                    nb::cast<std::vector<size_t>>(step[2])});
  return made;
}

std::vector<Input> inputs_from(nb::list inputs) {
  std::vector<Input> given;
  for (const nb::handle input : inputs)
    given.push_back({nb::cast<logical_tensor>(input[0]), nb::cast<logical_tensor>(input[1]), nb::cast<size_t>(input[2])});
  return given;
}

std::vector<Constant> constants_from(nb::list constants) {
  std::vector<Constant> scalars;
  for (const nb::handle constant : constants) {
    const nb::bytes bytes = nb::cast<nb::bytes>(constant[1]);
    scalars.push_back({nb::cast<logical_tensor>(constant[0]), std::string(bytes.c_str(), bytes.size())});
  }
  return scalars;
}

}  // namespace

void bind_partition(nb::module_& m) {
  nb::class_<graph::partition>(m, "Partition", "A group of ops of a graph that is compiled and executed as one unit.")
      .def_prop_ro("id", &graph::partition::get_id, "The id, unique in the process.")
      .def_prop_ro("op_ids", &graph::partition::get_ops,
                   "Ids of the graph's ops in the partition, including ops that a pass has merged into others.")
      .def_prop_ro("is_supported", &graph::partition::is_supported,
                   "False if no kernel can run the partition; reasons_json has the reason.")
      .def_prop_ro("inputs", &graph::partition::get_input_ports,
                   "The tensors that the partition reads, in order of first use, with the shapes that the graph knows.")
      .def_prop_ro("outputs", &graph::partition::get_output_ports,
                   "The tensors that the partition produces for others, in the order of its ops.")
      .def("compile", &compile, nb::arg("inputs"), nb::arg("outputs"), nb::arg("progress").none() = nb::none(),
           "Compiles the partition for these tensors, which are matched to ports by id, in any order.\n\n"
           "inputs: with known shapes; tensors that match no port are ignored. outputs: shapes and strides may be\n"
           "unknown; lamina infers them, and the layout is then dense. progress: called as progress(done, total,\n"
           "name) before each of `total` steps and at the end; a true result cancels the compilation. It is not\n"
           "called if the code is in the cache. The GIL is released meanwhile.\n"
           "Raises lamina.Error for a port without its tensor, a tensor that contradicts the graph, contradicting\n"
           "shapes, an op that cannot run, or a cancelled compilation; and any exception that progress raises.")
      .def(
          "reasons_json", [](const graph::partition& self) { return text_of(self, &lamina_graph_partition_write_reasons); },
          "Returns JSON: \"supported\", \"unsupported_reason\" if it is not supported, and \"ops\" with \"id\", \"kind\",\n"
          "\"name\" and \"reasons\" (a stable \"code\", which scripts may use, and \"text\").");
}

void bind_compiled_partition(nb::module_& m) {
  nb::class_<graph::compiled_partition>(m, "CompiledPartition", "The code of one partition, with all shapes and strides known.")
      .def("tensor", &graph::compiled_partition::query_logical_tensor, nb::arg("tensor_id"),
           "Returns the tensor of a port with its final shape and strides (in elements). Raises lamina.Error for an\n"
           "id that is not a port.")
      .def_prop_ro("inplace_ports", &graph::compiled_partition::get_inplace_ports,
                   "Pairs (input id, output id) that may share memory, each port once at most.")
      .def("may_share", &graph::compiled_partition::may_share, nb::arg("input_id"), nb::arg("output_id"),
           "Returns whether this input and this output may share memory. Raises lamina.Error for an id that is not a\n"
           "port.")
      .def(
          "info_json",
          [](const graph::compiled_partition& self) { return text_of(self, &lamina_graph_compiled_partition_write_info); },
          "Returns JSON: \"backend\", \"kernels\" (names), \"schedules\", \"required_bytes\" (inputs and outputs, each\n"
          "once), \"moved_bytes\" (read from and written to main memory), \"workspace_bytes\", \"constant_bytes\"\n"
          "(kept of constant inputs), \"compile_ms\", \"from_cache\".");
}

void bind_executable(nb::module_& m) {
  nb::class_<Executable>(m, "Executable", "Compiled partitions that run in sequence in one call.")
      .def(
          "__init__",
          [](Executable* self, nb::list steps, nb::list inputs, const std::vector<logical_tensor>& outputs,
             const std::vector<logical_tensor>& inner, nb::list constants) {
            // Braces evaluate arguments from left to right, so that the first mismatch is the one reported.
            new (self) Executable{steps_from(steps), inputs_from(inputs), outputs, inner, constants_from(constants)};
          },
          nb::arg("steps"), nb::arg("inputs"), nb::arg("outputs"), nb::arg("inner"), nb::arg("constants"),
          "Creates an executable.\n\n"
          "steps: (CompiledPartition, slots of its inputs, slots of its outputs). Slots number the inputs, then the\n"
          "outputs, the inner tensors and the constants. inputs: (tensor that the steps read, tensor that the\n"
          "caller passes, offset in bytes of the first in the second). outputs: tensors that are returned. inner:\n"
          "tensors between steps, in memory that the executable allocates. constants: (scalar, its bytes).\n"
          "Raises lamina.Error for a slot that does not exist.")
      .def(
          "__call__", [](Executable& self, nb::handle inputs, nb::handle outputs) { self.run(inputs, outputs); },
          nb::arg("inputs"), nb::arg("outputs"),
          "Runs the steps. inputs, outputs: sequences of objects that share their memory, in order; outputs are\n"
          "written to.\n\n"
          "The GIL is released meanwhile. Raises lamina.Error with the object that does not match and what is\n"
          "allowed.")
      .def("keep", &Executable::keep, nb::arg("input"), nb::arg("object"),
           "Makes this object the input of that number, and keeps it: calls pass the other inputs only. Its memory must\n"
           "stay where it is. Raises lamina.Error for an object that does not match, an input that does not exist, and\n"
           "one that is kept already.")
      .def_prop_ro("inner_bytes", &Executable::inner_bytes,
                   "The size in bytes of the tensors between steps, for one call at a time.")
      .def_prop_ro("step_count", &Executable::step_count, "The number of compiled partitions that a call executes.");
}

void bind_explain(nb::module_& m) {
  m.def("explain", &explain, nb::arg("partitions"), nb::arg("compiled"), nb::arg("compile"), nb::arg("format"),
        nb::arg("title") = "", nb::arg("report").none() = nb::none(),
        "Explains partitions of one graph as a text.\n\n"
        "compiled: [], or a CompiledPartition or None for each. report: its text. lamina.Explanation describes the\n"
        "other arguments.\n"
        "Raises lamina.Error for no partitions, partitions of two graphs, or a report of other partitions.");
}

}  // namespace lamina::python
