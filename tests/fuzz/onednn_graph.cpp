// Calls the drop-in for oneDNN Graph in sequence with arbitrary arguments: invalid enumerators, repeated ids, attributes of
// other operations with any length, null handles, calls in any order. Graphs like those of a framework are executed, in memory
// of exactly the queried size with guard bytes after it.
#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/fuzz_input.h"
#include "fuzz/onednn_graph_numbers.h"

namespace lamina::fuzz {
namespace {

using Tensor = lamina_graph_logical_tensor_t;

constexpr size_t kMaxObjects = 24;
constexpr double kMaxBytes = 1 << 20, kMaxElements = 1 << 20;  // the fuzzer searches for wrong sizes, not large ones
constexpr int kSuccess = 0, kRuntimeError = 5, kLastStatus = 10;
constexpr int kCpu = 1;
void* const kAllocate = reinterpret_cast<void*>(~uintptr_t{0});

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

// Operations without attributes: the number of inputs and outputs; outputs have the shape of the first input or an unknown one.
struct Recipe {
  int kind, inputs, outputs;
};
const std::vector<Recipe> kRecipes = {
    {lamina_graph_op_ReLU, 1, 1},     {lamina_graph_op_Add, 2, 1},      {lamina_graph_op_Multiply, 2, 1},
    {lamina_graph_op_SoftMax, 1, 1},  {lamina_graph_op_TypeCast, 1, 1}, {lamina_graph_op_LayerNorm, 3, 3},
    {lamina_graph_op_MatMul, 2, 1},   {lamina_graph_op_End, 1, 0},      {lamina_graph_op_Reorder, 1, 1},
    {lamina_graph_op_Select, 3, 1},   {lamina_graph_op_GELU, 1, 1},     {lamina_graph_op_Sigmoid, 1, 1},
    {lamina_graph_op_Subtract, 2, 1}, {lamina_graph_op_Exp, 1, 1},      {lamina_graph_op_Wildcard, 2, 1},
};

// Every status is one of oneDNN's, and none reports an internal error of lamina.
bool told(int status) {
  require(status >= kSuccess && status <= kLastStatus, "a status is an enumerator");
  require(status != kRuntimeError, "no call ends in an error of the library");
  return status == kSuccess;
}

// Limits the elements too: with strides of 0, few bytes hold many elements.
bool is_small(const Tensor& tensor) {
  size_t bytes = 0;
  if (!told(dnnl_graph_logical_tensor_get_mem_size(&tensor, &bytes)) || static_cast<double>(bytes) > kMaxBytes) return false;
  double elements = 1;
  for (int d = 0; d < std::min(tensor.ndims, LAMINA_MAX_NDIMS); ++d) elements *= static_cast<double>(tensor.dims[d]);
  return tensor.ndims >= 0 && elements <= kMaxElements;
}

// A client's memory for a tensor, of exactly the queried size.
class Memory {
 public:
  explicit Memory(size_t size) : size_(size), bytes_(size + kMark) {
    std::memset(bytes_.data(), 1, size);
    std::memset(bytes_.data() + size, kByte, kMark);
  }
  uint8_t* data() { return bytes_.data(); }
  bool is_intact() const {
    return std::all_of(bytes_.begin() + static_cast<std::ptrdiff_t>(size_), bytes_.end(),
                       [](uint8_t byte) { return byte == kByte; });
  }

 private:
  static constexpr size_t kMark = 64;
  static constexpr uint8_t kByte = 0xA5;
  size_t size_;
  std::vector<uint8_t> bytes_;
};

class Calls {
 public:
  explicit Calls(FuzzInput& in) : in_(in) {
    require(dnnl_engine_create(&engine_, kCpu, 0) == kSuccess, "there is a CPU");
    require(dnnl_stream_create(&stream_, engine_, 1) == kSuccess, "it has streams");
  }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  ~Calls() {
    for (auto* tensor : tensors_) dnnl_graph_tensor_destroy(tensor);
    for (auto* compiled : compiled_) dnnl_graph_compiled_partition_destroy(compiled);
    for (auto* partition : partitions_) dnnl_graph_partition_destroy(partition);
    for (auto* op : ops_) dnnl_graph_op_destroy(op);
    for (auto* graph : graphs_) dnnl_graph_graph_destroy(graph);
    dnnl_stream_destroy(stream_);
    dnnl_engine_destroy(engine_);
  }

