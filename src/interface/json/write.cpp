// Writes a graph in the layout of oneDNN's dumps: two-space indent, every array element on its own line, fixed key order.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>

#include "interface/json/json.h"
#include "interface/json/quoted.h"
#include "interface/json/words.h"
#include "interface/op_schema.h"
#include "interface/status.h"

namespace lamina {
namespace {

using json::quoted;

// Six significant digits, as a stream prints them; more only if six would read back as another number.
template <std::floating_point Real>
std::string number(Real value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (value == 0) return std::signbit(value) ? "-0.0" : "0";
  char text[64];
  auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 6).ptr;
  Real back = 0;
  std::from_chars(text, end, back);
  if (back != value) end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}
std::string number(int64_t value) { return std::to_string(value); }
std::string number(uint64_t value) { return std::to_string(value); }

class Writer {
 public:
  explicit Writer(const Graph& graph) : graph_(graph) {}

  std::string run() {
    open('{');
    member("version", quoted(LAMINA_WRITER_VERSION));
    member("engine_kind", quoted(json::word_of(graph_.engine_kind)));
    member("fpmath_mode", quoted(json::word_of(graph_.fpmath_mode)));
    member("fpmath_mode_apply_to_int", quoted(graph_.fpmath_apply_to_int ? "true" : "false"));
    list("input_ports", input_ports());
    list("output_ports", output_ports());
    key("graph");
    open('[');
    for (const Op& op : graph_.ops()) write_op(op);
    close(']');
    write_constants();
    close('}');
    return text_ + '\n';
  }

 private:
  // The ids that no op of the graph produces, once per port that reads them.
  std::vector<uint64_t> input_ports() const {
    std::vector<uint64_t> ids;
    for (const Op& op : graph_.ops())
      for (ValueIndex input : op.inputs)
        if (input != kNoValue && graph_.value(input).producer.op < 0) ids.push_back(graph_.tensor(input).id);
    return ids;
  }
  // An End contributes its input at its position.
  std::vector<uint64_t> output_ports() const {
    std::vector<uint64_t> ids;
    for (const Op& op : graph_.ops()) {
      if (is_marker(op))
        for (ValueIndex input : op.inputs) ids.push_back(graph_.tensor(input).id);
      for (ValueIndex output : op.outputs)
        if (output != kNoValue && graph_.value(output).consumers.empty()) ids.push_back(graph_.tensor(output).id);
    }
    return ids;
  }

  void write_constants() {
    const auto is_known = [](const Value& value) { return value.constant.has_value(); };
    if (std::none_of(graph_.values().begin(), graph_.values().end(), is_known)) return;
    key("constants");
    open('[');
    for (const Value& value : graph_.values()) {
      if (!is_known(value)) continue;
      element();
      open('{');
      member("id", number(value.tensor.id));
      const auto single = static_cast<float>(*value.constant);  // the shorter text if it is exact: 1e-05, not 9.9999997e-06
      const bool is_single = static_cast<double>(single) == *value.constant;
      member("value", is_single ? number(single) : number(*value.constant));
      close('}');
    }
    close(']');
  }

  void write_op(const Op& op) {
    element();
    open('{');
    member("id", number(op.id));
    member("name", quoted(op.name));
    member("kind", quoted(std::string(name_of(op.kind))));
    key("attrs");
    open('{');
    for (const auto& [name, value] : op.attributes)
      if (!is_silent_extension(op.kind, name, value)) write_attribute(name, value);
    close('}');
    write_ports("inputs", op.inputs);
    write_ports("outputs", op.outputs);
    close('}');
  }

  // oneDNN rejects files with attributes that it does not know, so lamina's attributes are written only if they differ from
  // the default.
  static bool is_silent_extension(OpKind kind, std::string_view name, const Attribute& value) {
    if (name != "use_stats" && name != "stats_kind" && name != "src_kind") return false;
    if (kind != OpKind::LayerNorm && kind != OpKind::LayerNormBackward) return false;
    const AttributeSpec* spec = schema_of(kind).find_attribute(name);
    return spec != nullptr && spec->default_value == value;
  }

  void write_attribute(const std::string& name, const Attribute& value) {
    key(name);
    open('{');
    member("type", quoted(std::string(name_of(static_cast<AttributeType>(value.index())))));
    std::visit([&](const auto& held) { write_value(held); }, value);
    close('}');
  }
  void write_value(bool value) { member("value", value ? "1" : "0"); }
  void write_value(int64_t value) { member("value", number(value)); }
  void write_value(float value) { member("value", number(value)); }
  void write_value(double value) { member("value", number(value)); }
  void write_value(const std::string& value) { member("value", quoted(value)); }
  template <typename T>
  void write_value(const std::vector<T>& values) {
    list("value", values);
  }

  void write_ports(const char* name, const std::vector<ValueIndex>& ports) {
    key(name);
    open('[');
    for (ValueIndex port : ports) {
      element();
      write_tensor(port == kNoValue ? LogicalTensor{} : graph_.tensor(port));
    }
    close(']');
  }

  void write_tensor(const LogicalTensor& tensor) {
    const bool known = tensor.has_full_shape();
    const bool strides_known = tensor.layout == LayoutType::strided &&
                               std::find(tensor.strides.begin(), tensor.strides.end(), kUnknownDim) == tensor.strides.end() &&
                               (known ? tensor.has_strides() : !tensor.strides.empty());
    open('{');
    member("id", number(tensor.id));
    member("dtype", quoted(tensor.dtype == DataType::undef ? "undef" : std::string(name_of(tensor.dtype))));
    list("shape", known ? *tensor.shape : Dims{kUnknownDim});
    list("stride", strides_known ? tensor.strides : Dims{kUnknownDim});
    member("layout_type", quoted(json::word_of(tensor.layout)));
    member("property_type", quoted(json::word_of(tensor.property)));
    close('}');
  }

  // ---- text

  template <typename T>
  void list(const std::string& name, const std::vector<T>& values) {
    key(name);
    open('[');
    for (const T& value : values) {
      element();
      text_ += number(value);
    }
    close(']');
  }
  void member(const std::string& name, const std::string& value) {
    key(name);
    text_ += value;
  }
  void key(const std::string& name) {
    element();
    text_ += quoted(name) + ": ";
  }
  void element() {
    if (!empty_) text_ += ',';
    new_line();
    empty_ = false;
  }
  void open(char bracket) {
    text_ += bracket;
    ++depth_;
    empty_ = true;
  }
  void close(char bracket) {
    --depth_;
    if (!empty_) new_line();
    text_ += bracket;
    empty_ = false;
  }
  void new_line() {
    text_ += '\n';
    text_.append(2 * depth_, ' ');
  }

  const Graph& graph_;
  std::string text_;
  size_t depth_ = 0;
  bool empty_ = true;  // the innermost bracket has no entry yet
};

}  // namespace

std::string write_graph_json(const Graph& graph) { return Writer(graph).run(); }

}  // namespace lamina
