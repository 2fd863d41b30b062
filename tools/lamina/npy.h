// .npy files, as numpy writes them: format 1 to 3, little endian, C order.
//
// f32, f64, f16, s8, u8, s32, s64 are numpy's own types; bf16 is raw bits in uint16, f8 raw bits in uint8, s4 and u4 one
// value per byte, boolean uint8.
#pragma once

#include <iosfwd>
#include <string>

#include "lamina/buffer.h"

namespace lamina::driver {

// Fills `buffer` from the file. Throws Error(invalid_arguments) with `PATH: ...`, the tensor, the file's type and shape, and
// the expected ones.
void read_npy(const std::string& path, Buffer& buffer);

void write_npy(std::ostream& out, const Buffer& buffer);

}  // namespace lamina::driver
