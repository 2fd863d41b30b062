// The part of the C ABI of DLPack 1.3 that is used here: a tensor, and the table of functions by which a framework's tensor
// type shares its objects without a capsule. Layout and names are those of the specification (dlpack.h).
#pragma once

#include <cstdint>

namespace lamina::python::dlpack {

inline constexpr int kCpu = 1;
enum Code : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kBool = 6, kFloat8E4m3fn = 10, kFloat8E5m2 = 12 };

struct Version {
  uint32_t major;
  uint32_t minor;
};
struct Device {
  int32_t type;
  int32_t id;
};
struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct Tensor {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct ExchangeHeader {
  Version version;
  ExchangeHeader* previous;
};
struct Exchange {
  ExchangeHeader header;
  void* managed_tensor_allocator;
  void* managed_tensor_from_py_object;
  void* managed_tensor_to_py_object;
  int (*tensor_from_py_object)(void* object, Tensor* out);  // `out` borrows the object's memory; the function may be null
  void* current_work_stream;
};

}  // namespace lamina::python::dlpack
