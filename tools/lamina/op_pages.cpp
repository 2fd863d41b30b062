#include "lamina/op_pages.h"

#include <algorithm>
#include <cctype>

#include "interface/schema_text.h"
#include "interface/status.h"
#include "kernels/lower.h"
#include "lamina/op_examples.h"

namespace lamina::driver {
namespace {

const char* const kMadeBy = "<!-- Made from the schema by `make_op_pages`: build the target `op_pages` to make it anew. -->\n";

std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.replace(at, 1, "\\|");
  return text.empty() ? " " : text;
}

std::string row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& text : cells) line += " " + cell(text) + " |";
  return line + "\n";
}

std::string table(const std::vector<std::string>& titles, const std::vector<std::vector<std::string>>& rows) {
  std::string text = row(titles) + row(std::vector<std::string>(titles.size(), "---"));
  for (const auto& cells : rows) text += row(cells);
  return text;
}

// Splits a formula at its semicolons, one part per line.
std::string formula_block(const std::string& formula) {
  std::string text = "    " + formula;
  for (size_t at = 0; (at = text.find("; ", at)) != std::string::npos; at += 5) text.replace(at, 2, "\n    ");
  return text + "\n";
}

std::string code(std::string_view text) { return join('`', text, '`'); }

std::string ports(const char* title, const char* last_column, const std::vector<PortSpec>& specs) {
  std::string text = join("\n## ", title, "\n\n");
  if (specs.empty()) return text + "None.\n";
  std::vector<std::vector<std::string>> rows;
  for (const PortSpec& port : specs) rows.push_back({code(port.name), port.type, presence_text(port), port.meaning});
  return text + table({"port", "type", "given", last_column}, rows);
}

std::string attributes(const std::vector<AttributeSpec>& specs) {
  std::string text = "\n## Attributes\n\n";
  if (specs.empty()) return text + "None.\n";
  std::vector<std::vector<std::string>> rows;
  for (const AttributeSpec& spec : specs)
    rows.push_back({code(spec.name), std::string(name_of(spec.type)), default_text(spec), allowed_text(spec), spec.meaning});
  return text + table({"attribute", "type", "given", "allowed", "meaning"}, rows);
}

// Combinations that differ only in their last type share a line.
std::string types(const OpSchema& schema) {
  std::string text = "\n## Types\n\n";
  if (schema.types.empty()) return text + "Any.\n";
  std::vector<std::string> titles;
  for (const TypeVariable& variable : schema.types) titles.push_back(variable.name);
  std::vector<std::vector<std::string>> rows;
  std::vector<DataType> before;
  for (const std::vector<DataType>& combination : legal_types(schema)) {
    const std::string last(name_of(combination.back()));
    const bool continues = !before.empty() && std::equal(combination.begin(), combination.end() - 1, before.begin());
    before = combination;
    if (continues) {
      rows.back().back() += ", " + last;
      continue;
    }
    rows.emplace_back();
    for (const DataType type : combination) rows.back().emplace_back(name_of(type));
  }
  text += table(titles, rows);
  return schema.type_rule_text.empty() ? text : text + "\n" + schema.type_rule_text + ".\n";
}

std::string as_a_step(const OpSchema& schema) {
  std::string text = "`cpu` runs it as a step of its own, never inside a generated kernel";
  if (!schema.traits.contracts) return text + '.';
  text += ": through oneDNN, in builds that have it";
  if (schema.kind != OpKind::MatMul) return text + '.';
  return text +
         ", and by generated code in f64 and in other builds; chains of products run in tiles with the ops beside them. `gpu` "
         "generates a program for it, except in f64.";
}

// Run by tests: `OpExamples` and tests/python/op_pages_test.py.
std::string examples(const OpSchema& schema) {
  if (!has_example(schema)) return "";
  return join("\n## Example\n\n```python\n", example_python(schema),
              "```\n\nThe same op as a dump, which `lamina replay FILE --check` runs:\n\n```json\n", example_json(schema),
              "```\n");
}