  void next() {
    switch (in_.below(24)) {
      case 0: return make_graph();
      case 1:
      case 2: return make_logical_tensor();
      case 3:
      case 4: return make_op();
      case 5:
      case 6: return add_port();
      case 7: return set_attribute();
      case 8: return add_op();
      case 9: return change_graph();
      case 10:
      case 11: return partition_graph();
      case 12: return partition_op();
      case 13: return ask_partition();
      case 14:
      case 15: return compile();
      case 16: return ask_compiled();
      case 17: return make_tensor();
      case 18: return ask_tensor();
      case 19: return execute_any();
      case 20: return settings();
      default: return extend_graph();
    }
  }

 private:
  // Returns one of them, sometimes null.
  template <typename Handle>
  Handle any(const std::vector<Handle>& list) {
    const uint8_t byte = in_.take<uint8_t>();
    return list.empty() || byte == 255 ? nullptr : list[byte % list.size()];
  }
  template <typename Handle>
  static void hold(std::vector<Handle>& list, Handle handle, int (*destroy)(Handle)) {
    require(handle != nullptr, "success comes with an object");
    if (list.size() >= kMaxObjects) {
      told(destroy(list.front()));
      list.erase(list.begin());
    }
    list.push_back(handle);
  }
  const Tensor* any_logical() {
    const uint8_t byte = in_.take<uint8_t>();
    return logicals_.empty() || byte == 255 ? nullptr : &logicals_[byte % logicals_.size()];
  }
  void keep(const Tensor& tensor) {
    if (logicals_.size() >= kMaxObjects) logicals_.erase(logicals_.begin());
    logicals_.push_back(tensor);
  }
  // Returns mostly one of the first `count`, rarely any number.
  int number(size_t count) { return in_.below(16) == 15 ? in_.take<int32_t>() : static_cast<int>(in_.below(count)); }
  int number(const std::vector<int>& list) { return in_.below(16) == 15 ? in_.take<int32_t>() : in_.pick(list); }
  int engine_kind() { return in_.below(16) == 15 ? in_.take<int32_t>() : kCpu; }

  void make_graph() {
    dnnl_graph_graph* graph = nullptr;
    const int kind = engine_kind();
    if (told(in_.flip() ? dnnl_graph_graph_create(&graph, kind)
                        : dnnl_graph_graph_create_with_fpmath_mode(&graph, kind, number(5))))
      hold(graphs_, graph, dnnl_graph_graph_destroy);
  }

  void make_logical_tensor() {
    Tensor made{};
    const size_t id = in_.below(16);
    const int type = in_.flip() ? static_cast<int>(lamina_f32) : number(kTypes);
    const int32_t ndims = in_.below(32) < 28 ? static_cast<int32_t>(in_.below(4)) : in_.take<int8_t>();
    const int layout = in_.below(16) < 13 ? 2 : number(5), property = in_.below(8) < 6 ? 0 : number(4);
    std::array<int64_t, LAMINA_MAX_NDIMS> dims{}, strides{};
    for (int32_t d = 0; d < std::min(ndims, LAMINA_MAX_NDIMS); ++d) dims[static_cast<size_t>(d)] = in_.extent();
    const size_t way = in_.below(12);
    if (way < 2)
      for (int64_t& stride : strides) stride = in_.extent();
    const bool good = told(
        way == 0   ? dnnl_graph_logical_tensor_init_with_strides(&made, id, type, ndims, dims.data(), strides.data(), property)
        : way == 1 ? dnnl_graph_logical_tensor_init(&made, id, type, ndims, layout, property)
                   : dnnl_graph_logical_tensor_init_with_dims(&made, id, type, ndims, dims.data(), layout, property));
    if (!good) {  // as a caller that fills the struct itself
      made.id = id, made.ndims = ndims;
      made.data_type = static_cast<lamina_data_type_t>(type);
      made.layout_type = static_cast<lamina_graph_layout_type_t>(layout);
      made.property = static_cast<lamina_graph_tensor_property_t>(property);
      std::copy(dims.begin(), dims.end(), made.dims);
      std::copy(strides.begin(), strides.end(), made.layout.strides);
    }
    size_t bytes = 0;
    told(dnnl_graph_logical_tensor_get_mem_size(&made, &bytes));
    uint8_t is_equal = 2;
    if (told(dnnl_graph_logical_tensor_is_equal(&made, &made, &is_equal))) require(is_equal == 1, "a tensor equals itself");
    keep(made);
  }

