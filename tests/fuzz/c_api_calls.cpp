// Calls the C ABI in sequence with arbitrary arguments: shapes near overflow, repeated ids, attributes of other ops, null
// handles, calls in any order. Valid graphs are executed, so handles are real; lamina allocates the memory.
#include <array>
#include <string>
#include <vector>

#include "fuzz/fuzz_input.h"
#include "graph/lamina.h"
#include "graph/text.h"

namespace lamina::fuzz {
namespace {

constexpr size_t kMaxObjects = 24;
constexpr size_t kMaxBytes = 1 << 20;  // per tensor with memory: the fuzzer searches for wrong sizes, not large ones

const std::vector<int> kOps = {
#define LAMINA_OP(kind, value) value,
#include "graph/op_kinds.def"
};
struct AttributeKind {
  int value;
  std::string_view type;
};
const std::vector<AttributeKind> kAttributes = {
#define LAMINA_ATTRIBUTE(name, value, type) {value, #type},
#include "graph/attribute_kinds.def"
};
const std::vector<int> kTypes = {
#define LAMINA_DATA_TYPE(name, value, bits, kind, npy) value,
#include "graph/data_types.def"
};

void ignore(void*, const char*, size_t) {}

template <typename Enum, typename T>
Enum enumerator(T value) {
  return static_cast<Enum>(value);
}

class Calls {
 public:
  explicit Calls(FuzzInput& in) : in_(in) {
    told(lamina_engine_create(&engine_, lamina_cpu, 0));
    told(lamina_stream_create(&stream_, engine_, lamina_stream_default_flags));
  }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  ~Calls() {
    for (auto* tensor : tensors_) lamina_graph_tensor_destroy(tensor);
    for (auto* compiled : compiled_) lamina_graph_compiled_partition_destroy(compiled);
    for (auto* partition : partitions_) lamina_graph_partition_destroy(partition);
    for (auto* op : ops_) lamina_graph_op_destroy(op);
    for (auto* graph : graphs_) lamina_graph_graph_destroy(graph);
    lamina_stream_destroy(stream_);
    lamina_engine_destroy(engine_);
  }

  void next() {
    switch (in_.below(22)) {
      case 0: return make_graph();
      case 17:
      case 18:
      case 19: return extend_graph();
      case 20: return partition_graph();
      case 21: return compile();
      case 1:
      case 2: return make_logical_tensor();
      case 3:
      case 4: return make_op();
      case 5:
      case 6: return add_port();
      case 7: return set_attribute();
      case 8: return add_op();
      case 9: return change_graph();
      case 10: return partition_graph();
      case 11: return partition_op();
      case 12: return ask_partition();
      case 13: return compile();
      case 14: return ask_compiled();
      case 15: return make_tensor();
      default: return execute();
    }
  }

 private:
  // Every status is one of the enumerators, and every failure has a message.
  static bool told(lamina_status_t status) {
    require((status >= lamina_success && status <= lamina_invalid_data_type) || status == lamina_index_out_of_range,
            "a status is an enumerator");
    require(status == lamina_success || *lamina_last_error() != '\0', "a refusal has a sentence");
    return status == lamina_success;
  }
  // Returns one of them, sometimes null.
  template <typename Handle>
  Handle any(const std::vector<Handle>& list) {
    const uint8_t byte = in_.take<uint8_t>();
    return list.empty() || byte == 255 ? nullptr : list[byte % list.size()];
  }
  template <typename Handle>
  void hold(std::vector<Handle>& list, Handle handle, lamina_status_t (*destroy)(Handle)) {
    require(handle != nullptr, "success comes with an object");
    if (list.size() >= kMaxObjects) {
      told(destroy(list.front()));
      list.erase(list.begin());
    }
    list.push_back(handle);
  }
  const lamina_graph_logical_tensor_t* any_logical() {
    const uint8_t byte = in_.take<uint8_t>();
    return logicals_.empty() || byte == 255 ? nullptr : &logicals_[byte % logicals_.size()];
  }

  void make_graph() {
    lamina_graph_graph_t graph = nullptr;
    if (told(lamina_graph_graph_create_with_fpmath_mode(&graph, enumerator<lamina_engine_kind_t>(in_.below(8) == 7 ? 9 : 1),
                                                        enumerator<lamina_fpmath_mode_t>(in_.below(8)))))
      hold(graphs_, graph, lamina_graph_graph_destroy);
  }

