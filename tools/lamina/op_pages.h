// The pages of docs/ops, made from the schemas: one an op, and an index.
#pragma once

#include <map>
#include <string>

#include "interface/op_schema.h"

namespace lamina::driver {

std::string op_page(const OpSchema& schema);
std::map<std::string, std::string> op_pages();  // file name -> text

}  // namespace lamina::driver
