// The library ops that can run, and the cases that need no primitive.
#include "backends/cpu/library/default_primitive_library.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <utility>

#include "backends/cpu/dispatch/empty_steps.h"
#include "backends/cpu/library/library_ops.h"
#include "interface/data_type.h"
#include "interface/op_schema.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

// Entries by kind, in the order in which they are asked to compile a step.
using LibraryOps = std::map<OpKind, std::vector<LibraryOp>>;

LibraryOps ops_of(std::initializer_list<std::vector<LibraryOp> (*)()> families) {
  LibraryOps ops;
  for (const auto family : families) {
    for (const LibraryOp& op : family()) ops[op.kind].push_back(op);
  }
  return ops;
}

bool is_without_elements(const LogicalTensor& tensor) { return !tensor.is_empty_port() && tensor.element_count() == 0; }

EmptySums empty_sums(const kernel::LibraryStep& step) {
  EmptySums sums;
  for (size_t o = 0; o < step.outputs.size(); ++o)
    if (!step.outputs[o].is_empty_port()) sums.outputs.push_back({step.inputs.size() + o, step.outputs[o]});
  const std::vector<const PortSpec*> ports = existing_inputs(schema_of(step.op.kind), step.op.attributes);
  for (size_t i = 0; i < step.inputs.size(); ++i)
    if (ports[i]->name == "bias" && !step.inputs[i].is_empty_port()) sums.bias = {i, step.inputs[i]};
  if (sums.bias && step.op.kind != OpKind::MatMul)
    throw Error(Status::unimplemented, place_of(step.op), "the cpu backend does not add a bias to sums over 0 channels");
  return sums;
}

class DefaultPrimitiveLibrary final : public PrimitiveLibrary {
 public:
  explicit DefaultPrimitiveLibrary(LibraryOps ops) : ops_(std::move(ops)) {}

  std::string why_unsupported(const Graph& graph, const Op& op) const override {
    const std::span<const LibraryOp> entries = library_ops(op.kind);
    if (entries.empty()) return join("the cpu backend has no primitive for ", name_of(op.kind));
    std::string reason;
    for (const LibraryOp& entry : entries) {
      const std::string fault = entry.why_not == nullptr ? "" : entry.why_not(graph, op);
      if (fault.empty()) return "";
      if (reason.empty()) reason = fault;
    }
    return reason;
  }

  bool is_faster(const Graph& graph, const Op& op) const override {
    const std::span<const LibraryOp> entries = library_ops(op.kind);
    return why_unsupported(graph, op).empty() && std::any_of(entries.begin(), entries.end(), [&](const LibraryOp& entry) {
             return entry.is_faster != nullptr && entry.is_faster(graph, op);
           });
  }

  bool takes_type(const Op& op, DataType dtype) const override {
    const std::span<const LibraryOp> entries = library_ops(op.kind);
    return entries.empty() || std::any_of(entries.begin(), entries.end(), [&](const LibraryOp& entry) {
             return entry.is_fast_in == nullptr || entry.is_fast_in(dtype);
           });
  }
  bool takes_integers(const Op& op) const override {
    const std::span<const LibraryOp> entries = library_ops(op.kind);
    return std::any_of(entries.begin(), entries.end(),
                       [](const LibraryOp& entry) { return entry.takes_integers != nullptr && entry.takes_integers(); });
  }
  bool dequantizes_weights(const Op& product) const override {
    const std::span<const LibraryOp> entries = library_ops(product.kind);
    return std::any_of(entries.begin(), entries.end(), [](const LibraryOp& entry) { return entry.dequantizes_weights; });
  }
  bool multiplies_quantized_rows(const Op& product) const override {
    const std::span<const LibraryOp> entries = library_ops(product.kind);
    return std::any_of(entries.begin(), entries.end(), [](const LibraryOp& entry) { return entry.multiplies_quantized_rows; });
  }
  std::optional<PostOpSupport> takes_post_op(const Op& product, const Op& op) const override {
    for (const LibraryOp& entry : library_ops(product.kind)) {
      const bool is_used = entry.takes_integers == nullptr || entry.takes_integers();
      if (entry.takes_post_op == nullptr || !is_used) continue;
      if (const auto support = entry.takes_post_op(op)) return support;
    }
    return std::nullopt;
  }
  PostOpLimits post_op_limits() const override { return kPostOpLimits; }

  std::unique_ptr<const Primitive> compile(const kernel::LibraryStep& step, const PrimitiveUse& use) const override {
    if (std::all_of(step.outputs.begin(), step.outputs.end(),
                    [](const LogicalTensor& t) { return t.is_empty_port() || is_without_elements(t); }))
      return nothing_step();
    const bool is_empty = std::any_of(step.inputs.begin(), step.inputs.end(), is_without_elements);
    if (is_empty && schema_of(step.op.kind).traits.contracts) return empty_sums_step(empty_sums(step));
    if (is_empty)
      throw Error(Status::unimplemented, place_of(step.op), "the cpu backend cannot compute elements from an empty tensor");
    for (const LibraryOp& op : library_ops(step.op.kind)) {
      if (auto primitive = op.compile(step, use)) return primitive;
    }
    throw Error(Status::unimplemented, place_of(step.op), "no library of the cpu backend runs it with these types and layouts");
  }

 private:
  std::span<const LibraryOp> library_ops(OpKind kind) const {
    const auto found = ops_.find(kind);
    return found == ops_.end() ? std::span<const LibraryOp>() : found->second;
  }

  const LibraryOps ops_;
};

}  // namespace

std::shared_ptr<const PrimitiveLibrary> default_primitive_library() {
  static const auto library = std::make_shared<const DefaultPrimitiveLibrary>(ops_of(
      {product_ops, fast_convolution_ops, onednn_ops, converted_product_ops, convolution_ops, window_ops, along_axis_ops}));
  return library;
}

std::shared_ptr<const PrimitiveLibrary> exported_primitive_library() {
  static const auto library = std::make_shared<const DefaultPrimitiveLibrary>(
      ops_of({product_ops, converted_product_ops, convolution_ops, window_ops, along_axis_ops}));
  return library;
}

}  // namespace lamina::cpu