// Which engines run the op, and what it fuses with.
std::string engines(const OpSchema& schema) {
  const bool generated = kernel::has_lowering(schema.kind);
  switch (schema.op_class) {
    case OpClass::marker: return "It computes nothing and runs nowhere: it marks a value that leaves the graph.";
    case OpClass::opaque:
      return "No engine runs it. It represents an op that lamina does not know, and it is in no partition with other ops.";
    case OpClass::library:
      if (!generated) return as_a_step(schema);
      break;
    case OpClass::inner_reduction:
      if (schema.nest == LoopNest::by_class)
        return "The passes rewrite it to the op that its formula names; then `cpu` generates a kernel for it.";
      break;
    default: break;
  }
  if (!generated) return "`reference` only: plain loops in double precision.";
  const std::string cpu = "`cpu` generates a kernel for it";
  if (schema.op_class == OpClass::elementwise) return cpu + ", fused with its neighbours.";
  if (schema.nest == LoopNest::gathered || schema.nest == LoopNest::scattered)
    return cpu + ", fused with what reads its result. The indices are checked before the kernel runs.";
  if (schema.op_class == OpClass::inner_reduction)
    return cpu +
           ": its rows are the rows of the loop nest, and elementwise ops and reductions over the same axes are fused with it.";
  if (schema.nest == LoopNest::sliced) return cpu + "; a neighbour that reads its result reads src in place.";
  if (schema.nest == LoopNest::windows)
    return cpu + ", fused with what reads its result, or runs it as a step of its own where that is faster.";
  if (schema.nest == LoopNest::concatenated) return cpu + " of its own: one copy for each input.";
  return cpu + "; if a neighbour can read the values in their new places, nothing is copied.";
}

std::string index() {
  std::string text(kMadeBy);
  text += "# Operations\n\nWhat each op computes, from its schema. `lamina ops KIND` prints the same in a terminal.\n\n";
  std::vector<std::vector<std::string>> rows;
  for (const OpKind kind : all_op_kinds()) {
    const OpSchema& schema = schema_of(kind);
    const std::string name(name_of(kind));
    rows.push_back({join('[', name, "](", name, ".md)"), std::string(name_of(schema.op_class)), schema.formula});
  }
  return text + table({"op", "class", "what it computes"}, rows);
}

// A sentence that begins with a small letter, under a heading.
std::string paragraph(std::string_view heading, std::string sentence) {
  if (sentence.empty()) return "";
  sentence.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence.front())));
  return join("\n## ", heading, "\n\n", sentence, ".\n");
}

}  // namespace

std::string op_page(const OpSchema& schema) {
  std::string text = join(kMadeBy, "# ", name_of(schema.kind), "\n\n", formula_block(schema.formula));
  text += join("\nClass: ", name_of(schema.op_class), ". Enumerator: ", static_cast<int>(schema.kind), ".\n");
  if (!schema.source.empty()) text += join("Source: ", schema.source, ".\n");
  text += ports("Inputs", "shape and role", schema.inputs);
  if (const std::string data = data_text(schema, code); !data.empty())
    text += join("\nGenerated data (`lamina replay`): ", data, ".\n");
  text += ports("Outputs", "shape", schema.outputs);
  for (const auto& [input, output] : schema.inplace)
    text += join("\n", code(input), " and ", code(output), " may share memory.\n");
  text += attributes(schema.attributes);
  text += types(schema);
  text += paragraph("Accuracy", accuracy_text(schema)) + paragraph("Range", range_text(schema));
  return text + "\n## Engines\n\n" + engines(schema) + "\n" + examples(schema);
}

std::map<std::string, std::string> op_pages() {
  std::map<std::string, std::string> pages{{"README.md", index()}};
  for (const OpKind kind : all_op_kinds()) pages[join(name_of(kind), ".md")] = op_page(schema_of(kind));
  return pages;
}

}  // namespace lamina::driver
