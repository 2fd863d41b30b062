// The results of `corpus` for each dump, as a table, as means per data type, and as JSON.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "interface/json/json.h"

namespace bench {

enum class TypeClass { f32, bf16, f16, int8 };
inline constexpr TypeClass kTypeClasses[] = {TypeClass::f32, TypeClass::bf16, TypeClass::f16, TypeClass::int8};
const char* name_of(TypeClass type);
// The most specific type of any tensor: int8 for s8 and u8, then bf16, then f16, then f32.
TypeClass class_of(const lamina::GraphDump& dump);

struct Figures {
  double seconds = 0;    // median of the rounds; 0: not measured
  double spread = 0;     // interquartile range over the median
  bool is_once = false;  // only the first run was measured, because it took too long
  size_t partitions = 0;
  double compile_ms = 0;
};

struct FileResult {
  std::string file;
  TypeClass type = TypeClass::f32;
  Figures lamina, onednn;
  double difference = -1;  // of the results, relative to their norm; -1: there is nothing to compare
  bool is_wrong = false;   // the difference is larger than rounding explains
  double others = 0;       // fraction of the machine's time that other programs used meanwhile
  std::string remark;
  std::string refusal;  // the library that does not run it, and the reason; empty if both run it
  double ratio() const { return lamina.seconds > 0 ? onednn.seconds / lamina.seconds : 0; }
};

void print_machine();
void print_head();
void print_row(const FileResult& result);
// Per type: geometric mean, least ratio, count; then the excluded dumps with the reasons.
void print_sums(const std::vector<FileResult>& results);

nlohmann::ordered_json json_of(const std::vector<FileResult>& results);

}  // namespace bench
