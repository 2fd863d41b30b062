#include "random/drawn.h"

#include <algorithm>

#include "interface/op_schema.h"
#include "interface/status.h"
#include "random/random_layout.h"
#include "random/random_op.h"

namespace lamina::testing {

namespace {

std::string text_of(const Types& types) {
  std::string text;
  for (const auto& [variable, dtype] : types) text += join(text.empty() ? "" : " ", variable, "=", name_of(dtype));
  return text;
}

// Returns the types of a step's tensors; ports that are omitted contribute no type.
Types types_of(const Step& step, const Recipe& recipe) {
  const OpSchema& schema = schema_of(step.kind);
  Types types;
  const auto note = [&](const std::vector<const PortSpec*>& ports, const std::vector<uint64_t>& ids) {
    for (size_t i = 0; i < ids.size() && i < ports.size(); ++i) {
      if (ids[i] != kNoTensor && ports[i]->type != "any") types[ports[i]->type] = recipe.tensors.at(ids[i]).dtype;
    }
  };
  note(existing_inputs(schema, step.attributes), step.inputs);
  note(existing_outputs(schema, step.attributes), step.outputs);
  return types;
}

// Whether `wanted` agrees with all types of `drawn`. The type of an omitted port is not in `drawn`.
bool covers(const Types& drawn, const Types& wanted) {
  for (const auto& [variable, dtype] : drawn) {
    const auto found = wanted.find(variable);
    if (found != wanted.end() && found->second != dtype) return false;
  }
  return true;
}

std::vector<OpKind> drawable_kinds() {
  std::vector<OpKind> kinds;
  for (const OpKind kind : all_op_kinds()) {
    if (kind != OpKind::End && kind != OpKind::Wildcard) kinds.push_back(kind);
  }
  return kinds;
}

std::string listed(const std::map<std::string, size_t>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) text += join(text.empty() ? "" : ", ", name, " ", count);
  return text;
}

}  // namespace

void Drawn::count(const Recipe& recipe) {
  for (const Step& step : recipe.steps) {
    OfKind& kind = kinds_[step.kind];
    ++ops_, ++kind.count;
    const Types types = types_of(step, recipe);
    ++kind.types[text_of(types)];
    kind.drawn_types.insert(types);
    const std::vector<const PortSpec*> ports = existing_inputs(schema_of(step.kind), step.attributes);
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      if (step.inputs[i] == kNoTensor) continue;
      const LogicalTensor& tensor = recipe.tensors.at(step.inputs[i]);
      kind.constants += tensor.property == PropertyType::constant;
      ++types_[std::string(name_of(tensor.dtype))];
      if (tensor.strides.size() != tensor.shape->size()) continue;
      const std::string layout(name_of(layout_of(tensor)));
      ++kind.layouts[layout], ++layouts_[layout];
      const std::string& port = ports[std::min(i, ports.size() - 1)]->name;
      ++kind.port_layouts[join(port, ": ", layout)];
      kind.most_axes[port] = std::max(kind.most_axes[port], tensor.strides.size());
    }
    for (const uint64_t id : step.outputs) {
      if (id == kNoTensor) continue;
      const LogicalTensor& tensor = recipe.tensors.at(id);
      if (tensor.strides.size() == tensor.shape->size()) ++kind.layouts[join("dst ", name_of(layout_of(tensor)))];
    }
  }
}

std::vector<std::string> Drawn::kinds_never_drawn() const {
  std::vector<std::string> never;
  for (const OpKind kind : drawable_kinds()) {
    if (!kinds_.contains(kind)) never.emplace_back(name_of(kind));
  }
  return never;
}

std::vector<std::string> Drawn::types_never_drawn() const {
  std::vector<std::string> never;
  for (const OpKind kind : drawable_kinds()) {
    const auto found = kinds_.find(kind);
    for (const Types& wanted : type_combinations(schema_of(kind))) {
      bool is_covered = false;
      if (found != kinds_.end())
        for (const Types& drawn : found->second.drawn_types) is_covered = is_covered || covers(drawn, wanted);
      if (!is_covered) never.push_back(join(name_of(kind), " ", text_of(wanted)));
    }
  }
  return never;
}

std::vector<std::string> Drawn::layouts_never_drawn() const {
  std::vector<std::string> never;
  for (const OpKind kind : drawable_kinds()) {
    if (!schema_of(kind).traits.contracts) continue;
    const auto found = kinds_.find(kind);
    const OfKind drawn = found == kinds_.end() ? OfKind{} : found->second;
    for (const PortSpec& port : schema_of(kind).inputs) {
      if (port.presence != Presence::required) continue;
      const auto axes = drawn.most_axes.find(port.name);
      for (const Layout layout : kLayouts) {
        if (axes != drawn.most_axes.end() && axes->second < least_rank(layout)) continue;
        const std::string name = join(port.name, ": ", name_of(layout));
        if (!drawn.port_layouts.contains(name)) never.push_back(join(name_of(kind), " ", name));
      }
    }
  }
  return never;
}

void Drawn::print(std::ostream& out) const {
  out << "types of inputs: " << listed(types_) << "\nlayouts of inputs: " << listed(layouts_) << '\n';
  for (const auto& [kind, of] : kinds_) {
    out << name_of(kind) << ": " << of.count << ", " << of.constants << " constant inputs\n  types: " << listed(of.types)
        << "\n  layouts: " << listed(of.layouts) << '\n';
  }
}

}  // namespace lamina::testing
