#include "interface/type_rules.h"

#include <utility>

#include "interface/status.h"

namespace lamina {

std::vector<DataType> floats_of_opset() { return {DataType::f32, DataType::bf16, DataType::f16}; }

std::vector<DataType> floats_and_f64() { return {DataType::f32, DataType::bf16, DataType::f16, DataType::f64}; }

std::vector<DataType> all_types() {
  return {
#define LAMINA_DATA_TYPE(name, value, bits, kind, npy) DataType::name,
#include "graph/data_types.def"
  };
}

std::vector<DataType> small_floats_of(int bits) {
  std::vector<DataType> types = all_types();
  std::erase_if(types, [&](DataType type) { return kind_of(type) != TypeKind::small_float || bits_of(type) != bits; });
  return types;
}

namespace {

std::vector<DataType> integers_of(int least_bits) {
  std::vector<DataType> types = all_types();
  std::erase_if(types, [&](DataType type) { return !is_integer(type) || bits_of(type) < least_bits; });
  return types;
}

std::vector<DataType> floats_and(const std::vector<DataType>& integers) {
  std::vector<DataType> types = floats_and_f64();
  types.insert(types.end(), integers.begin(), integers.end());
  return types;
}

}  // namespace

std::vector<DataType> computing_integers() { return integers_of(16); }

std::vector<DataType> floats_and_integers() { return floats_and(computing_integers()); }

std::vector<DataType> whole_integers() { return integers_of(8); }

std::vector<DataType> numbers() { return floats_and(whole_integers()); }

TypeRule stays_alone(DataType alone, std::vector<std::string> variables) {
  return [alone, variables = std::move(variables)](const TypeOf& type_of) -> std::string {
    bool has_it = false;
    bool has_other = false;
    for (const std::string& variable : variables) {
      const DataType type = type_of(variable);
      has_it = has_it || type == alone;
      has_other = has_other || (type != alone && type != DataType::undef);
    }
    return has_it && has_other ? join(name_of(alone), " with ", name_of(alone), " only") : "";
  };
}

TypeRule f64_stays_alone(std::vector<std::string> variables) { return stays_alone(DataType::f64, std::move(variables)); }

TypeRule only_with_same(DataType type, std::string variable, std::string source) {
  return [=](const TypeOf& type_of) -> std::string {
    if (type_of(variable) != type || type_of(source) == type) return "";
    return join(name_of(type), " for gamma, beta and statistics only with ", name_of(type), " data");
  };
}

TypeRule equal_or_f32(std::string variable, std::string source, bool either) {
  return [=](const TypeOf& type_of) -> std::string {
    const DataType type = type_of(variable);
    if (type == type_of(source) || type == DataType::f32 || type == DataType::undef) return "";
    if (either && type_of(source) == DataType::f32) return "";
    return either ? "equal types, or f32 on one side" : "the type of the input, or f32";
  };
}

TypeRule all_of(std::vector<TypeRule> rules) {
  return [rules = std::move(rules)](const TypeOf& type_of) -> std::string {
    for (const TypeRule& rule : rules)
      if (std::string allowed = rule(type_of); !allowed.empty()) return allowed;
    return "";
  };
}

}  // namespace lamina
