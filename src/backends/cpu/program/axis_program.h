// TopK, CumSum, CumProd and linear recurrences as data.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/program/bytes.h"
#include "interface/data_type.h"
#include "interface/logical_tensor.h"

namespace lamina::cpu {

// The rows of several tensors along one axis, whose shapes differ along that axis only. Strides are in elements.
struct AxisRowsProgram {
  Dims shape = {};                 // of the other axes
  std::vector<Dims> strides = {};  // per tensor: of the other axes, then of the axis itself

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.shape), visit(self.strides);
  }
};

struct TopKProgram {
  DataType dtype = DataType::f32;
  int64_t extent = 0, k = 0;
  bool largest = true, has_values = true, has_indices = true;
  AxisRowsProgram rows = {};  // of src, values, indices; an output that is absent has those of the other one
  int threads = 1;            // at most

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.dtype), visit(self.extent), visit(self.k), visit(self.largest), visit(self.has_values);
    visit(self.has_indices), visit(self.rows), visit(self.threads);
  }
};

struct RunningProgram {
  enum class Combine { sum, product } combine = Combine::sum;
  DataType dtype = DataType::f32;
  int64_t extent = 0;
  bool exclusive = false, reverse = false;
  AxisRowsProgram rows = {};  // of src and dst
  int threads = 1;

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.combine), visit(self.dtype), visit(self.extent), visit(self.exclusive), visit(self.reverse), visit(self.rows);
    visit(self.threads);
  }
};

struct RecurrenceProgram {
  bool is_backward = false;
  DataType dtype = DataType::f32;
  int64_t extent = 0;
  bool reverse = false;
  AxisRowsProgram rows = {};  // of the inputs and the outputs
  int threads = 1;

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.is_backward), visit(self.dtype), visit(self.extent), visit(self.reverse), visit(self.rows), visit(self.threads);
  }
};

template <>
inline constexpr int kLastEnumerator<RunningProgram::Combine> = static_cast<int>(RunningProgram::Combine::product);

}  // namespace lamina::cpu
