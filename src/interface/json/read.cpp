// Reads the text of a dump: a SAX handler with a stack of frames, one per open bracket, so that nothing recurses, only the
// keys of a dump are stored, and every limit is checked before memory is allocated.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "interface/json/attribute.h"
#include "interface/json/grammar.h"
#include "interface/json/json.h"
#include "interface/json/tokens.h"
#include "interface/json/words.h"
#include "interface/older_names.h"
#include "interface/status.h"
#include "interface/type_rules.h"

namespace lamina {
namespace {

using json::At;
using json::Entries;
using json::Form;
using json::is_bookkeeping;
using json::kArray;
using json::kObject;
using json::kScalar;
using json::Member;
using json::Number;
using json::number_of;
using json::Scalar;
using json::show;

// Returns "f32, bf16, ..., u4 or undef".
std::string known_types() {
  std::string names;
  for (const DataType type : all_types()) names += join(names.empty() ? "" : ", ", name_of(type));
  return names + " or undef";
}

// ---- the handler

class Reader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  // Thrown for text that is not JSON if `tells_place` is false: the text was shortened, so its line numbers differ from the
  // file's.
  struct NoJson {};

  Reader(std::string_view text, const std::string& file, const DumpLimits& limits, bool tells_place)
      : text_(text), file_(file), limits_(limits), tells_place_(tells_place) {}

  GraphDump run() {
    const char* begin = text_.data();
    nlohmann::json::sax_parse(begin, begin + text_.size(), this);
    if (!has_graph_) fail("key \"graph\" is missing");
    return std::move(dump_);
  }

