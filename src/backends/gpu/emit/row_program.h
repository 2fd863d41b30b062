// Programs of library ops along one axis: a thread per row along the axis, or per element of it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "backends/gpu/emit/library_program.h"
#include "backends/gpu/emit/text.h"

namespace lamina::gpu {

// Names in the text: `count` is the number of elements of a row, `item` the thread's element, if there is one; pT points to the
// first element of the row in tensor T, and step_T is the step to the next. Parameters are buffer and offset of each tensor;
// then words: the number of items and `count`, those that add_word added, per tensor the offset of the first row and the step,
// and for each other axis its extent and the stride of each tensor.
class RowProgram {
 public:
  enum class Items { rows, elements };
  struct Tensor {
    std::string type;  // as which the program reads or writes elements
    const LogicalTensor* tensor;
    bool output = false;
    bool reverse = false;  // the first element of a row is the last along the axis
  };

  // `op`: an op with an attribute axis.
  RowProgram(std::string symbol, const Op& op, const DeviceLimits& limits, Items items = Items::rows);
  void add(const Tensor& tensor);  // the first one determines the number of rows and of their elements
  void add_word(std::string name, int64_t value);

  // From the signature to the statements of an item, and from these to the end.
  void open(Text& out) const;
  void close(Text& out) const;

  // `body`: functions, the last of which is the program's. The caller sets `args`.
  LibraryProgram program(const std::string& body, const Language& language, bool needs_f64) const;

 private:
  const Dims& shape() const { return *tensors_.front().tensor->shape; }
  int64_t count() const { return shape()[axis()]; }
  int64_t item_count() const;
  size_t axis() const;
  std::vector<std::pair<std::string, int64_t>> words() const;  // name and value of each, in the order of the parameters

  std::string symbol_;
  int64_t axis_attribute_;
  Items items_;
  int group_size_;
  std::vector<Tensor> tensors_;
  std::vector<std::pair<std::string, int64_t>> added_;
};

}  // namespace lamina::gpu