  void make_op() {
    dnnl_graph_op* op = nullptr;
    const size_t id = in_.below(12);
    const int kind = number(kOps);
    const std::string name = in_.text(4);
    if (!told(dnnl_graph_op_create(&op, id, kind, in_.below(32) == 31 ? nullptr : name.c_str()))) return;
    size_t told_id = 0;
    int told_kind = 0;
    require(told(dnnl_graph_op_get_id(op, &told_id)) && told_id == id, "an operation keeps its id");
    require(told(dnnl_graph_op_get_kind(op, &told_kind)) && told_kind == kind, "an operation keeps its kind");
    hold(ops_, op, dnnl_graph_op_destroy);
  }

  void add_port() {
    dnnl_graph_op* const op = in_.below(4) == 0 || ops_.empty() ? any(ops_) : ops_.back();
    const Tensor* const logical = any_logical();
    told(in_.below(3) == 0 ? dnnl_graph_op_add_output(op, logical) : dnnl_graph_op_add_input(op, logical));
  }

  void set_attribute() {
    dnnl_graph_op* const op = any(ops_);
    const AttributeKind& kind = in_.pick(kAttributes);
    const int name = in_.below(16) == 15 ? in_.take<int32_t>() : kind.value;
    const std::string_view type = in_.below(16) == 15 ? "s64_list" : kind.type;
    const size_t count = type.ends_with("_list") ? in_.below(5) : in_.below(4) == 3 ? in_.below(3) : 1;
    const bool is_missing = in_.below(32) == 31;
    if (type.starts_with("f32")) {
      std::vector<float> values(count + 1);
      for (float& value : values) value = in_.flip() ? static_cast<float>(in_.take<int8_t>()) : in_.take<float>();
      told(dnnl_graph_op_set_attr_f32(op, name, is_missing ? nullptr : values.data(), count));
    } else if (type.starts_with("s64")) {
      std::vector<int64_t> values(count + 1);
      for (int64_t& value : values) value = in_.extent();
      told(dnnl_graph_op_set_attr_s64(op, name, is_missing ? nullptr : values.data(), count));
    } else if (type == "bool") {
      const auto value = in_.take<uint8_t>();
      told(dnnl_graph_op_set_attr_bool(op, name, is_missing ? nullptr : &value, count));
    } else {
      static const std::vector<std::string> texts = {"NXC",    "NCX",   "per_tensor", "per_channel", "none", "numpy",
                                                     "linear", "floor", "",           "inf_as_zero"};
      const std::string text = in_.flip() ? in_.pick(texts) : in_.text(12);
      told(dnnl_graph_op_set_attr_str(op, name, is_missing ? nullptr : text.c_str(), count));
    }
  }

  void add_op() { told(dnnl_graph_add_op(any(graphs_), any(ops_))); }

  // Adds an operation as a framework does: with existing or new inputs, and outputs of known or unknown shape.
  void extend_graph() {
    if (graphs_.empty() || in_.below(32) == 31) make_graph();
    if (logicals_.empty()) make_logical_tensor();
    if (graphs_.empty() || logicals_.empty()) return;
    dnnl_graph_op* op = nullptr;
    const Recipe recipe = in_.below(4) != 3
                              ? in_.pick(kRecipes)
                              : Recipe{in_.pick(kOps), static_cast<int>(1 + in_.below(4)), static_cast<int>(in_.below(3))};
    if (!told(dnnl_graph_op_create(&op, 100 + made_, recipe.kind, "made"))) return;
    hold(ops_, op, dnnl_graph_op_destroy);
    const Tensor first = in_.flip() ? logicals_.back() : in_.pick(logicals_);
    for (int i = 0; i < recipe.inputs; ++i) {
      const Tensor& input = i == 0 || in_.flip() ? first : in_.pick(logicals_);
      told(dnnl_graph_op_add_input(op, &input));
    }
    for (size_t attributes = in_.below(8) < 6 ? 0 : 1 + in_.below(3); attributes > 0; --attributes) set_attribute();
    std::vector<Tensor> outputs;
    for (int o = 0; o < recipe.outputs; ++o) {
      Tensor output = first;
      const size_t id = 1000 + 10 * made_ + static_cast<size_t>(o);
      output.id = id;
      if (in_.below(4) == 3) told(dnnl_graph_logical_tensor_init(&output, id, first.data_type, -1, 2, 0));
      outputs.push_back(output);
      told(dnnl_graph_op_add_output(op, &output));
    }
    ++made_;
    if (!told(dnnl_graph_add_op(graphs_.back(), op))) return;
    for (const Tensor& output : outputs) keep(output);
  }

