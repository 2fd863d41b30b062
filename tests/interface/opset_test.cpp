// Compares the schemas with the op set's own table (shared/spec/opset.json beside the repository; skipped if it is missing).
// Every deviation of lamina is listed here by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "interface/op_schema.h"
#include "interface/type_rules.h"
#include "support/files.h"
#include "support/valid_op.h"

namespace lamina::testing {
namespace {

using nlohmann::json;

const std::filesystem::path kTable = kShared / "spec" / "opset.json";

// Attributes and ports that only lamina has.
const std::map<std::string, std::set<std::string>> kOwnAttributes{
    {"LayerNorm", {"use_stats", "stats_kind"}},
    {"LayerNormBackward", {"use_stats", "stats_kind", "src_kind"}},
    {"GroupNorm", {"stats_kind"}},
    {"BatchNormTrainingBackward", {"stats_kind"}},
    {"Dropout", {"steps"}}};
const std::map<std::string, std::set<std::string>> kOwnInputs{{"LayerNorm", {"mean", "variance"}}, {"Dropout", {"first"}}};
// Words that the op set's documents list but its table does not restrict.
const std::set<std::string> kOwnChoices{"qtype", "rounding_type"};
// End and the layout ops accept any type. LayerNorm's gradient follows the documents, not the error in oneDNN's check.
const std::set<std::string> kAnyType{"End", "StaticReshape", "StaticTranspose", "Reorder", "Concat"};
const std::set<std::string> kStricterTypes{"LayerNormBackward"};
// The op set requires it. LayerNormGrad's mask may omit any gradient, so the canonical form of that op may too.
const std::set<std::string> kOptionalHere{"LayerNormBackward.diff_src"};

template <typename Map>
bool is_own(const Map& own, const std::string& kind, const std::string& name) {
  const auto found = own.find(kind);
  return found != own.end() && found->second.contains(name);
}

class Opset : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kTable)) GTEST_SKIP() << "the op set's table is not next to the checkout";
    std::ifstream file(kTable);
    table_ = json::parse(file);
  }

  // Runs `check(entry, schema)` for each op of the table.
  template <typename Check>
  void for_each_op(Check check) const {
    for (const json& entry : table_["ops"]) {
      const auto name = entry["kind"].get<std::string>();
      SCOPED_TRACE(name);
      const auto kind = op_kind_from_name(name);
      ASSERT_TRUE(kind.has_value());
      check(entry, schema_of(*kind));
    }
  }

  json table_;
};

std::string type_name(const AttributeSpec& spec) { return std::string(name_of(spec.type)); }

// The default as text; null means none.
std::string default_text(const json& attribute) {
  if (!attribute["has_default"].get<bool>()) return "none";
  const auto type = attribute["type"].get<std::string>();
  const json& value = attribute["default"];
  if (type == "bool") return to_string(Attribute(value.get<bool>()));
  if (type == "s64") return to_string(Attribute(value.get<int64_t>()));
  if (type == "f32") return to_string(Attribute(value.get<float>()));
  if (type == "s64[]") return to_string(Attribute(value.get<std::vector<int64_t>>()));
  if (type == "f32[]") return to_string(Attribute(value.get<std::vector<float>>()));
  return to_string(Attribute(value.get<std::string>()));
}

TEST_F(Opset, KindsAndEnumeratorsAgree) {
  std::set<std::string> listed;
  for (const auto& [name, value] : table_["enums"]["op_kind"].items()) {
    const auto kind = op_kind_from_name(name);
    ASSERT_TRUE(kind.has_value()) << name;
    EXPECT_EQ(static_cast<int>(*kind), value.get<int>()) << name;
    listed.insert(name);
  }
  for (OpKind kind : all_op_kinds())
    EXPECT_EQ(static_cast<int>(kind) < 512, listed.contains(std::string(name_of(kind)))) << name_of(kind);
  for (const auto& [older, today] : table_["older_kinds"].items())
    EXPECT_EQ(op_kind_from_name(older), op_kind_from_name(today.get<std::string>()));
}