  void make_logical_tensor() {
    lamina_graph_logical_tensor_t made{};
    const size_t id = in_.below(16);
    const auto type = enumerator<lamina_data_type_t>(in_.below(16) == 15 ? in_.take<int16_t>() : in_.pick(kTypes));
    const auto rank = static_cast<int32_t>(in_.below(32)) < 28 ? static_cast<int32_t>(in_.below(5)) : in_.take<int8_t>();
    const auto layout = enumerator<lamina_graph_layout_type_t>(in_.below(16) < 13 ? 2 : in_.below(6));
    const auto property = enumerator<lamina_graph_tensor_property_t>(in_.below(5));
    std::array<int64_t, LAMINA_MAX_NDIMS> dims{}, strides{};
    for (int32_t d = 0; d < std::min(rank, LAMINA_MAX_NDIMS); ++d) {
      dims[static_cast<size_t>(d)] = in_.extent();
      strides[static_cast<size_t>(d)] = in_.extent();
    }
    const size_t way = in_.below(8);
    const bool good = told(
        way == 0   ? lamina_graph_logical_tensor_init(&made, id, type, rank, layout, property)
        : way == 1 ? lamina_graph_logical_tensor_init_with_strides(&made, id, type, rank, dims.data(), strides.data(), property)
                   : lamina_graph_logical_tensor_init_with_dims(&made, id, type, rank, dims.data(), layout, property));
    if (!good) {  // as a caller that fills the struct itself
      made.id = id, made.data_type = type, made.ndims = rank, made.layout_type = layout, made.property = property;
      std::copy(dims.begin(), dims.end(), made.dims);
      std::copy(strides.begin(), strides.end(), made.layout.strides);
    }
    size_t bytes = 0;
    told(lamina_graph_logical_tensor_get_mem_size(&made, &bytes));
    uint8_t equal = 2;
    if (told(lamina_graph_logical_tensor_is_equal(&made, &made, &equal))) require(equal == 1, "a tensor equals itself");
    if (logicals_.size() >= kMaxObjects) logicals_.erase(logicals_.begin());
    logicals_.push_back(made);
  }

  void make_op() {
    lamina_graph_op_t op = nullptr;
    const int kind = in_.below(16) == 15 ? in_.take<int16_t>() : in_.pick(kOps);
    const std::string name = in_.text(4);
    if (!told(lamina_graph_op_create(&op, in_.below(12), enumerator<lamina_graph_op_kind_t>(kind), name.c_str()))) return;
    hold(ops_, op, lamina_graph_op_destroy);
    told(lamina_graph_op_kind_write_schema(enumerator<lamina_graph_op_kind_t>(kind), ignore, nullptr));
  }

  void add_port() {
    lamina_graph_op_t op = in_.below(4) == 0 || ops_.empty() ? any(ops_) : ops_.back();
    const auto* logical = any_logical();
    told(in_.below(3) == 0 ? lamina_graph_op_add_output(op, logical) : lamina_graph_op_add_input(op, logical));
    std::array<lamina_graph_logical_tensor_t, 4> inferred{};
    size_t count = in_.below(inferred.size() + 1);
    if (told(lamina_graph_op_infer_outputs(op, &count, inferred.data())))
      require(count <= inferred.size(), "no more outputs are written than there is room for");
  }

