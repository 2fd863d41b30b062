// Runs every schema through the checks that apply to all ops. The cases are generated from the schemas, so new kinds are tested
// automatically.
#include "interface/op_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/op_builder.h"
#include "support/valid_op.h"

namespace lamina::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class EverySchema : public ::testing::TestWithParam<OpKind> {
 protected:
  const OpSchema& schema() const { return schema_of(GetParam()); }
  std::string prefix() const { return join(name_of(GetParam()), " \"op0\": "); }
};

INSTANTIATE_TEST_SUITE_P(Kinds, EverySchema, ::testing::ValuesIn(all_op_kinds()),
                         [](const auto& instance) { return std::string(name_of(instance.param)); });

TEST_P(EverySchema, SaysWhatItIs) {
  EXPECT_EQ(schema().kind, GetParam());
  EXPECT_FALSE(schema().formula.empty());
  EXPECT_EQ(op_kind_from_name(name_of(GetParam())), GetParam());
}

TEST_P(EverySchema, PortsUseDeclaredTypesAndDistinctNames) {
  for (const auto* ports : {&schema().inputs, &schema().outputs}) {
    std::vector<std::string> names;
    for (const PortSpec& port : *ports) {
      const auto has_name = [&](const TypeVariable& variable) { return variable.name == port.type; };
      EXPECT_TRUE(port.type == "any" || std::any_of(schema().types.begin(), schema().types.end(), has_name)) << port.name;
      EXPECT_EQ(std::count(names.begin(), names.end(), port.name), 0) << port.name;
      names.push_back(port.name);
    }
  }
}

TEST_P(EverySchema, InplacePairsNamePorts) {
  const auto named = [](const std::string& name) { return [name](const PortSpec& port) { return port.name == name; }; };
  for (const auto& [input, output] : schema().inplace) {
    EXPECT_TRUE(std::any_of(schema().inputs.begin(), schema().inputs.end(), named(input))) << input;
    EXPECT_TRUE(std::any_of(schema().outputs.begin(), schema().outputs.end(), named(output))) << output;
  }
}

TEST_P(EverySchema, DefaultsAreLegalAndFilledIn) {
  Op op{0, GetParam(), "op0", legal_attributes(schema()), {}, {}};
  const Attributes given = op.attributes;
  fill_defaults(op);
  for (const AttributeSpec& spec : schema().attributes) {
    EXPECT_FALSE(spec.required && spec.default_value) << spec.name;
    if (!spec.default_value || given.contains(spec.name)) continue;
    EXPECT_EQ(op.attributes.at(spec.name), *spec.default_value) << spec.name;
    EXPECT_EQ(static_cast<AttributeType>(spec.default_value->index()), spec.type) << spec.name;
  }
  EXPECT_EQ(error_of(a_valid_op(GetParam())), "");
}

TEST_P(EverySchema, GivenAttributesAreKeptWhenDefaultsAreFilledIn) {
  for (const AttributeSpec& spec : schema().attributes) {
    if (spec.type != AttributeType::boolean) continue;
    Op op{0, GetParam(), "op0", {{spec.name, false}}, {}, {}};
    fill_defaults(op);
    EXPECT_EQ(op.attributes.at(spec.name), Attribute(false));
  }
}

TEST_P(EverySchema, OptionalPortsMayBeLeftOut) { EXPECT_EQ(error_of(a_valid_op(GetParam(), false)), ""); }

TEST_P(EverySchema, EveryLegalTypeAssignmentIsAcceptedAndEveryOtherRefused) {
  for (const TypeAssignment& assignment : all_assignments(schema())) {
    const OpBuilder op = op_with_types(GetParam(), assignment, legal_attributes(schema()));
    const std::string error = error_of(op);
    if (is_legal(schema(), assignment)) {
      EXPECT_EQ(error, "");
    } else {
      EXPECT_THAT(error, StartsWith(prefix() + "the types are "));
      EXPECT_EQ(status_of(op), Status::invalid_data_type);
      EXPECT_FALSE(schema().type_rule_text.empty());
    }
  }
}

