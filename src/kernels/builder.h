// Builds the body of a kernel. It sets types, levels and phases, so that the files in kernels/ops contain only the
// mathematics.
#pragma once

#include <string>
#include <vector>

#include "kernels/kernel_ir.h"

namespace lamina::kernel {

class Builder;

// A node under construction. Arithmetic on it appends nodes. Operands of different types (f32 and f64) are a bug in the
// lowering and fail a check. A constant gets the type of the other operand.
struct Value {
  Builder* builder = nullptr;
  NodeIndex node = -1;
  explicit operator bool() const { return node >= 0; }
  Type type() const;
};

class Builder {
 public:
  Builder(std::string name, Dims extents, int outer_rank, int entry_rank = 0);

  int add_arg(Arg arg);
  Value load(int arg);  // converted to the arg's compute type
  Value load_entry(int arg, Value entry, Value exists = {}, double otherwise = 0);
  Value sum_entries(int arg, int order, Value begin, Value end, double average);
  Value constant(double value, Type type);
  Value index(Dims coefficients);
  Value map(MapOp op, Value a, Value b = {}, Value c = {}, double value = 0);
  Value cast(Value a, Type type);
  Value cast_to_odd(Value a);  // an integer of 64 bits to f64
  Value round_to(Value a, DataType dtype);
  Value select(Value condition, Value then, Value otherwise);
  Value reduce(Reduction reduction, Value a);

  struct Moments {
    Value moments;
    Value mean, variance;
  };
  Moments moments(Value a);
  Value center(Value a, const Moments& moments, Value scale = {});  // (a - mean) * scale

  void store(Value a, int arg);
  void column_sum(Value a, int arg);
  void segment_sum(Value a, int arg);

  int64_t row_size() const { return kernel_.row_size(); }
  const Node& node(Value value) const { return kernel_.node(value.node); }
  Kernel finish();  // drops unused nodes, verifies

 private:
  friend struct Value;
  Value append(Node node);
  bool varies_inside(int arg) const;
  Kernel kernel_;
};

Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator/(Value a, Value b);
Value operator-(Value a);
Value operator+(Value a, double b);
Value operator-(Value a, double b);
Value operator*(Value a, double b);
Value operator/(Value a, double b);
Value operator+(double a, Value b);
Value operator-(double a, Value b);
Value operator*(double a, Value b);
Value operator/(double a, Value b);
Value exp(Value a);
Value sqrt(Value a);
Value abs(Value a);
Value max(Value a, Value b);
Value max(Value a, double b);
Value min(Value a, Value b);
Value min(Value a, double b);
Value fma(Value a, Value b, Value c);
Value greater(Value a, double b);
Value greater_equal(Value a, double b);
Value less(Value a, double b);
Value less_equal(Value a, double b);
Value select(Value condition, Value then, double otherwise);
// An integer, as f32 or f64 below 2^23 or as an integer of 32 bits, modulo the range of s8 or u8: f32 or f64.
Value wrapped_to_byte(Value a, DataType dtype);

}  // namespace lamina::kernel