TEST_F(Opset, DataTypesAgree) {
  const std::set<std::string> not_in_lamina{"e8m0", "f4_e2m1", "f4_e3m0"};
  for (const auto& [name, value] : table_["enums"]["data_type"].items()) {
    if (not_in_lamina.contains(name)) continue;
    const auto type = data_type_from_name(name);
    ASSERT_TRUE(type.has_value()) << name;
    EXPECT_EQ(static_cast<int>(*type), value.get<int>()) << name;
  }
}

TEST_F(Opset, AttributesAgree) {
  for_each_op([](const json& entry, const OpSchema& schema) {
    const auto kind = entry["kind"].get<std::string>();
    std::set<std::string> listed;
    for (const json& attribute : entry["attributes"]) {
      const auto name = attribute["name"].get<std::string>();
      SCOPED_TRACE(name);
      listed.insert(name);
      const AttributeSpec* spec = schema.find_attribute(name);
      ASSERT_NE(spec, nullptr);
      EXPECT_EQ(type_name(*spec), attribute["type"].get<std::string>());
      EXPECT_EQ(spec->required, attribute["required"].get<bool>());
      EXPECT_EQ(spec->default_value ? to_string(*spec->default_value) : "none", default_text(attribute));
      if (kOwnChoices.contains(name)) continue;
      std::set<std::string> words;
      if (!attribute["allowed"].is_null()) words = attribute["allowed"].get<std::set<std::string>>();
      EXPECT_EQ(std::set<std::string>(spec->allowed.begin(), spec->allowed.end()), words);
    }
    for (const AttributeSpec& spec : schema.attributes)
      EXPECT_TRUE(listed.contains(spec.name) || is_own(kOwnAttributes, kind, spec.name)) << spec.name;
  });
}

// Compares the ports of both lists in order, without lamina's own.
void compare_ports(const std::string& kind, const json& listed, const std::vector<PortSpec>& declared, bool are_inputs) {
  std::vector<const PortSpec*> ports;
  for (const PortSpec& port : declared)
    if (!are_inputs || !is_own(kOwnInputs, kind, port.name)) ports.push_back(&port);
  ASSERT_EQ(ports.size(), listed.size());
  for (size_t i = 0; i < ports.size(); ++i) {
    EXPECT_EQ(ports[i]->name, listed[i]["name"].get<std::string>());
    const bool always = ports[i]->presence == Presence::required && !ports[i]->exists_when;
    const bool required = listed[i]["required"].get<bool>();
    // A statistic that use_stats or keep_stats controls is required if it exists.
    if (kind == "LayerNormBackward" || kOptionalHere.contains(kind + "." + ports[i]->name)) continue;
    EXPECT_EQ(always, required) << ports[i]->name;
  }
}

TEST_F(Opset, PortsAgree) {
  for_each_op([](const json& entry, const OpSchema& schema) {
    const auto kind = entry["kind"].get<std::string>();
    for (const auto& [side, variadic, declared] : {std::tuple{"inputs", "variadic_inputs", &schema.inputs},
                                                   std::tuple{"outputs", "variadic_outputs", &schema.outputs}}) {
      SCOPED_TRACE(side);
      if (entry[variadic].is_null()) {
        compare_ports(kind, entry[side], *declared, declared == &schema.inputs);
        continue;
      }
      ASSERT_EQ(declared->size(), 1U);
      EXPECT_EQ(declared->front().name, entry[variadic]["name"].get<std::string>());
      EXPECT_EQ(declared->front().presence, Presence::variadic);
    }
  });
}

// Returns lamina's type variables for each variable of the table: norms use several, one per group of ports.
std::map<std::string, std::set<std::string>> own_variables(const json& entry, const OpSchema& schema) {
  std::map<std::string, std::set<std::string>> names;
  const auto match = [&](const json& listed, const std::vector<PortSpec>& declared) {
    for (const json& port : listed)
      for (const PortSpec& own : declared)
        if (own.name == port["name"].get<std::string>()) names[port["type"].get<std::string>()].insert(own.type);
  };
  match(entry["inputs"], schema.inputs);
  match(entry["outputs"], schema.outputs);
  for (const char* side : {"variadic_inputs", "variadic_outputs"})
    if (!entry[side].is_null()) names[entry[side]["type"].get<std::string>()] = {schema.inputs.front().type};
  return names;
}

