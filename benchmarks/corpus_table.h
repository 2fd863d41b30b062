// What `corpus` found of each dump, and how it is told: a table, means over types of data, and JSON.
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
// The least usual type of any tensor: int8 for s8 and u8, then bf16, then f16.
TypeClass class_of(const lamina::GraphDump& dump);

struct Figures {
  double seconds = 0;    // median of the rounds; 0: not measured
  double spread = 0;     // distance of the quartiles over the median
  bool is_once = false;  // of the first run alone, which took too long for more
  size_t partitions = 0;
  double compile_ms = 0;
};

struct FileResult {
  std::string file;
  TypeClass type = TypeClass::f32;
  Figures lamina, onednn;
  double difference = -1;  // of the results, over their size; -1: nothing to compare
  bool is_wrong = false;   // they differ by more than two ways of rounding can
  double others = 0;       // of the machine, taken by other programs meanwhile
  std::string remark;
  std::string refusal;  // who does not run it, and why; empty: both do
  double ratio() const { return lamina.seconds > 0 ? onednn.seconds / lamina.seconds : 0; }
};

void print_machine();
void print_head();
void print_row(const FileResult& result);
// Per type: geometric mean, least ratio, count; then what was left out, with the reasons.
void print_sums(const std::vector<FileResult>& results);

nlohmann::ordered_json json_of(const std::vector<FileResult>& results);

}  // namespace bench
