// Elementwise ops after a product, as operations that oneDNN does before it stores (post-ops).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/library/library_ops.h"
#include "backends/cpu/library/onednn/primitive_call.h"

namespace lamina::cpu::onednn {

std::optional<LibraryCapabilities::PostOpSupport> post_op_support(const Op& op);

class PostOpAttributes {
 public:
  PostOpAttributes() = default;
  explicit PostOpAttributes(const kernel::LibraryStep& step);

  const std::string& text() const { return text_; }  // ", then GELU, Quantize", for reports
  // For a tile with these operands. Appends to the post-ops that `attr` has.
  void add_to(dnnl::primitive_attr& attr, const std::vector<dnnl::memory::desc>& operands) const;
  // The operands in their order, then the parameters of the result's quantisation. `first`: the number of earlier post-ops.
  void add_to(PrimitiveCall::Arguments& arguments, const std::vector<dnnl::memory::desc>& operands, int first = 0) const;
  // Appends the pointers to the parameters of the result's quantisation.
  void add_to(void** pointers, size_t& count) const;
  static constexpr size_t kMaxPointers = kPostOpLimits.operands + 2;  // with a scale and a zero point

 private:
  struct Operation {
    dnnl::algorithm algorithm;
    float alpha = 0, beta = 0;
    int operand = -1;  // for a binary one
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