TEST_P(EverySchema, TypesOutsideTheTableAreRefused) {
  const TypeAssignment legal = first_legal(schema());
  for (const TypeVariable& variable : schema().types)
    for (int value : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16}) {
      const auto type = static_cast<DataType>(value);
      if (std::find(variable.allowed.begin(), variable.allowed.end(), type) != variable.allowed.end()) continue;
      TypeAssignment assignment = legal;
      assignment[variable.name] = type;
      const std::string error = error_of(op_with_types(GetParam(), assignment, legal_attributes(schema())));
      // A variable that only an alternative port binds (the axes of a reduction) is not checked.
      if (error.empty()) continue;
      EXPECT_THAT(error, HasSubstr(join(" is ", name_of(type), ", allowed is ", name_of(variable.allowed.front()))));
    }
}

TEST_P(EverySchema, PortsOfOneVariableHaveOneType) {
  for (const TypeVariable& variable : schema().types) {
    if (variable.allowed.size() < 2) continue;
    std::vector<std::string> ports;
    for (const PortSpec& port : schema().inputs)
      if (port.type == variable.name && !port.exists_when && port.presence == Presence::required) ports.push_back(port.name);
    if (ports.size() < 2) continue;
    const TypeAssignment legal = first_legal(schema());
    const DataType first = legal.at(variable.name);
    const DataType other = variable.allowed[0] == first ? variable.allowed[1] : variable.allowed[0];
    OpBuilder op = a_valid_op(GetParam());
    op.without_input(ports[1]).input(ports[1], other);
    EXPECT_EQ(error_of(op), prefix() + join("input ", ports[1], " is ", name_of(other), ", allowed is ", name_of(first),
                                            ", the type of ", ports[0]));
  }
}

TEST_P(EverySchema, EveryAttributeRefusesOtherTypes) {
  const std::vector<Attribute> samples{
      true, int64_t{1}, std::vector<int64_t>{1}, 0.5F, std::vector<float>{1.0F}, std::string("x")};
  for (const AttributeSpec& spec : schema().attributes)
    for (const Attribute& sample : samples) {
      if (static_cast<AttributeType>(sample.index()) == spec.type) continue;
      const std::string error = error_of(a_valid_op(GetParam(), false).attr(spec.name, sample));
      const auto type = static_cast<AttributeType>(sample.index());
      EXPECT_EQ(error, prefix() + join("attribute ", spec.name, " is ", to_string(sample), " of type ", name_of(type),
                                       ", allowed is type ", name_of(spec.type)));
    }
}

TEST_P(EverySchema, EveryChoiceRefusesOtherWords) {
  for (const AttributeSpec& spec : schema().attributes) {
    if (spec.allowed.empty()) continue;
    for (const std::string& word : spec.allowed)
      EXPECT_THAT(
          error_of(a_valid_op(GetParam(), false).attr(spec.name, word.c_str())),
          ::testing::Not(HasSubstr(join("attribute ", spec.name, " is \"", word, "\", allowed is \"", spec.allowed[0]))));
    EXPECT_THAT(error_of(a_valid_op(GetParam(), false).attr(spec.name, "bogus")),
                StartsWith(prefix() + join("attribute ", spec.name, " is \"bogus\", allowed is \"", spec.allowed[0], '"')));
  }
}

TEST_P(EverySchema, MissingRequiredAttributeIsNamed) {
  for (const AttributeSpec& spec : schema().attributes) {
    if (!spec.required) continue;
    EXPECT_EQ(error_of(a_valid_op(GetParam()).without_attr(spec.name)),
              prefix() + join("attribute ", spec.name, " is missing, allowed is any ", name_of(spec.type), ": it is required"));
  }
}

