// The results of a replay as a table.
#pragma once

#include <iosfwd>
#include <vector>

#include "lamina/report.h"

namespace lamina::driver {

// The verdict comes first. A row has at most 80 characters: the middle of a long name is left out. With `wide`, there are more
// columns, names are whole, and each row has its details below, which else only those have that are not ok.
void print_table(std::ostream& out, const std::vector<FileReport>& files, bool wide);

}  // namespace lamina::driver