  bool null() override { return scalar({}); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_integer(int64_t value) override { return scalar(Number::of(value)); }
  bool number_unsigned(uint64_t value) override { return scalar(Number::of(value)); }
  bool number_float(double value, const std::string& text) override { return scalar(Number::of(value, text)); }
  bool binary(binary_t&) override { fail("binary values are not JSON"); }

  bool string(std::string& value) override {
    check_length(value);
    return scalar(std::move(value));
  }

  bool key(std::string& name) override {
    check_length(name);
    frames_.back().key = std::move(name);
    return true;
  }

  bool start_object(size_t) override {
    push(frame_of(kObject));
    return true;
  }
  bool start_array(size_t) override {
    push(frame_of(kArray));
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    if (!tells_place_) throw NoJson();
    // nlohmann prefixes "[json.exception...] parse error at line L, column C: "; we replace this with our own format.
    std::string what = error.what();
    const size_t column = what.find("column ");
    const size_t colon = column == std::string::npos ? what.find("] ") : what.find(": ", column);
    if (colon != std::string::npos) what.erase(0, colon + 2);
    // nlohmann quotes the whole token, however long it is; we shorten it.
    constexpr size_t kHead = 100, kTail = 60;
    if (what.size() > kHead + kTail + 3) what.replace(kHead, what.size() - kHead - kTail, "...");
    throw Error(Status::invalid_graph, join(file_, ": ", json::line_and_column(text_, position), ": ", what));
  }

 private:
  struct Frame {
    At at;
    std::string key = {};  // the member that is being read
  };

  // ---- errors

  std::string where() const {
    if (dump_.ops.empty() || !in_op_) return file_;
    const DumpedOp& op = dump_.ops.back();
    const std::string place = has_id_ ? join("op ", op.id) : join("op at position ", dump_.ops.size() - 1);
    if (has_kind_) return join(file_, ": ", place, " (", name_of(op.kind), " \"", op.name, "\")");
    return join(file_, ": ", place);
  }
  [[noreturn]] void fail(const std::string& message) const { throw Error(Status::invalid_graph, join(where(), ": ", message)); }
  [[noreturn]] void fail_key(const std::string& name, const std::string& given, const std::string& allowed) const {
    const char* side = in_tensor_ ? (reading_outputs_ ? "output " : "input ") : "";
    const std::string port = in_tensor_ ? join(side, ports().size() - 1, ": ") : "";
    fail(join(port, name, " is ", given, ", allowed is ", allowed));
  }
  // Prefixes the position in the file to errors of functions that do not know it.
  template <typename Work>
  auto in_place(const Work& work) const {
    try {
      return work();
    } catch (const Error& error) {
      fail(error.what());
    }
  }
  void check_length(const std::string& text) const {
    if (text.size() > limits_.string_bytes)
      fail(join("a string has ", text.size(), " bytes, allowed is at most ", limits_.string_bytes));
  }

  // ---- frames

  At current() const { return frames_.back().at; }
  const std::string& current_key() const { return frames_.back().key; }

  void push(At at) {
    if (frames_.size() >= limits_.nesting) fail(join("brackets are nested deeper than ", limits_.nesting, ", the limit"));
    frames_.push_back({at});
    if (at == At::op) open_op();
    if (at == At::attribute) attribute_ = {};
    if (at == At::tensor) open_tensor();
    if (at == At::list) list_.clear();
    if (at == At::constant) open_constant();
  }

  // What the bracket that opens here contains.
  At frame_of(Form given) {
    const char* what = given == kObject ? "an object" : "an array";
    if (frames_.empty() && given == kArray) fail("the file holds an array, allowed is one JSON object");
    if (frames_.empty()) return At::root;
    if (const Entries* entries = entries_of(current())) {
      if (given != kObject) refuse_entry(*entries, what);
      return entries->holds;
    }
    if (current() == At::attributes && given != kObject) fail_key(current_key(), what, "an object with type and value");
    if (current() == At::attributes) return At::attribute;
    if (current() == At::list) fail_key(list_name(), join(what, " inside an array"), "an array of numbers");
    const Member* member = known_member(current(), current_key());
    if (member == nullptr) return At::skip;
    if ((member->forms & given) == 0) fail_key(current_key(), what, "the form that dumps use");
    if (member->holds == At::ops) open_graph();
    if (member->holds == At::ports) open_ports(current_key() == "outputs");
    return member->holds;
  }

  [[noreturn]] void refuse_entry(const Entries& entries, const std::string& given) const {
    fail(join(entries.what, given, ", allowed is ", entries.allowed));
  }

  bool close() {
    const At at = current();
    if (at == At::op) close_op();
    if (at == At::attribute) close_attribute();
    if (at == At::tensor) close_tensor();
    if (at == At::constant) close_constant();
    frames_.pop_back();
    if (at == At::list) close_list();
    return true;
  }

  // ---- ops

  void open_graph() {
    if (has_graph_) fail("key \"graph\" is given twice");
    has_graph_ = true;
  }

  void open_op() {
    if (dump_.ops.size() >= limits_.ops) fail(join("there are more than ", limits_.ops, " ops, the limit"));
    dump_.ops.emplace_back();
    in_op_ = true;
    has_id_ = has_kind_ = false;
  }
  void close_op() {
    if (!has_id_) fail("key \"id\" is missing");
    if (!has_kind_) fail("key \"kind\" is missing");
    DumpedOp& op = dump_.ops.back();
    in_place([&] { rename_older_attributes(schema_of(op.kind), op.attributes); });
    in_op_ = false;
  }

  void close_attribute() {
    const std::string& name = frames_[frames_.size() - 2].key;
    if (is_bookkeeping(name)) return;
    dump_.ops.back().attributes.insert_or_assign(name, in_place([&] { return attribute_.finish(name); }));
  }

  // ---- tensors

  std::vector<LogicalTensor>& ports() { return reading_outputs_ ? dump_.ops.back().outputs : dump_.ops.back().inputs; }
  const std::vector<LogicalTensor>& ports() const { return const_cast<Reader*>(this)->ports(); }

  void open_ports(bool outputs) {
    reading_outputs_ = outputs;
    ports().clear();
  }
  void open_tensor() {
    if (ports().size() >= limits_.ports_per_op) fail(join("there are more than ", limits_.ports_per_op, " ports, the limit"));
    ports().emplace_back();
    in_tensor_ = true;
    has_tensor_id_ = false;
  }
  void close_tensor() {
    if (!has_tensor_id_) fail_key("id", "missing", "an unsigned integer of 64 bits");
    LogicalTensor& tensor = ports().back();
    const bool unknown_shape = tensor.shape && *tensor.shape == Dims{kUnknownDim};
    if (unknown_shape) tensor.shape.reset();
    const bool unknown_strides = std::find(tensor.strides.begin(), tensor.strides.end(), kUnknownDim) != tensor.strides.end();
    if (tensor.layout != LayoutType::strided || unknown_strides) tensor.strides.clear();
    // A strided tensor without strides is dense, as in oneDNN's reader.
    if (tensor.layout == LayoutType::strided && tensor.strides.empty()) tensor = in_place([&] { return made_dense(tensor); });
    in_tensor_ = false;
  }

  // ---- constants

  void open_constant() {
    if (dump_.constants.size() >= limits_.list_entries)
      fail(join("\"constants\" has more than ", limits_.list_entries, " entries, allowed is no more than that"));
    dump_.constants.emplace_back();
    has_constant_id_ = has_constant_value_ = false;
  }
  void close_constant() const {
    if (!has_constant_id_ || !has_constant_value_)
      fail(join("an entry of \"constants\" lacks its ", has_constant_id_ ? "value" : "id",
                ", allowed is one with id and value"));
  }
  void constant_scalar(const Scalar& value) {
    DumpedConstant& constant = dump_.constants.back();
    if (current_key() == "id") {
      constant.id = id_of(value);
      has_constant_id_ = true;
    } else if (current_key() == "value") {
      const auto number = number_of(value);
      if (!number) fail_key("value of a constant", show(value), "a number");
      constant.value = number->real;
      has_constant_value_ = true;
    }
  }

  // ---- lists

  std::string list_name() const { return frames_[frames_.size() - 2].key; }

  // The list's own frame has been popped: the current frame is the object that contains it.
  void close_list() {
    const std::string name = current_key();
    switch (current()) {
      case At::root: (name == "input_ports" ? dump_.input_ports : dump_.output_ports) = ids(name); break;
      case At::attribute: attribute_.set_value(std::move(list_)); break;
      default: (name == "shape" ? ports().back().shape.emplace() : ports().back().strides) = dims(name); break;
    }
    list_ = {};
  }
  std::vector<uint64_t> ids(const std::string& name) const {
    std::vector<uint64_t> result;
    for (const Number& number : list_) {
      const auto id = number.as_unsigned();
      if (!id) fail_key(name, "an array that holds " + show(number), "unsigned integers of 64 bits");
      result.push_back(*id);
    }
    return result;
  }
  Dims dims(const std::string& name) const {
    if (list_.size() > static_cast<size_t>(kMaxRank))
      fail_key(name, join("an array of ", list_.size(), " entries"), join("at most ", kMaxRank));
    Dims result;
    for (const Number& number : list_) {
      const auto dim = number.as_signed();
      if (!dim) fail_key(name, "an array that holds " + show(number), "integers of 64 bits");
      result.push_back(*dim);
    }
    return result;
  }

  // ---- scalars

  bool scalar(Scalar value) {
    if (frames_.empty()) fail(join("the file holds ", show(value), ", allowed is one JSON object"));
    if (current() == At::list) {
      list_scalar(value);
      return true;
    }
    if (const Entries* entries = entries_of(current())) refuse_entry(*entries, show(value));
    const Member* member = known_member(current(), current_key());
    if (member != nullptr && (member->forms & kScalar) == 0)
      fail_key(current_key(), show(value), member->forms == kObject ? "an object" : "an array");
    switch (current()) {
      case At::root: root_scalar(value); break;
      case At::op: op_scalar(value); break;
      case At::attributes: fail_key(join("attribute ", current_key()), show(value), "an object with type and value");
      case At::attribute: attribute_scalar(value); break;
      case At::tensor: tensor_scalar(value); break;
      case At::constant: constant_scalar(value); break;
      default: break;
    }
    return true;
  }

  void root_scalar(const Scalar& value) {
    const std::string& name = current_key();
    if (name == "version") dump_.version = text_of(value);
    if (name == "engine_kind") dump_.engine_kind = word(value, json::kEngines);
    if (name == "fpmath_mode") dump_.fpmath_mode = word(value, json::kFpMathModes);
    if (name == "fpmath_mode_apply_to_int") dump_.fpmath_apply_to_int = flag(value);
  }

  void op_scalar(const Scalar& value) {
    DumpedOp& op = dump_.ops.back();
    const std::string& name = current_key();
    if (name == "id") {
      op.id = id_of(value);
      has_id_ = true;
    } else if (name == "name") {
      op.name = text_of(value);
    } else if (name == "kind") {
      const auto kind = op_kind_from_name(text_of(value));
      if (!kind) fail_key("kind", show(value), "an operation that `lamina ops` lists");
      op.kind = *kind;
      has_kind_ = true;
    }
  }

  void attribute_scalar(Scalar& value) {
    if (current_key() == "type") attribute_.set_type(text_of(value));
    if (current_key() == "value") attribute_.set_value(std::move(value));
  }

  void tensor_scalar(const Scalar& value) {
    LogicalTensor& tensor = ports().back();
    const std::string& name = current_key();
    if (name == "id") {
      tensor.id = id_of(value);
      has_tensor_id_ = true;
    } else if (name == "dtype") {
      const auto dtype = data_type_from_name(text_of(value));
      if (!dtype) fail_key(name, show(value), known_types());
      tensor.dtype = *dtype;
    } else if (name == "layout_type") {
      tensor.layout = word(value, json::kLayouts);
    } else if (name == "property_type") {
      tensor.property = word(value, json::kProperties);
    }
  }

  void list_scalar(const Scalar& value) {
    const auto number = number_of(value);
    if (!number) fail_key(list_name(), "an array that holds " + show(value), "numbers");
    if (list_.size() >= limits_.list_entries)
      fail_key(list_name(), join("an array of more than ", limits_.list_entries, " entries"), "no more than that");
    list_.push_back(*number);
  }

  std::string text_of(const Scalar& value) const {
    if (const auto* text = std::get_if<std::string>(&value)) return *text;
    fail_key(current_key(), show(value), "a string");
  }
  uint64_t id_of(const Scalar& value) const {
    const auto* number = std::get_if<Number>(&value);
    const auto id = number ? number->as_unsigned() : std::nullopt;
    if (!id) fail_key(current_key(), show(value), "an unsigned integer of 64 bits");
    return *id;
  }
  bool flag(const Scalar& value) const {
    if (const auto* given = std::get_if<bool>(&value)) return *given;
    if (const auto number = number_of(value)) return number->real != 0;
    const std::string text = text_of(value);
    if (text != "true" && text != "false") fail_key(current_key(), show(value), "\"true\" or \"false\"");
    return text == "true";
  }
  template <typename T, size_t N>
  T word(const Scalar& value, const T (&meanings)[N]) const {
    const std::string text = text_of(value);
    for (const T meaning : meanings)
      if (text == json::word_of(meaning)) return meaning;
    std::string allowed;
    for (const T meaning : meanings) allowed += join(allowed.empty() ? "" : ", ", json::word_of(meaning));
    fail_key(current_key(), show(value), allowed);
  }

  std::string_view text_;
  const std::string& file_;
  const DumpLimits& limits_;
  bool tells_place_;
  GraphDump dump_;
  std::vector<Frame> frames_;
  json::PendingAttribute attribute_;
  std::vector<Number> list_;
  bool has_graph_ = false;
  bool in_op_ = false, has_id_ = false, has_kind_ = false;
  bool in_tensor_ = false, has_tensor_id_ = false;
  bool has_constant_id_ = false, has_constant_value_ = false;
  bool reading_outputs_ = false;
};

}  // namespace

GraphDump parse_graph_json(std::string_view text, const std::string& file_name, const DumpLimits& limits) {
  if (text.size() > limits.file_bytes)
    throw Error(Status::invalid_graph,
                join(file_name, ": the file has ", text.size(), " bytes, allowed is at most ", limits.file_bytes));
  try {
    json::Repair repair(text, true);
    return Reader(repair.run(), file_name, limits, false).run();
  } catch (const Reader::NoJson&) {
    json::Repair repair(text);
    return Reader(repair.run(), file_name, limits, true).run();
  }
}

}  // namespace lamina