  void change_graph() {
    dnnl_graph_graph* const graph = any(graphs_);
    if (in_.flip()) told(dnnl_graph_graph_set_fpmath_mode(graph, number(5), in_.take<int8_t>()));
    int mode = 0, flag = 2;
    told(dnnl_graph_graph_get_fpmath_mode(graph, &mode, in_.flip() ? &flag : nullptr));
    if (in_.flip()) told(dnnl_graph_graph_set_deterministic(graph, in_.take<int8_t>()));
    if (told(dnnl_graph_graph_get_deterministic(graph, &flag))) require(flag == 0 || flag == 1, "deterministic or not");
    if (in_.flip()) told(dnnl_graph_graph_finalize(graph));
    uint8_t is_finalized = 2;
    if (told(dnnl_graph_graph_is_finalized(graph, &is_finalized))) require(is_finalized < 2, "a graph is finalized or not");
  }

  static std::vector<size_t> ops_of(const dnnl_graph_partition* partition) {
    size_t num = 0;
    require(told(dnnl_graph_partition_get_op_num(partition, &num)), "a partition has a number of operations");
    std::vector<size_t> ids(num + 1);
    require(told(dnnl_graph_partition_get_ops(partition, num, ids.data())), "and their ids");
    ids.pop_back();
    return ids;
  }

  void partition_graph() {
    dnnl_graph_graph* const graph = any(graphs_);
    if (in_.below(4) != 3) told(dnnl_graph_graph_finalize(graph));
    const bool is_filtered = told(dnnl_graph_graph_filter(graph, in_.below(8) == 7 ? number(4) : 0));
    size_t num = 0;
    if (!told(dnnl_graph_graph_get_partition_num(graph, &num)) || num == 0) return;
    const size_t asked = in_.below(8) == 7 ? num + in_.below(2) : num;
    std::vector<dnnl_graph_partition*> partitions(asked + 1);
    if (!told(dnnl_graph_graph_get_partitions(graph, asked, partitions.data()))) return;
    std::set<size_t> seen;
    for (size_t p = 0; p < asked; ++p) {
      hold(partitions_, partitions[p], dnnl_graph_partition_destroy);
      for (const size_t id : ops_of(partitions[p]))
        require(!is_filtered || seen.insert(id).second, "an operation is in one partition");
    }
  }

  void partition_op() {
    dnnl_graph_partition* partition = nullptr;
    if (told(dnnl_graph_partition_create_with_op(&partition, any(ops_), engine_kind())))
      hold(partitions_, partition, dnnl_graph_partition_destroy);
  }

  static std::vector<Tensor> ports(const dnnl_graph_partition* partition, bool of_inputs) {
    size_t num = 0;
    const bool is_known = told(of_inputs ? dnnl_graph_partition_get_input_ports_num(partition, &num)
                                         : dnnl_graph_partition_get_output_ports_num(partition, &num));
    std::vector<Tensor> list(is_known ? num : 0);
    if (!list.empty())
      require(told(of_inputs ? dnnl_graph_partition_get_input_ports(partition, num, list.data())
                             : dnnl_graph_partition_get_output_ports(partition, num, list.data())),
              "ports are given");
    return list;
  }

  void ask_partition() {
    const dnnl_graph_partition* const partition = any(partitions_);
    size_t id = 0, num = 0;
    uint8_t is_supported = 2;
    int kind = 0;
    told(dnnl_graph_partition_get_id(partition, &id));
    told(dnnl_graph_partition_get_engine_kind(partition, &kind));
    if (told(dnnl_graph_partition_is_supported(partition, &is_supported))) require(is_supported < 2, "supported or not");
    if (!told(dnnl_graph_partition_get_op_num(partition, &num))) return;
    std::vector<size_t> ids(num + 2);
    told(dnnl_graph_partition_get_ops(partition, num + in_.below(2), ids.data()));
    std::vector<Tensor> list(64);
    told(dnnl_graph_partition_get_input_ports(partition, in_.below(list.size()), list.data()));
  }

