// Schemas contain all facts about ops: the facts are consistent, and no other file lists kinds or ports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <stdexcept>

#include "interface/op_schema.h"
#include "interface/schema_text.h"
#include "support/files.h"
#include "support/valid_op.h"

namespace lamina::testing {
namespace {

namespace fs = std::filesystem;

class EveryOp : public ::testing::TestWithParam<OpKind> {
 protected:
  const OpSchema& schema() const { return schema_of(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Kinds, EveryOp, ::testing::ValuesIn(all_op_kinds()),
                         [](const auto& instance) { return std::string(name_of(instance.param)); });

TEST_P(EveryOp, HasDomainsOfSomeWidthAndSaysThemInWords) {
  const OpBuilder op = a_valid_op(GetParam());
  const OpView view = op.view();
  LogicalTensor tensor;
  for (const PortSpec& port : schema().inputs) {
    const DomainRule* rule = domain_of(port);
    if (rule == nullptr) continue;
    EXPECT_FALSE(rule->text.empty()) << port.name;
    EXPECT_THAT(data_text(schema(), [](const std::string& name) { return name; }), ::testing::HasSubstr(port.name));
    for (const DataType type : {DataType::f32, DataType::f16, DataType::u8})
      for (const Dims& shape : {Dims{}, Dims{1}, Dims{4, 8}, Dims{kUnknownDim, 8}}) {
        tensor.dtype = type;
        tensor.shape = shape;
        const Domain domain = rule->domain(view, tensor).value_or(Domain{});
        EXPECT_LE(domain.low, domain.high) << port.name;
      }
  }
}

TEST_P(EveryOp, HasTraitsThatHoldTogether) {
  const OpTraits& traits = schema().traits;
  if (traits.commutative) {
    EXPECT_EQ(schema().inputs.size(), 2U);
  }
  if (traits.reduces) {
    EXPECT_EQ(schema().op_class, OpClass::inner_reduction);
  }
  if (traits.sums) {
    EXPECT_TRUE(traits.reduces);
  }
  if (traits.contracts) {
    EXPECT_EQ(schema().op_class, OpClass::library);
    EXPECT_GE(schema().inputs.size(), 2U);
  }
  if (traits.copies) {
    EXPECT_EQ(error_of(schema()), 0);
  }
  if (traits.converts) {
    EXPECT_TRUE(traits.copies);
  }
  EXPECT_GE(error_of(schema()), 0);
  EXPECT_LT(error_of(schema()), 1e-5) << "f32 arithmetic is better than that";
}

// Statistics without a domain of their own are those of the data, so the schema names that input.
TEST_P(EveryOp, SaysWhatItsStatisticsAreOf) {
  size_t normalized = 0;
  for (const PortSpec& port : schema().inputs) normalized += port.role == PortRole::normalized ? 1 : 0;
  for (const PortSpec& port : schema().inputs)
    if ((port.role == PortRole::mean || port.role == PortRole::variance) && !port.domain) {
      EXPECT_EQ(normalized, 1U) << port.name;
    }
  EXPECT_LE(normalized, 1U);
}

TEST(OpFacts, PortsOfNormsHaveTheirRoles) {
  const OpSchema& schema = schema_of(OpKind::LayerNormBackward);
  const auto role_of = [](const std::vector<PortSpec>& ports, std::string_view name) {
    for (const PortSpec& port : ports)
      if (port.name == name) return port.role;
    throw std::logic_error("no such port");
  };
  EXPECT_EQ(role_of(schema.inputs, "src"), PortRole::normalized);
  EXPECT_EQ(role_of(schema.inputs, "diff_dst"), PortRole::data);
  EXPECT_EQ(role_of(schema.inputs, "gamma"), PortRole::gamma);
  EXPECT_EQ(role_of(schema.inputs, "mean"), PortRole::mean);
  EXPECT_EQ(role_of(schema.outputs, "diff_beta"), PortRole::affine_gradient);
  EXPECT_FALSE(is_parameter(PortRole::data) || is_parameter(PortRole::normalized));
  EXPECT_TRUE(is_parameter(PortRole::gamma) && is_parameter(PortRole::affine_gradient) && is_parameter(PortRole::variance));
}

TEST(OpFacts, APortIsFoundByItsRoleAmongThoseThatExist) {
  Op op{0, OpKind::LayerNormBackward, "op0", {}, {}, {}};
  fill_defaults(op);
  const std::vector<PortSpec>& inputs = schema_of(op.kind).inputs;
  EXPECT_EQ(port_with_role(inputs, op.attributes, PortRole::gamma), 4U);
  op.attributes["use_stats"] = false;
  EXPECT_EQ(port_with_role(inputs, op.attributes, PortRole::gamma), 2U);
  op.attributes["use_affine"] = false;
  EXPECT_EQ(port_with_role(inputs, op.attributes, PortRole::gamma), SIZE_MAX);
}

TEST(OpFacts, ChannelsAreLastUnlessTheFormatSaysOtherwise) {
  Op op{0, OpKind::BiasAdd, "op0", {}, {}, {}};
  EXPECT_TRUE(has_channels_last(op));
  op.attributes["data_format"] = std::string("NXC");
  EXPECT_TRUE(has_channels_last(op));
  op.attributes["data_format"] = std::string("NCX");
  EXPECT_FALSE(has_channels_last(op));
}

TEST(OpFacts, OnlyStaticQuantisationHasConstantScales) {
  std::vector<OpKind> found;
  for (const OpKind kind : all_op_kinds())
    if (has_constant_scales(kind)) found.push_back(kind);
  EXPECT_THAT(found, ::testing::UnorderedElementsAre(OpKind::Quantize, OpKind::Dequantize));
}

TEST(OpFacts, AreSaidInWords) {
  const auto plain = [](const std::string& name) { return name; };
  EXPECT_EQ(data_text(schema_of(OpKind::Log), plain), "src 0.25 to 4");
  EXPECT_EQ(data_text(schema_of(OpKind::BiasAdd), plain), "");
  EXPECT_EQ(data_text(schema_of(OpKind::GroupNormBackward), plain),
            "src -1 to 3; mean mean of src; variance variance of src; gamma 0.5 to 1.5");
  EXPECT_EQ(accuracy_text(schema_of(OpKind::LayerNorm)),
            "in f32 within 5e-07 of the value or of its tensor's root mean square, before it is rounded to its type");
  EXPECT_EQ(accuracy_text(schema_of(OpKind::Concat)), "exact, except for the rounding to its type");
  EXPECT_EQ(accuracy_text(schema_of(OpKind::End)), "");
  EXPECT_EQ(
      range_text(schema_of(OpKind::ReduceL2)),
      "magnitudes of src up to 1e+17 in f32 and bf16, in rows of up to 8192 elements, and up to 1e+150 in f64; beyond them a "
      "row's sum of squares may overflow to inf, and a quotient by its root is 0");
  EXPECT_EQ(range_text(schema_of(OpKind::Add)), "");
}

// ---- no other file lists ops

constexpr size_t kHandful = 2;  // a file may name this number of kinds and of ports

// These folders implement kinds and ports.
const std::vector<std::string> kHomes{"src/interface/ops/", "src/kernels/", "src/backends/reference/", "src/passes/patterns/",
                                      "src/backends/cpu/library/"};

// Files that handle particular ops, with the reason.
const std::map<std::string, std::string> kExceptions{
    {"interface/older_names.cpp", "what ops and attributes were called in dumps of earlier versions"},
    {"passes/tiling/quantized_product.cpp",
     "the two forms of Dequantize, and which axis of a library op's weights its scales run along"},
    {"passes/tiling/causal_mask.cpp", "recognises a causal mask that is written out in small ops"},
    {"passes/tiling/post_ops.cpp", "the operations through which an operand's scale moves, and the one that makes NaN"},
    {"gpu/emit/emit_matmul.cpp", "names of a program's variables, which are those of the ports"},
    {"passes/canonicalize.cpp", "rewrites single kinds into others, port by port"},
    {"layer_norm_graph.cpp", "the LayerNorm primitive as a graph: builds it op by op"},
    {"layer_norm_problem.cpp", "names of the LayerNorm primitive's arguments, which are those of its ports"},
    {"lamina/attention_rules.cpp", "recognises attention written out in small ops"},
    {"tools/make_examples.cpp", "builds the example graphs op by op"},
};

struct Names {
  std::set<std::string> kinds, ports;
};

const Names& known_names() {
  static const Names names = [] {
    Names found;
    for (const OpKind kind : all_op_kinds()) {
      found.kinds.emplace(name_of(kind));
      for (const auto* ports : {&schema_of(kind).inputs, &schema_of(kind).outputs})
        for (const PortSpec& port : *ports) found.ports.insert(port.name);
    }
    return found;
  }();
  return names;
}

// Returns the kinds (enumerators and strings) and ports that the code names; comments are ignored.
Names names_in(const std::string& text) {
  static const std::regex comment("//[^\n]*"), enumerator("OpKind::(\\w+)"), literal("\"([^\"\\\\\n]*)\"");
  const std::string code = std::regex_replace(text, comment, "");
  Names found;
  for (auto at = std::sregex_iterator(code.begin(), code.end(), enumerator); at != std::sregex_iterator(); ++at)
    if (known_names().kinds.contains((*at)[1])) found.kinds.insert((*at)[1]);
  for (auto at = std::sregex_iterator(code.begin(), code.end(), literal); at != std::sregex_iterator(); ++at) {
    if (known_names().kinds.contains((*at)[1])) found.kinds.insert((*at)[1]);
    if (known_names().ports.contains((*at)[1])) found.ports.insert((*at)[1]);
  }
  return found;
}

bool is_source(const fs::path& path) { return path.extension() == ".cpp" || path.extension() == ".h"; }

bool is_home(const std::string& path) {
  return std::any_of(kHomes.begin(), kHomes.end(), [&](const std::string& home) { return path.starts_with(home); });
}

TEST(OpFacts, ListsOfKindsAndPortsAreSeen) {
  const Names found = names_in(
      "bool f(OpKind kind) { return kind == OpKind::Add || kind == OpKind::Exp; }  // not OpKind::Log\n"
      "bool g(std::string_view name) { return name == \"Tanh\" || name == \"gamma\" || name == \"other\"; }\n");
  EXPECT_EQ(found.kinds, (std::set<std::string>{"Add", "Exp", "Tanh"}));
  EXPECT_EQ(found.ports, std::set<std::string>{"gamma"});
}

TEST(OpFacts, NoFileOutsideTheirHomesListsKindsOrPorts) {
  int files = 0;
  std::set<std::string> used;
  for (const char* folder : {"src", "tools"})
    for (const auto& entry : fs::recursive_directory_iterator(kTree / folder)) {
      const std::string path = fs::relative(entry.path(), kTree).generic_string();
      if (!entry.is_regular_file() || !is_source(entry.path()) || is_home(path)) continue;
      ++files;
      const Names found = names_in(text_of(entry.path()));
      if (found.kinds.size() <= kHandful && found.ports.size() <= kHandful) continue;
      const auto exception =
          std::find_if(kExceptions.begin(), kExceptions.end(), [&](const auto& named) { return path.ends_with(named.first); });
      if (exception != kExceptions.end()) {
        used.insert(exception->first);
        continue;
      }
      EXPECT_THAT(found.kinds, ::testing::SizeIs(::testing::Le(kHandful)))
          << path << " lists op kinds: say what they have in common in their schemas and ask for that";
      EXPECT_THAT(found.ports, ::testing::SizeIs(::testing::Le(kHandful)))
          << path << " lists ports: give them a role in their schemas and ask for that";
    }
  EXPECT_GT(files, 100);
  for (const auto& [file, why] : kExceptions)
    EXPECT_TRUE(used.contains(file)) << file << " needs no exception any more: " << why;
}

}  // namespace
}  // namespace lamina::testing
