// Enumerators of the public interface equal those of oneDNN (from the shared specification, if it exists) and match the
// schemas.
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "api_fixture.h"
#include "interface/op_schema.h"

namespace api_test {
namespace {

std::map<std::string, int> values_of(const nlohmann::json& table) { return table.get<std::map<std::string, int>>(); }

class EnumeratorsOfTheSpecification : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ifstream file(LAMINA_SOURCE_DIR "/../shared/spec/opset.json");
    if (!file) GTEST_SKIP() << "the specification (spec/opset.json) is not next to the sources";
    enums_ = nlohmann::json::parse(file).at("enums");
  }
  nlohmann::json enums_;
};

TEST_F(EnumeratorsOfTheSpecification, OpKinds) {
  std::map<std::string, int> ours;
#define LAMINA_OP(kind, value) ours[#kind] = lamina_graph_op_##kind;
#include "graph/op_kinds.def"
  for (const auto& [name, value] : values_of(enums_["op_kind"])) EXPECT_EQ(ours.at(name), value) << name;
}

TEST_F(EnumeratorsOfTheSpecification, Attributes) {
  std::map<std::string, int> ours;
#define LAMINA_ATTRIBUTE(name, value, type) ours[#name] = lamina_graph_op_attr_##name;
#include "graph/attribute_kinds.def"
  for (const auto& [name, value] : values_of(enums_["attr"])) EXPECT_EQ(ours.at(name), value) << name;
}

TEST_F(EnumeratorsOfTheSpecification, DataTypes) {
  std::map<std::string, int> ours = {{"undef", lamina_data_type_undef}};
#define LAMINA_DATA_TYPE(name, value, bits, kind, npy) ours[#name] = lamina_##name;
#include "graph/data_types.def"
  // Types that no op of the graph interface supports.
  const std::set<std::string> left_out = {"e8m0", "f4_e2m1", "f4_e3m0"};
  for (const auto& [name, value] : values_of(enums_["data_type"])) {
    if (left_out.count(name) != 0) continue;
    EXPECT_EQ(ours.at(name), value) << name;
  }
}

TEST_F(EnumeratorsOfTheSpecification, Layouts) {
  EXPECT_EQ(values_of(enums_["layout_type"]), (std::map<std::string, int>{{"undef", lamina_graph_layout_type_undef},
                                                                          {"any", lamina_graph_layout_type_any},
                                                                          {"strided", lamina_graph_layout_type_strided},
                                                                          {"opaque", lamina_graph_layout_type_opaque}}));
}

TEST_F(EnumeratorsOfTheSpecification, Properties) {
  EXPECT_EQ(values_of(enums_["property_type"]),
            (std::map<std::string, int>{{"undef", lamina_graph_tensor_property_undef},
                                        {"variable", lamina_graph_tensor_property_variable},
                                        {"constant", lamina_graph_tensor_property_constant},
                                        {"host_scalar", lamina_graph_tensor_property_host_scalar}}));
}

TEST_F(EnumeratorsOfTheSpecification, PoliciesEnginesAndFpMathModes) {
  EXPECT_EQ(values_of(enums_["partition_policy"]),
            (std::map<std::string, int>{{"fusion", lamina_graph_partition_policy_fusion},
                                        {"debug", lamina_graph_partition_policy_debug}}));
  EXPECT_EQ(values_of(enums_["engine_kind"]),
            (std::map<std::string, int>{{"any", lamina_any_engine}, {"cpu", lamina_cpu}, {"gpu", lamina_gpu}}));
  EXPECT_EQ(values_of(enums_["fpmath_mode"]), (std::map<std::string, int>{{"strict", lamina_fpmath_mode_strict},
                                                                          {"bf16", lamina_fpmath_mode_bf16},
                                                                          {"f16", lamina_fpmath_mode_f16},
                                                                          {"any", lamina_fpmath_mode_any},
                                                                          {"tf32", lamina_fpmath_mode_tf32}}));
}

TEST_F(EnumeratorsOfTheSpecification, Statuses) {
  EXPECT_EQ(values_of(enums_["status"]), (std::map<std::string, int>{{"success", lamina_success},
                                                                     {"out_of_memory", lamina_out_of_memory},
                                                                     {"invalid_arguments", lamina_invalid_arguments},
                                                                     {"unimplemented", lamina_unimplemented},
                                                                     {"last_impl_reached", lamina_last_impl_reached},
                                                                     {"runtime_error", lamina_runtime_error},
                                                                     {"not_required", lamina_not_required},
                                                                     {"invalid_graph", lamina_invalid_graph},
                                                                     {"invalid_graph_op", lamina_invalid_graph_op},
                                                                     {"invalid_shape", lamina_invalid_shape},
                                                                     {"invalid_data_type", lamina_invalid_data_type}}));
}

// Every attribute of every schema can be set through the public interface with the schema's type.
TEST(Enumerators, EveryAttributeOfEverySchemaHasOneOfItsType) {
  std::map<std::string, lamina::AttributeType> ours;
#define LAMINA_ATTRIBUTE(name, value, type) ours[#name] = lamina::AttributeType::type;
#include "graph/attribute_kinds.def"
  for (const lamina::OpKind kind : lamina::all_op_kinds()) {
    for (const lamina::AttributeSpec& attribute : lamina::schema_of(kind).attributes) {
      ASSERT_EQ(ours.count(attribute.name), 1u) << attribute.name << " of " << lamina::name_of(kind);
      EXPECT_EQ(ours[attribute.name], attribute.type) << attribute.name << " of " << lamina::name_of(kind);
    }
  }
}

}  // namespace
}  // namespace api_test
