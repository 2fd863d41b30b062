#include "backends/gpu/emit/row_program.h"

#include <algorithm>

#include "backends/gpu/emit/program_text.h"
#include "backends/gpu/schedule/tuning.h"
#include "interface/op_schema.h"

namespace lamina::gpu {

RowProgram::RowProgram(std::string symbol, const Op& op, const DeviceLimits& limits, Items items)
    : symbol_(std::move(symbol)),
      axis_attribute_(op.attribute<int64_t>("axis")),
      items_(items),
      group_size_(std::min(tuning::kRowProgramThreads, limits.max_group)) {}

void RowProgram::add(const Tensor& tensor) { tensors_.push_back(tensor); }

void RowProgram::add_word(std::string name, int64_t value) { added_.emplace_back(std::move(name), value); }

size_t RowProgram::axis() const { return static_cast<size_t>(wrap_axis(axis_attribute_, static_cast<int>(shape().size()))); }

int64_t RowProgram::item_count() const {
  int64_t items = items_ == Items::elements ? count() : 1;
  for (size_t d = 0; d < shape().size(); ++d) items *= d == axis() ? 1 : shape()[d];
  return items;
}

std::vector<std::pair<std::string, int64_t>> RowProgram::words() const {
  std::vector<std::pair<std::string, int64_t>> words = {{"items", item_count()}, {"count", count()}};
  words.insert(words.end(), added_.begin(), added_.end());
  for (size_t t = 0; t < tensors_.size(); ++t) {
    const int64_t stride = tensors_[t].tensor->strides[axis()];
    words.emplace_back(join("first_", t), tensors_[t].reverse ? (count() - 1) * stride : 0);
    words.emplace_back(join("step_", t), tensors_[t].reverse ? -stride : stride);
  }
  for (size_t d = 0; d < shape().size(); ++d) {
    if (d == axis()) continue;
    words.emplace_back(join("e", d), shape()[d]);
    for (size_t t = 0; t < tensors_.size(); ++t) words.emplace_back(join("s", d, "_", t), tensors_[t].tensor->strides[d]);
  }
  return words;
}

void RowProgram::open(Text& out) const {
  std::string parameters;
  for (size_t t = 0; t < tensors_.size(); ++t) parameters += join(t == 0 ? "" : ", ", "LM_BUFFER b", t, ", const lm_s64 o", t);
  for (const auto& [name, value] : words()) parameters += ", const lm_s64 " + name;
  out.open("LM_KERNEL(", group_size_, ", 1) ", symbol_, "(", parameters, ")");
  out.line("const lm_s64 thread = LM_GROUP * ", group_size_, " + LM_THREAD;");
  out.open("if (thread < items)");
  std::string rest = "thread";
  if (items_ == Items::elements) {
    out.line("const lm_s64 item = thread % count, row = thread / count;");
    rest = "row";
  }
  std::vector<std::string> places(tensors_.size());
  for (size_t d = shape().size(); d-- > 0;) {
    if (d == axis()) continue;
    out.line("const lm_s64 x", d, " = ", rest, " % e", d, ", rest", d, " = ", rest, " / e", d, ";");
    rest = join("rest", d);
    for (size_t t = 0; t < tensors_.size(); ++t) places[t] += join(" + x", d, " * s", d, "_", t);
  }
  for (size_t t = 0; t < tensors_.size(); ++t) {
    const std::string type = join("LM_GLOBAL ", tensors_[t].output ? "" : "const ", tensors_[t].type, "*");
    out.line(type, " const p", t, " = (", type, ")(b", t, " + o", t, ") + first_", t, places[t], ";");
  }
}

void RowProgram::close(Text& out) const {
  out.close();
  out.close();
}

LibraryProgram RowProgram::program(const std::string& body, const Language& language, bool needs_f64) const {
  LibraryProgram made;
  made.source.symbol = symbol_;
  made.source.symbols = {symbol_};
  made.source.body = body;
  made.source.text = conversions_prelude(language, needs_f64) + body;
  for (const auto& [name, value] : words()) made.words.push_back(value);
  made.launches = {{.groups = {(item_count() + group_size_ - 1) / group_size_}, .group_size = group_size_}};
  const char* const unit = items_ == Items::elements ? "element" : "row";
  made.schedule = join("a thread per ", unit);
  made.text = join(item_count(), " ", unit, "s, rows of ", count());
  made.needs_f64 = needs_f64;
  return made;
}

}  // namespace lamina::gpu
