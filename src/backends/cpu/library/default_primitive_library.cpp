// The library ops that can run, and the cases that need no primitive.
#include "backends/cpu/library/default_primitive_library.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <utility>

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

// Empty sums: a product without columns, a gradient over no images. The outputs are 0, or the bias.
class EmptySums final : public Primitive {
 public:
  explicit EmptySums(const kernel::LibraryStep& step) : step_(step) {
    const std::vector<const PortSpec*> ports = existing_inputs(schema_of(step_.op.kind), step_.op.attributes);
    for (size_t i = 0; i < step_.inputs.size(); ++i) {
      if (ports[i]->name == "bias" && !step_.inputs[i].is_empty_port()) bias_ = static_cast<int>(i);
    }
    if (bias_ >= 0 && step_.op.kind != OpKind::MatMul)
      throw Error(Status::unimplemented, place_of(step_.op), "the cpu backend does not add a bias to sums over 0 channels");
  }

  const std::string& name() const override { return name_; }

  void run(std::span<void* const> args, void*, const Executor&) const override {
    for (size_t o = 0; o < step_.outputs.size(); ++o) {
      if (!step_.outputs[o].is_empty_port()) fill(step_.outputs[o], args[step_.inputs.size() + o], args);
    }
  }

 private:
  void fill(const LogicalTensor& tensor, void* memory, std::span<void* const> args) const {
    const Dims& shape = *tensor.shape;
    for (int64_t i = 0; i < tensor.element_count(); ++i) {
      int64_t rest = i, at = 0, bias_at = 0;
      for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) {
        at += rest % shape[d] * tensor.strides[d];
        if (bias_ >= 0) bias_at += rest % shape[d] * bias_stride(shape.size() - d);
      }
      const double value = bias_ < 0 ? 0 : load_as_double(bias().dtype, args[static_cast<size_t>(bias_)], bias_at);
      store_from_double(tensor.dtype, memory, at, value);
    }
  }
  const LogicalTensor& bias() const { return step_.inputs[static_cast<size_t>(bias_)]; }
  int64_t bias_stride(size_t from_the_end) const {
    const Dims& shape = *bias().shape;
    if (from_the_end > shape.size() || shape[shape.size() - from_the_end] == 1) return 0;
    return bias().strides[shape.size() - from_the_end];
  }

  std::string name_ = "sums over nothing";
  kernel::LibraryStep step_;
  int bias_ = -1;  // port number
};

class Nothing final : public Primitive {
 public:
  const std::string& name() const override { return name_; }
  void run(std::span<void* const>, void*, const Executor&) const override {}

 private:
  std::string name_ = "nothing, no elements";
};

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
      return std::make_unique<Nothing>();
    const bool is_empty = std::any_of(step.inputs.begin(), step.inputs.end(), is_without_elements);
    if (is_empty && schema_of(step.op.kind).traits.contracts) return std::make_unique<EmptySums>(step);
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
