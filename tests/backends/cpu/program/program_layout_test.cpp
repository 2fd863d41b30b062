// Files hold programs, and their code calls with these structs: a change of either needs a new kProgramVersion, which refuses
// files of other versions.
#include <gtest/gtest.h>

#include <string>

#include "backends/cpu/program/axis_program.h"
#include "backends/cpu/program/grouped_program.h"
#include "backends/cpu/program/kernel_program.h"
#include "backends/cpu/program/product_calls.h"
#include "backends/cpu/program/product_program.h"
#include "backends/cpu/program/program_file.h"
#include "backends/cpu/program/tile_program.h"
#include "backends/cpu/program/window_program.h"
#include "interface/status.h"

namespace lamina::testing {
namespace {

// The bytes of a program without entries in its lists, which show most changes of its fields.
template <typename Program>
std::string layout(const char* name) {
  cpu::ByteWriter writer;
  writer.write(Program{});
  return join(name, " ", writer.bytes().size(), "\n");
}

TEST(ProgramLayout, IsThatOfItsVersion) {
  const std::string programs =
      join(layout<cpu::AxisRowsProgram>("AxisRowsProgram"), layout<cpu::TopKProgram>("TopKProgram"),
           layout<cpu::RunningProgram>("RunningProgram"), layout<cpu::RecurrenceProgram>("RecurrenceProgram"),
           layout<cpu::GroupedProgram>("GroupedProgram"), layout<cpu::GroupedSumsProgram>("GroupedSumsProgram"),
           layout<cpu::KernelProgram>("KernelProgram"), layout<cpu::ProductProgram>("ProductProgram"),
           layout<cpu::TileProgram>("TileProgram"), layout<cpu::WindowRowsProgram>("WindowRowsProgram"),
           layout<cpu::ConvolutionProgram>("ConvolutionProgram"), layout<cpu::LineProgram>("LineProgram"),
           layout<cpu::TapProgram>("TapProgram"), "ProductStrides ", sizeof(cpu::ProductStrides), "\nLineStrides ",
           sizeof(cpu::LineStrides), "\nTapStrides ", sizeof(cpu::TapStrides), "\n");
  EXPECT_EQ(join("version ", cpu::kProgramVersion, "\n", programs), R"(version 13
AxisRowsProgram 2
TopKProgram 9
RunningProgram 8
RecurrenceProgram 7
GroupedProgram 7
GroupedSumsProgram 10
KernelProgram 29
ProductProgram 57
TileProgram 20
WindowRowsProgram 34
ConvolutionProgram 22
LineProgram 33
TapProgram 25
ProductStrides 168
LineStrides 112
TapStrides 48
)") << "a change of the layout needs a new kProgramVersion";
}

}  // namespace
}  // namespace lamina::testing
