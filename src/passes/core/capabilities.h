// The contract between passes and a backend: what the backend and its primitive library can run.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "interface/graph.h"

namespace lamina {

// What a primitive library offers for ops over whole tensors. The library answers; passes and the planner hold no lists.
class LibraryCapabilities {
 public:
  virtual ~LibraryCapabilities() = default;
  // Returns "" if the library runs the op, else one sentence without the op's name that says why not.
  virtual std::string why_unsupported(const Graph& graph, const Op& op) const = 0;
  // Whether the library is faster than a kernel for an op that has a loop nest. Such an op is then a step of its own.
  virtual bool is_faster(const Graph& /*graph*/, const Op& /*op*/) const { return false; }
  // Whether the op computes fast on tensors of bf16 or f16. If not, the planner converts them to f32 and back.
  virtual bool takes_type(const Op& /*op*/, DataType) const { return true; }
  // Whether the product or convolution computes from quantized factors, exactly and fast.
  virtual bool takes_integers(const Op& /*op*/) const { return false; }
  // Whether the product reads weights of 4 and 8 bits and dequantises them as the graph says. It computes in f32.
  virtual bool dequantizes_weights(const Op& /*product*/) const { return false; }
  // Whether such a product also reads rows of integers of 8 bits. The sum of a group is then exact, before it is scaled.
  virtual bool multiplies_quantized_rows(const Op& /*product*/) const { return false; }

  // How the library applies an elementwise op to each element of the result of `product` before it is stored.
  struct PostOpSupport {
    bool keeps_nan = false;  // a NaN of the result or of an operand stays NaN
  };
  virtual std::optional<PostOpSupport> takes_post_op(const Op& /*product*/, const Op& /*op*/) const { return std::nullopt; }
  // The most post-ops of one step, and the most operands that these may have.
  struct PostOpLimits {
    size_t ops = 0, operands = 0;
  };
  virtual PostOpLimits post_op_limits() const { return {}; }
};

class Capabilities {
 public:
  virtual ~Capabilities() = default;
  // Returns "" if the op can run with its dtypes, else one sentence without the op's name that says why not.
  virtual std::string why_unsupported(const Graph& graph, const Op& op) const = 0;
  // The library whose steps the backend runs; null if it has none.
  virtual const LibraryCapabilities* library() const { return nullptr; }
  // Whether a partition may contain several groups that are connected through library ops.
  virtual bool runs_several_groups() const { return false; }
};

}  // namespace lamina