  void set_attribute() {
    lamina_graph_op_t op = any(ops_);
    const AttributeKind& kind = kAttributes[in_.below(kAttributes.size())];
    const auto name = enumerator<lamina_graph_op_attr_t>(in_.below(16) == 15 ? in_.take<int16_t>() : kind.value);
    const std::string_view type = in_.below(16) == 15 ? "s64_list" : kind.type;
    const size_t count = type.ends_with("_list") ? in_.below(5) : in_.below(16) == 15 ? 2 : 1;
    if (type.starts_with("f32")) {
      std::vector<float> values(count + 1);
      for (float& value : values) value = in_.flip() ? static_cast<float>(in_.take<int8_t>()) : in_.take<float>();
      const auto wide = in_.take<double>();
      told(in_.below(4) == 3 ? lamina_graph_op_set_attr_f64(op, name, &wide, count)
                             : lamina_graph_op_set_attr_f32(op, name, values.data(), count));
    } else if (type.starts_with("s64")) {
      std::vector<int64_t> values(count + 1);
      for (int64_t& value : values) value = in_.extent();
      told(lamina_graph_op_set_attr_s64(op, name, values.data(), count));
    } else if (type == "bool") {
      const auto value = in_.take<uint8_t>();
      told(lamina_graph_op_set_attr_bool(op, name, &value, count));
    } else {
      static const std::vector<std::string> texts = {"NXC",    "NCX",   "per_tensor", "per_channel", "none", "numpy",
                                                     "linear", "floor", "",           "mean"};
      const std::string text = in_.flip() ? in_.pick(texts) : in_.text(12);
      told(lamina_graph_op_set_attr_str(op, name, text.data(), text.size()));
    }
  }

  void add_op() { told(lamina_graph_add_op(any(graphs_), any(ops_))); }

  // Adds an op as a correct caller does: with existing or new inputs, and outputs of inferred shape.
  void extend_graph() {
    if (graphs_.empty() || in_.below(16) == 15) make_graph();
    if (logicals_.empty()) make_logical_tensor();
    lamina_graph_op_t op = nullptr;
    if (graphs_.empty() ||
        !told(lamina_graph_op_create(&op, 100 + made_, enumerator<lamina_graph_op_kind_t>(in_.pick(kOps)), nullptr)))
      return;
    const lamina_graph_logical_tensor_t first = in_.flip() ? logicals_.back() : in_.pick(logicals_);
    for (size_t inputs = 1 + in_.below(4), i = 0; i < inputs; ++i)
      told(lamina_graph_op_add_input(op, i == 0 || in_.below(4) != 3 ? &first : &in_.pick(logicals_)));
    hold(ops_, op, lamina_graph_op_destroy);
    for (size_t attributes = in_.below(3); attributes > 0; --attributes) set_attribute();
    std::array<lamina_graph_logical_tensor_t, 8> outputs{};
    size_t count = outputs.size();
    if (!told(lamina_graph_op_infer_outputs(op, &count, outputs.data()))) return;
    for (size_t o = 0; o < count; ++o) {
      outputs[o].id = 1000 + 10 * made_ + o;
      told(lamina_graph_op_add_output(op, &outputs[o]));
    }
    ++made_;
    if (!told(lamina_graph_add_op(graphs_.back(), op))) return;
    if (logicals_.size() + count > kMaxObjects)
      logicals_.erase(logicals_.begin(), logicals_.begin() + static_cast<std::ptrdiff_t>(count));
    logicals_.insert(logicals_.end(), outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(count));
  }

  void change_graph() {
    lamina_graph_graph_t graph = any(graphs_);
    told(lamina_graph_graph_set_constant(graph, in_.below(16), in_.take<double>()));
    lamina_graph_logical_tensor_t known{};
    told(lamina_graph_graph_get_logical_tensor(graph, in_.below(16), &known));
    if (in_.flip()) told(lamina_graph_graph_write_json(graph, ignore, nullptr));
    if (in_.flip()) told(lamina_graph_graph_finalize(graph));
    uint8_t finalized = 2;
    if (told(lamina_graph_graph_is_finalized(graph, &finalized))) require(finalized < 2, "a graph is finalized or not");
  }

  void partition_graph() {
    lamina_graph_graph_t graph = any(graphs_);
    if (in_.below(4) != 0) told(lamina_graph_graph_finalize(graph));
    told(lamina_graph_graph_filter(graph,
                                   enumerator<lamina_graph_partition_policy_t>(in_.below(8) == 7 ? 5 : 1 + in_.below(2))));
    size_t count = 0;
    if (!told(lamina_graph_graph_get_partition_num(graph, &count))) return;
    std::vector<lamina_graph_partition_t> partitions(count + 1);
    if (!told(lamina_graph_graph_get_partitions(graph, in_.below(8) == 7 ? count + 1 : count, partitions.data()))) return;
    for (size_t p = 0; p < count; ++p) hold(partitions_, partitions[p], lamina_graph_partition_destroy);
  }