size_t accepted_of_table(const json& entry, const OpSchema& schema) {
  const auto variables = own_variables(entry, schema);
  size_t accepted = 0;
  for (const TypeAssignment& assignment : all_assignments(schema)) {
    bool in_table = is_legal(schema, assignment);
    for (const auto& [listed, own] : variables) {
      const auto names = entry["type_vars"][listed].get<std::set<std::string>>();
      for (const std::string& variable : own)
        in_table = in_table && names.contains(std::string(name_of(assignment.at(variable)))) &&
                   assignment.at(variable) == assignment.at(*own.begin());
    }
    accepted += in_table ? 1 : 0;
  }
  return accepted;
}

TEST_F(Opset, TypesAgree) {
  for_each_op([](const json& entry, const OpSchema& schema) {
    const auto kind = entry["kind"].get<std::string>();
    if (entry["type_vars"].empty() || kind == "End") return;
    if (kStricterTypes.contains(kind)) {
      EXPECT_EQ(accepted_of_table(entry, schema), entry["type_combinations"].size());
      return;
    }
    EXPECT_EQ(accepted_of_table(entry, schema), entry["schema_accepts"].get<size_t>());
  });
}

TEST_F(Opset, DocumentedAndSeenTypesAreAccepted) {
  for_each_op([](const json& entry, const OpSchema& schema) {
    if (schema.kind == OpKind::End) return;
    const auto variables = own_variables(entry, schema);
    for (const char* list : {"type_combinations", "seen_undocumented"})
      for (const json& row : entry[list]) {
        TypeAssignment assignment;
        for (const auto& [listed, type] : row.items())
          for (const std::string& own : variables.at(listed)) assignment[own] = *data_type_from_name(type.get<std::string>());
        EXPECT_EQ(error_of(op_with_types(schema.kind, assignment, legal_attributes(schema))), "") << row.dump();
      }
  });
}

// Besides f64, these ops accept the integers that frameworks use for positions and masks.
TEST_F(Opset, F64IsTheOnlyTypeAddedToComputingOps) {
  const std::vector<DataType> integers = whole_integers(), small = small_floats_of(8);
  const std::set<DataType> computed(integers.begin(), integers.end());
  std::set<DataType> with_boolean = computed;
  with_boolean.insert(DataType::boolean);
  std::set<DataType> converted = with_boolean;
  converted.insert(small.begin(), small.end());
  const std::map<std::string, std::set<DataType>> own_types{
      {"Add", computed},
      {"Subtract", computed},
      {"Multiply", computed},
      {"Divide", computed},
      {"Select", with_boolean},
      {"Maximum", computed},
      {"Minimum", computed},
      {"GreaterEqual", computed},
      {"LayerNorm", {DataType::f16}},  // gamma, beta and statistics may have the data's type
      {"LayerNormBackward", {DataType::f16}},
      {"GroupNorm", {DataType::f16}},
      {"MaxPool", {DataType::s8, DataType::u8}},
      {"TypeCast", converted}};
  for_each_op([&](const json& entry, const OpSchema& schema) {
    const auto added = own_types.find(entry["kind"].get<std::string>());
    if (kAnyType.contains(entry["kind"].get<std::string>())) return;
    for (const auto& [listed, variables] : own_variables(entry, schema)) {
      const std::string& own = *variables.rbegin();
      if (own == "any") continue;
      const auto names = entry["type_vars"][listed].get<std::set<std::string>>();
      const auto variable = std::find_if(schema.types.begin(), schema.types.end(),
                                         [&name = own](const TypeVariable& declared) { return declared.name == name; });
      for (DataType type : variable->allowed)
        EXPECT_TRUE(type == DataType::f64 || (added != own_types.end() && added->second.contains(type)) ||
                    names.contains(std::string(name_of(type))))
            << own << " " << name_of(type);
    }
  });
}

TEST_F(Opset, InplacePairsAgree) {
  for_each_op([](const json& entry, const OpSchema& schema) {
    for (const json& pair : entry["inplace"]) {
      const std::pair<std::string, std::string> listed{pair[0].get<std::string>(), pair[1].get<std::string>()};
      EXPECT_NE(std::find(schema.inplace.begin(), schema.inplace.end(), listed), schema.inplace.end()) << pair.dump();
    }
  });
}

}  // namespace
}  // namespace lamina::testing
