// From object files to one image of machine code that runs wherever it is mapped, for files of exported models.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/program/program_writer.h"
#include "backends/cpu/targets/target.h"

namespace lamina::cpu {

struct CodeImage {
  std::string bytes;              // code, then constants; nothing in it is written
  std::vector<uint64_t> offsets;  // of each function
};

// Addresses in the image are relative, so that it can be mapped from a file, at the start of a page and without changes. Throws
// Error(unimplemented) for code that needs a symbol from elsewhere, or memory to write to, and names its function.
CodeImage link_image(std::span<const ProgramWriter::Code> codes, const Architecture& architecture);

}  // namespace lamina::cpu