TEST_P(EverySchema, UnknownAttributeIsNamedWithTheKnownOnes) {
  std::string known;
  for (const AttributeSpec& spec : schema().attributes) known += (known.empty() ? "" : ", ") + spec.name;
  EXPECT_EQ(error_of(a_valid_op(GetParam()).attr("colour", 3)),
            prefix() + "attribute colour is not known, allowed is " + (known.empty() ? "none" : known));
}

TEST_P(EverySchema, MissingRequiredInputIsNamed) {
  const OpBuilder valid = a_valid_op(GetParam());
  const OpView view = valid.view();
  const auto ports = existing_inputs(schema(), view.op().attributes);
  for (const PortSpec* port : ports) {
    if (port->presence != Presence::required) continue;
    EXPECT_THAT(error_of(a_valid_op(GetParam()).without_input(port->name)), HasSubstr(join("input ", port->name, " (port ")));
  }
}

TEST_P(EverySchema, MissingRequiredOutputIsNamed) {
  const OpBuilder valid = a_valid_op(GetParam());
  for (const PortSpec* port : existing_outputs(schema(), valid.view().op().attributes)) {
    if (port->presence != Presence::required) continue;
    EXPECT_THAT(error_of(a_valid_op(GetParam()).without_output(port->name)), HasSubstr(join("output ", port->name, " (port ")));
  }
}

TEST_P(EverySchema, SurplusPortsAreCounted) {
  const OpBuilder valid = a_valid_op(GetParam());
  const auto inputs = existing_inputs(schema(), valid.view().op().attributes);
  if (inputs.empty() || inputs.back()->presence != Presence::variadic) {
    EXPECT_THAT(error_of(a_valid_op(GetParam()).surplus_inputs(1)),
                StartsWith(prefix() + join(inputs.size() + 1, " inputs are given, allowed is at most ", inputs.size())));
  }
  const auto outputs = existing_outputs(schema(), valid.view().op().attributes);
  if (outputs.empty() || outputs.back()->presence != Presence::variadic) {
    EXPECT_THAT(error_of(a_valid_op(GetParam()).surplus_outputs(1)),
                StartsWith(prefix() + join(outputs.size() + 1, " outputs are given, allowed is at most ", outputs.size())));
  }
}

TEST(Schemas, KindsThatLaminaAddsStartAt512) {
  const int last_of_opset = static_cast<int>(OpKind::Dropout);
  for (OpKind kind : all_op_kinds()) {
    const int value = static_cast<int>(kind);
    EXPECT_TRUE(value <= last_of_opset || value >= 512) << name_of(kind) << " is " << value;
  }
}

TEST(Schemas, OlderSpellingsAreKnown) {
  EXPECT_EQ(op_kind_from_name("BiasAddBackprop"), OpKind::BiasAddBackward);
  EXPECT_EQ(op_kind_from_name("Softmax"), std::nullopt);
}

TEST(Schemas, UnknownKindIsRefused) { EXPECT_THROW(schema_of(static_cast<OpKind>(400)), Error); }

TEST(Attributes, AreWrittenAsTheyAreRead) {
  EXPECT_EQ(to_string(Attribute(true)), "true");
  EXPECT_EQ(to_string(Attribute(int64_t{-3})), "-3");
  EXPECT_EQ(to_string(Attribute(1e-5F)), "1e-05");
  EXPECT_EQ(to_string(Attribute(0.1F)), "0.1");
  EXPECT_EQ(to_string(Attribute(std::vector<int64_t>{1, 2})), "[1, 2]");
  EXPECT_EQ(to_string(Attribute(std::vector<float>{})), "[]");
  EXPECT_EQ(to_string(Attribute(std::string("none"))), "\"none\"");
}

TEST(Attributes, AccessToWhatIsNotThereIsABugInLamina) {
  const Op op{0, OpKind::Elu, "elu", {{"alpha", 0.5F}}, {}, {}};
  EXPECT_EQ(op.attribute<float>("alpha"), 0.5F);
  EXPECT_THROW(op.attribute<bool>("alpha"), Error);
  EXPECT_THROW(op.attribute<float>("beta"), Error);
}

}  // namespace
}  // namespace lamina::testing