  void partition_op() {
    lamina_graph_partition_t partition = nullptr;
    if (told(lamina_graph_partition_create_with_op(&partition, any(ops_), lamina_cpu)))
      hold(partitions_, partition, lamina_graph_partition_destroy);
  }

  static std::vector<lamina_graph_logical_tensor_t> ports(lamina_graph_partition_t partition, bool of_inputs) {
    size_t count = 0;
    const bool known = told(of_inputs ? lamina_graph_partition_get_input_ports_num(partition, &count)
                                      : lamina_graph_partition_get_output_ports_num(partition, &count));
    std::vector<lamina_graph_logical_tensor_t> list(known ? count : 0);
    if (!list.empty())
      require(told(of_inputs ? lamina_graph_partition_get_input_ports(partition, count, list.data())
                             : lamina_graph_partition_get_output_ports(partition, count, list.data())),
              "ports are given");
    return list;
  }

  void ask_partition() {
    lamina_graph_partition_t partition = any(partitions_);
    size_t id = 0, count = 0;
    uint8_t supported = 2;
    told(lamina_graph_partition_get_id(partition, &id));
    if (told(lamina_graph_partition_is_supported(partition, &supported))) require(supported < 2, "supported or not");
    if (told(lamina_graph_partition_get_op_num(partition, &count))) {
      std::vector<size_t> ids(count + 1);
      told(lamina_graph_partition_get_ops(partition, in_.below(8) == 7 ? count + 1 : count, ids.data()));
    }
    told(lamina_graph_partition_write_reasons(partition, ignore, nullptr));
    if (in_.below(4) != 0 || partition == nullptr) return;
    const const_lamina_graph_partition_t list[] = {partition};
    told(lamina_graph_partitions_explain(1, list, nullptr, nullptr, enumerator<lamina_graph_explanation_t>(in_.below(4)),
                                         nullptr, nullptr, ignore, nullptr));
  }

  static bool is_small(const lamina_graph_logical_tensor_t& logical) {
    size_t bytes = 0;
    return told(lamina_graph_logical_tensor_get_mem_size(&logical, &bytes)) && bytes <= kMaxBytes;
  }

  void compile() {
    lamina_graph_partition_t partition = any(partitions_);
    std::vector<lamina_graph_logical_tensor_t> ins = ports(partition, true), outs = ports(partition, false);
    if (in_.below(4) == 0 && !ins.empty() && !logicals_.empty()) {  // a shape other than the graph's, for the same port
      lamina_graph_logical_tensor_t& port = ins[in_.below(ins.size())];
      const size_t id = port.id;
      port = logicals_[in_.below(logicals_.size())];
      port.id = id;
    }
    if (!std::all_of(ins.begin(), ins.end(), is_small)) return;
    std::vector<const lamina_graph_logical_tensor_t*> in, out;
    for (auto& port : ins) in.push_back(&port);
    for (auto& port : outs) out.push_back(&port);
    if (in_.below(16) == 15) in.push_back(nullptr);
    if (in_.below(16) == 15 && !out.empty()) out.pop_back();
    lamina_graph_compiled_partition_t compiled = nullptr;
    if (!told(lamina_graph_compiled_partition_create(&compiled, partition))) return;
    const_lamina_engine_t engine = in_.below(16) == 15 ? nullptr : engine_;
    if (told(lamina_graph_partition_compile(partition, compiled, in.size(), in.data(), out.size(), out.data(), engine))) {
      hold(compiled_, compiled, lamina_graph_compiled_partition_destroy);
      run(compiled, ins, outs);
    } else {
      told(lamina_graph_compiled_partition_destroy(compiled));
    }
  }

