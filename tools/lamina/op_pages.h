// The pages of docs/ops, generated from the schemas: one page per op, and an index.
#pragma once

#include <map>
#include <string>

#include "interface/op_schema.h"

namespace lamina::driver {

std::string op_page(const OpSchema& schema);
std::map<std::string, std::string> op_pages();  // file name -> text

}  // namespace lamina::driver
