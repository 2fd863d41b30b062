// `--set-shape`, `--set-attr` and `--set-dtype` with arbitrary text, on a dump with all that they can name. Each line is an
// option; its first letter selects the kind.
#include "lamina/overrides.h"
#include "fuzz/fuzz_input.h"
#include "interface/json/json.h"
#include "interface/status.h"

namespace {

constexpr const char* kDump =
    R"({"version":"3.2.0","engine_kind":"cpu","fpmath_mode":"strict","input_ports":[],"output_ports":[],"graph":[
{"id":0,"name":"norm","kind":"LayerNorm","attrs":{"epsilon":{"type":"f32","value":0.00001},"keep_stats":{"type":"bool","value":0},
"begin_norm_axis":{"type":"s64","value":-1}},"inputs":[
{"id":0,"dtype":"f32","shape":[4,8],"stride":[8,1],"layout_type":"strided","property_type":"undef"},
{"id":1,"dtype":"f32","shape":[8],"stride":[1],"layout_type":"strided","property_type":"undef"},
{"id":2,"dtype":"f32","shape":[8],"stride":[1],"layout_type":"strided","property_type":"undef"}],"outputs":[
{"id":3,"dtype":"f32","shape":[4,8],"stride":[8,1],"layout_type":"strided","property_type":"undef"}]},
{"id":1,"name":"scaled","kind":"Quantize","attrs":{"scales":{"type":"f32[]","value":[0.5]},"zps":{"type":"s64[]","value":[0]},
"axis":{"type":"s64","value":1},"qtype":{"type":"string","value":"per_tensor"}},"inputs":[
{"id":3,"dtype":"f32","shape":[4,8],"stride":[8,1],"layout_type":"strided","property_type":"undef"}],"outputs":[
{"id":4,"dtype":"s8","shape":[4,8],"stride":[8,1],"layout_type":"strided","property_type":"undef"}]}]})";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using lamina::Error;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  lamina::driver::Overrides overrides;
  while (!text.empty()) {
    const std::string line(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty()) continue;
    auto& list = line[0] == 's' ? overrides.shapes : line[0] == 'a' ? overrides.attributes : overrides.dtypes;
    for (std::string& one : lamina::driver::split_at_commas({line.substr(1)})) list.push_back(std::move(one));
  }
  try {
    static const lamina::GraphDump given = lamina::parse_graph_json(kDump, "fuzz");
    lamina::GraphDump dump = given;
    lamina::driver::apply_overrides(dump, overrides);
    lamina::Graph graph = lamina::build_graph(dump, "fuzz");
    lamina::finalize_graph(graph, "fuzz");
  } catch (const Error& error) {
    lamina::fuzz::require(error.what()[0] != '\0', "a refusal has a sentence");
  }
  return 0;
}
