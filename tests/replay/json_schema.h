// What programs read is as its schema in docs/ says.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace lamina::testing {

inline nlohmann::json schema_of_docs(const std::string& name) {
  std::ifstream file(LAMINA_SOURCE_DIR "/docs/" + name);
  return nlohmann::json::parse(file);
}

// Every member of the value is in the schema, and all that the schema requires are there.
inline void expect_described(const nlohmann::json& value, const nlohmann::json& schema, const std::string& place) {
  SCOPED_TRACE(place);
  if (value.is_array()) {
    for (const nlohmann::json& item : value) expect_described(item, schema.at("items"), place + "[]");
  } else if (value.is_object()) {
    for (const auto& [name, member] : value.items()) {
      ASSERT_TRUE(schema.at("properties").contains(name)) << name;
      expect_described(member, schema.at("properties").at(name), place + "." + name);
    }
    for (const nlohmann::json& name : schema.at("required")) EXPECT_TRUE(value.contains(name)) << name;
  } else if (schema.contains("const")) {
    EXPECT_EQ(value, schema.at("const"));
  } else if (schema.contains("enum")) {
    EXPECT_THAT(schema.at("enum"), ::testing::Contains(value));
  } else {
    const std::string type = value.is_null()      ? "null"
                             : value.is_boolean() ? "boolean"
                             : value.is_string()  ? "string"
                                                  : "number";
    const nlohmann::json& allowed = schema.at("type");
    const auto is = [&](const nlohmann::json& one) { return one == type || (one == "integer" && value.is_number_integer()); };
    EXPECT_TRUE(allowed.is_array() ? std::any_of(allowed.begin(), allowed.end(), is) : is(allowed))
        << value << " is no " << allowed;
  }
}

}  // namespace lamina::testing
