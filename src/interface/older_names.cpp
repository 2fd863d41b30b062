#include "interface/older_names.h"

#include "interface/status.h"

namespace lamina {
namespace {

constexpr std::pair<std::string_view, OpKind> kOlderKinds[] = {
    {"HardTanh", OpKind::Clamp},
    {"HardTanhBackprop", OpKind::ClampBackward},
    {"ConvolutionBackpropData", OpKind::ConvolutionBackwardData},
    {"ConvolutionBackpropFilters", OpKind::ConvolutionBackwardWeights},
    {"ConvTransposeBackpropData", OpKind::ConvTransposeBackwardData},
    {"ConvTransposeBackpropFilters", OpKind::ConvTransposeBackwardWeights},
};

constexpr std::pair<std::string_view, std::string_view> kOlderAttributes[] = {
    {"filter_format", "weights_format"},
    {"filter_shape", "weights_shape"},
    {"output_shape", "dst_shape"},
    {"input_shape", "src_shape"},
};

}  // namespace

std::optional<OpKind> kind_of_older_name(std::string_view name) {
  for (const auto& [older, kind] : kOlderKinds)
    if (name == older) return kind;
  constexpr std::string_view kBackprop = "Backprop", kBackward = "Backward";
  if (!name.ends_with(kBackprop)) return std::nullopt;
  const std::string_view forward = name.substr(0, name.size() - kBackprop.size());
  if (forward == "LayerNorm" || forward == "BatchNormTraining") return std::nullopt;
  constexpr int kFirstOwn = 512;  // lamina's own ops have no older names
  for (const OpKind kind : all_op_kinds()) {
    if (static_cast<int>(kind) >= kFirstOwn) continue;
    const std::string_view today = name_of(kind);
    if (today.ends_with(kBackward) && today.substr(0, today.size() - kBackward.size()) == forward) return kind;
  }
  return std::nullopt;
}

void rename_older_attributes(const OpSchema& schema, Attributes& attributes) {
  for (const auto& [older, today] : kOlderAttributes) {
    const auto given = attributes.find(std::string(older));
    if (given == attributes.end() || schema.find_attribute(older) != nullptr || schema.find_attribute(today) == nullptr)
      continue;
    if (!attributes.emplace(today, given->second).second) {
      throw Error(Status::invalid_graph,
                  join("attributes ", older, " and ", today, " are given, two names of one attribute; allowed is one of them"));
    }
    attributes.erase(given);
  }
}

}  // namespace lamina