  // Executes as a framework does: memory for every port, of the size that was queried.
  void run(lamina_graph_compiled_partition_t compiled, const std::vector<lamina_graph_logical_tensor_t>& ins,
           const std::vector<lamina_graph_logical_tensor_t>& outs) {
    std::vector<const_lamina_graph_tensor_t> in, out;
    bool good = true;
    for (const bool of_inputs : {true, false}) {
      for (const auto& port : of_inputs ? ins : outs) {
        lamina_graph_logical_tensor_t logical{};
        lamina_graph_tensor_t tensor = nullptr;
        require(told(lamina_graph_compiled_partition_query_logical_tensor(compiled, port.id, &logical)),
                "a port can be asked for");
        const std::array<char, 16> value{};
        good = good && is_small(logical) &&
               told(logical.property == lamina_graph_tensor_property_host_scalar
                        ? lamina_graph_tensor_create_scalar(&tensor, &logical, value.data())
                        : lamina_graph_tensor_create(&tensor, &logical, engine_, LAMINA_MEMORY_ALLOCATE));
        if (tensor != nullptr) {
          void* memory = nullptr;
          size_t bytes = 0;
          if (told(lamina_graph_tensor_get_data_handle(tensor, &memory)) && memory != nullptr &&
              told(lamina_graph_logical_tensor_get_mem_size(&logical, &bytes)))
            std::memset(memory, 1, bytes);
        }
        (of_inputs ? in : out).push_back(tensor);
      }
    }
    if (good) told(lamina_graph_compiled_partition_execute(compiled, stream_, in.size(), in.data(), out.size(), out.data()));
    for (const auto* list : {&in, &out})
      for (const auto* tensor : *list) told(lamina_graph_tensor_destroy(const_cast<lamina_graph_tensor_t>(tensor)));
  }

  void ask_compiled() {
    lamina_graph_compiled_partition_t compiled = any(compiled_);
    lamina_graph_logical_tensor_t logical{};
    told(lamina_graph_compiled_partition_query_logical_tensor(compiled, in_.below(16), &logical));
    size_t count = 0;
    const lamina_graph_inplace_pair_t* pairs = nullptr;
    if (told(lamina_graph_compiled_partition_get_inplace_ports(compiled, &count, &pairs)))
      for (size_t p = 0; p < count; ++p) require(pairs[p].input_id != SIZE_MAX, "a pair names ports");
    uint8_t shares = 0;
    told(lamina_graph_compiled_partition_may_share(compiled, in_.below(16), in_.below(16), &shares));
    told(lamina_graph_compiled_partition_get_scratchpad_logical_tensor(compiled, &logical));
    told(lamina_graph_compiled_partition_write_info(compiled, ignore, nullptr));
    told(lamina_stream_write_profile(stream_, lamina_profile_trace, nullptr, ignore, nullptr));
  }

  void make_tensor() {
    const auto* logical = any_logical();
    if (logical == nullptr || !is_small(*logical)) return;
    lamina_graph_tensor_t tensor = nullptr;
    if (told(lamina_graph_tensor_create(&tensor, logical, in_.below(16) == 15 ? nullptr : engine_,
                                        in_.flip() ? LAMINA_MEMORY_ALLOCATE : LAMINA_MEMORY_NONE)))
      hold(tensors_, tensor, lamina_graph_tensor_destroy);
  }

  // Executes with arbitrary tensors: nearly always refused.
  void execute() {
    std::vector<const_lamina_graph_tensor_t> in, out;
    for (size_t i = in_.below(4); i > 0; --i) in.push_back(any(tensors_));
    for (size_t o = in_.below(3); o > 0; --o) out.push_back(any(tensors_));
    told(lamina_graph_compiled_partition_execute(any(compiled_), in_.below(16) == 15 ? nullptr : stream_, in.size(), in.data(),
                                                 out.size(), out.data()));
  }

  FuzzInput& in_;
  lamina_engine_t engine_ = nullptr;
  lamina_stream_t stream_ = nullptr;
  size_t made_ = 0;  // ops added by extend_graph
  std::vector<lamina_graph_logical_tensor_t> logicals_;
  std::vector<lamina_graph_graph_t> graphs_;
  std::vector<lamina_graph_op_t> ops_;
  std::vector<lamina_graph_partition_t> partitions_;
  std::vector<lamina_graph_compiled_partition_t> compiled_;
  std::vector<lamina_graph_tensor_t> tensors_;
};

}  // namespace
}  // namespace lamina::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lamina::fuzz::FuzzInput input(data, size);
  lamina::fuzz::Calls calls(input);
  for (int i = 0; i < 200 && !input.is_at_end(); ++i) calls.next();
  return 0;
}