  // Completes a port at compile time: small dims for unknown ones, sometimes arbitrary ones.
  void settle(Tensor& port) {
    const size_t id = port.id;
    if (in_.below(16) == 15 && !logicals_.empty()) port = in_.pick(logicals_);
    if (port.ndims < 0) {
      const std::array<int64_t, 2> dims{2, 8};
      told(dnnl_graph_logical_tensor_init_with_dims(&port, id, port.data_type, 2, dims.data(), 2, 0));
    }
    port.id = id;
  }

  void compile() {
    dnnl_graph_partition* const partition = any(partitions_);
    std::vector<Tensor> ins = ports(partition, true), outs = ports(partition, false);
    for (Tensor& port : ins) settle(port);
    for (Tensor& port : outs)
      if (in_.below(8) == 7) settle(port);
    if (!std::all_of(ins.begin(), ins.end(), is_small)) return;
    std::vector<const Tensor*> in, out;
    for (const Tensor& port : ins) in.push_back(&port);
    for (const Tensor& port : outs) out.push_back(&port);
    if (in_.below(16) == 15) in.push_back(nullptr);
    if (in_.below(16) == 15 && !out.empty()) out.pop_back();
    dnnl_graph_compiled_partition* compiled = nullptr;
    if (!told(dnnl_graph_compiled_partition_create(&compiled, partition))) return;
    hold(compiled_, compiled, dnnl_graph_compiled_partition_destroy);
    dnnl_engine* const engine = in_.below(16) == 15 ? nullptr : engine_;
    if (told(dnnl_graph_partition_compile(partition, compiled, in.size(), in.data(), out.size(), out.data(), engine)) &&
        in.size() == ins.size() && out.size() == outs.size())
      run(compiled, ins, outs);
  }

  // Executes as a framework does: memory for every port, of the size that the port reports.
  void run(const dnnl_graph_compiled_partition* compiled, std::vector<Tensor>& ins, std::vector<Tensor>& outs) {
    for (Tensor& port : outs)
      require(told(dnnl_graph_compiled_partition_query_logical_tensor(compiled, port.id, &port)), "a port can be asked for");
    if (!std::all_of(outs.begin(), outs.end(), is_small)) return;
    std::vector<std::unique_ptr<Memory>> memory;
    std::vector<dnnl_graph_tensor*> made;
    bool is_complete = true;
    for (auto* const list : {&ins, &outs})
      for (const Tensor& port : *list) {
        size_t bytes = 0;
        told(dnnl_graph_logical_tensor_get_mem_size(&port, &bytes));
        memory.push_back(std::make_unique<Memory>(std::max<size_t>(bytes, 16)));
        dnnl_graph_tensor* tensor = nullptr;
        is_complete = told(dnnl_graph_tensor_create(&tensor, &port, engine_, memory.back()->data())) && is_complete;
        made.push_back(tensor);
      }
    std::vector<const dnnl_graph_tensor*> tensors(made.begin(), made.end());
    if (is_complete)
      told(dnnl_graph_compiled_partition_execute_v2(compiled, stream_, ins.size(), tensors.data(), outs.size(),
                                                    tensors.data() + ins.size(), nullptr));
    told(dnnl_stream_wait(stream_));
    for (const auto& each : memory) require(each->is_intact(), "nothing is written past the memory of a tensor");
    for (auto* tensor : made) told(dnnl_graph_tensor_destroy(tensor));
  }

  void ask_compiled() {
    const dnnl_graph_compiled_partition* const compiled = any(compiled_);
    Tensor logical{};
    told(dnnl_graph_compiled_partition_query_logical_tensor(compiled, in_.below(16), &logical));
    size_t num = 0;
    const lamina_graph_inplace_pair_t* pairs = nullptr;
    if (told(dnnl_graph_compiled_partition_get_inplace_ports(compiled, &num, &pairs)))
      for (size_t p = 0; p < num; ++p)
        for (const size_t id : {pairs[p].input_id, pairs[p].output_id})
          require(told(dnnl_graph_compiled_partition_query_logical_tensor(compiled, id, &logical)), "a pair names ports");
    told(dnnl_graph_compiled_partition_get_scratchpad_logical_tensor(compiled, &logical));
  }

