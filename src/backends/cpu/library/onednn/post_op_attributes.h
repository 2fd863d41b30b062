// What follows a product, element by element, as operations that oneDNN does before it stores (its post-ops).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/cpu/library/onednn/primitive_call.h"

namespace lamina::cpu::onednn {

class PostOpAttributes {
 public:
  PostOpAttributes() = default;
  explicit PostOpAttributes(const kernel::LibraryStep& step);

  const std::string& text() const { return text_; }  // ", then GELU, Quantize", for reports
  // For a tile whose operands are these, as oneDNN is to see them; behind the post-ops that `attr` has.
  void add_to(dnnl::primitive_attr& attr, const std::vector<dnnl::memory::desc>& operands) const;
  // The operands in their order, then what the result is quantised by. `first`: the post-ops that were there before.
  void add_to(PrimitiveCall::Arguments& arguments, const std::vector<dnnl::memory::desc>& operands, int first = 0) const;
  // Appends the pointers of what the result is quantised by.
  void add_to(void** pointers, size_t& count) const;
  static constexpr size_t kMaxPointers = 8;  // operands, a scale, a zero point, and some to spare

 private:
  struct Operation {
    dnnl::algorithm algorithm;
    float alpha = 0, beta = 0;
    int operand = -1;  // of a binary one
  };
  void add(const Op& op, const PostOpOperand* operand, int number);
  void add_binary(const Op& op, const PostOpOperand& operand, int number);

  std::vector<Operation> operations_;
  std::string text_;
  bool is_quantized_ = false;
  float scale_ = 1;
  int32_t zero_point_ = 0;
};

}  // namespace lamina::cpu::onednn
