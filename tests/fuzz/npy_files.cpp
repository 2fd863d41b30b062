// An .npy file of arbitrary bytes for a small tensor of any type: it is read completely, or rejected with a message.
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/fuzz_input.h"
#include "interface/status.h"
#include "lamina/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using lamina::DataType;
  static const std::vector<DataType> types = {DataType::f32, DataType::f64, DataType::f16, DataType::bf16,   DataType::s8,
                                              DataType::u8,  DataType::s32, DataType::s4,  DataType::boolean};
  lamina::fuzz::FuzzInput input(data, size);
  lamina::LogicalTensor tensor;
  tensor.id = 7;
  tensor.dtype = input.pick(types);
  tensor.shape = lamina::Dims{2, 3};
  if (input.flip()) tensor.shape = lamina::Dims{};
  const int file = memfd_create("fuzz", 0);
  const std::string_view bytes = input.rest();
  lamina::fuzz::require(file >= 0 && write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "a file");
  try {
    lamina::driver::Buffer buffer(tensor);
    lamina::driver::read_npy("/proc/self/fd/" + std::to_string(file), buffer);
  } catch (const lamina::Error& error) {
    lamina::fuzz::require(error.what()[0] != '\0', "a refusal has a sentence");
  }
  close(file);
  return 0;
}