  void make_tensor() {
    const Tensor* const logical = any_logical();
    if (logical == nullptr || !is_small(*logical)) return;
    dnnl_graph_tensor* tensor = nullptr;
    dnnl_engine* const engine = in_.below(16) == 15 ? nullptr : engine_;
    std::array<char, 16> value{};
    const size_t way = in_.below(4);
    if (told(way == 0   ? dnnl_graph_tensor_create_scalar(&tensor, logical, value.data())
             : way == 1 ? dnnl_graph_tensor_create(&tensor, logical, engine, nullptr)
                        : dnnl_graph_tensor_create(&tensor, logical, engine, kAllocate)))
      hold(tensors_, tensor, dnnl_graph_tensor_destroy);
  }

  void ask_tensor() {
    dnnl_graph_tensor* const tensor = any(tensors_);
    void* memory = nullptr;
    dnnl_engine* engine = nullptr;
    Tensor logical{};
    if (told(dnnl_graph_tensor_get_data_handle(tensor, &memory)) && in_.below(4) == 3)
      told(dnnl_graph_tensor_set_data_handle(tensor, in_.flip() ? memory : nullptr));
    told(dnnl_graph_tensor_get_engine(tensor, &engine));
    told(dnnl_graph_tensor_get_logical_tensor(tensor, &logical));
  }

  // Executes with arbitrary tensors: nearly always refused.
  void execute_any() {
    std::vector<const dnnl_graph_tensor*> in(1), out(1);  // the lists themselves exist
    for (size_t i = in_.below(4); i > 0; --i) in.insert(in.begin(), any(tensors_));
    for (size_t o = in_.below(3); o > 0; --o) out.insert(out.begin(), any(tensors_));
    told(dnnl_graph_compiled_partition_execute_v2(any(compiled_), in_.below(16) == 15 ? nullptr : stream_, in.size() - 1,
                                                  in.data(), out.size() - 1, out.data(), any(tensors_)));
  }

  // Restores each setting immediately, so that the next input starts from the same state.
  void settings() {
    int capacity = 0, flag = 0, mode = 0;
    size_t size = 0;
    told(dnnl_graph_get_compiled_partition_cache_capacity(&capacity));
    told(dnnl_graph_set_compiled_partition_cache_capacity(in_.take<int32_t>()));
    told(dnnl_graph_set_compiled_partition_cache_capacity(capacity));
    told(dnnl_graph_get_constant_tensor_cache(&flag));
    told(dnnl_graph_set_constant_tensor_cache(in_.take<int8_t>()));
    const int kind = number(3);
    if (told(dnnl_graph_get_constant_tensor_cache_capacity(kind, &size))) {
      told(dnnl_graph_set_constant_tensor_cache_capacity(kind, in_.take<uint64_t>()));
      told(dnnl_graph_set_constant_tensor_cache_capacity(kind, size));
    }
    told(dnnl_graph_set_constant_tensor_cache(flag));
    told(dnnl_graph_set_dump_mode(in_.take<uint32_t>() | 4U));  // an invalid mode
    told(dnnl_get_default_fpmath_mode(&mode));
    told(dnnl_set_default_fpmath_mode(number(4)));
    told(dnnl_set_default_fpmath_mode(mode));
  }

  FuzzInput& in_;
  dnnl_engine* engine_ = nullptr;
  dnnl_stream* stream_ = nullptr;
  size_t made_ = 0;  // operations added by extend_graph
  std::vector<Tensor> logicals_;
  std::vector<dnnl_graph_graph*> graphs_;
  std::vector<dnnl_graph_op*> ops_;
  std::vector<dnnl_graph_partition*> partitions_;
  std::vector<dnnl_graph_compiled_partition*> compiled_;
  std::vector<dnnl_graph_tensor*> tensors_;
};

}  // namespace
}  // namespace lamina::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lamina::fuzz::FuzzInput input(data, size);
  lamina::fuzz::Calls calls(input);
  for (int i = 0; i < 200 && !input.is_at_end(); ++i) calls.next();
  return 0;
}
