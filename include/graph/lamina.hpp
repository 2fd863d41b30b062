// lamina, C++ interface: thin, header-only RAII over graph/lamina.h, which documents every call.
//
// Names and meaning follow oneDNN's graph interface, so that a program written for it ports by `namespace dnnl = lamina;`.
// Objects are handles: copies share the underlying object. A call that fails throws lamina::error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "graph/lamina.h"
#include "graph/lamina_common.hpp"

namespace lamina::graph {

using lamina::engine;
using lamina::error;
using lamina::fpmath_mode;
using lamina::status;
using lamina::stream;

class allocator : public detail::handle<lamina_graph_allocator, lamina_graph_allocator_destroy> {
 public:
  allocator() : allocator(nullptr, nullptr) {}
  allocator(lamina_graph_host_allocate_f host_malloc, lamina_graph_host_deallocate_f host_free) {
    lamina_graph_allocator_t created = nullptr;
    error::wrap_c_api(lamina_graph_allocator_create(&created, host_malloc, host_free));
    reset(created);
  }
};

inline engine make_engine_with_allocator(engine::kind kind, std::size_t index, const allocator& alloc) {
  lamina_engine_t created = nullptr;
  error::wrap_c_api(
      lamina_graph_make_engine_with_allocator(&created, static_cast<lamina_engine_kind_t>(kind), index, alloc.get()));
  return engine(created);
}

// A framework's thread pool. lamina_threadpool_t documents who calls each function, and on which threads.
class threadpool {
 public:
  virtual ~threadpool() = default;
  virtual int num_threads() const = 0;   // 1 or more
  virtual bool in_parallel() const = 0;  // whether the calling thread runs a work item of this pool
  // Calls work(state, index) once for each index = 0 .. count - 1 and returns when all calls have returned.
  virtual void parallel_for(int count, void (*work)(void* state, int index), void* state) = 0;
};

// `pool` must outlive the engine, its streams and every execution.
inline engine make_engine_with_threadpool(engine::kind kind, std::size_t index, threadpool& pool,
                                          const allocator& alloc = allocator()) {
  lamina_threadpool_t functions;
  functions.size = sizeof functions;
  functions.user = &pool;
  functions.num_threads = [](void* user) { return static_cast<threadpool*>(user)->num_threads(); };
  functions.in_parallel = [](void* user) { return static_cast<threadpool*>(user)->in_parallel() ? 1 : 0; };
  functions.parallel_for = [](void* user, int count, void (*work)(void* state, int index), void* state) {
    static_cast<threadpool*>(user)->parallel_for(count, work, state);
  };
  lamina_engine_t created = nullptr;
  error::wrap_c_api(lamina_graph_make_engine_with_threadpool(&created, static_cast<lamina_engine_kind_t>(kind), index,
                                                             alloc.get(), &functions));
  return engine(created);
}

// What is known about a tensor before it has memory.
class logical_tensor {
 public:
  using dim = lamina_dim_t;
  using dims = std::vector<dim>;

  enum class data_type : int {
    undef = lamina_data_type_undef,
#define LAMINA_DATA_TYPE(name, value, bits, kind, npy) name = lamina_##name,
#include "graph/data_types.def"
  };
  enum class layout_type : int {
    undef = lamina_graph_layout_type_undef,
    any = lamina_graph_layout_type_any,
    strided = lamina_graph_layout_type_strided,
    opaque = lamina_graph_layout_type_opaque,
  };
  enum class property_type : int {
    undef = lamina_graph_tensor_property_undef,
    variable = lamina_graph_tensor_property_variable,
    constant = lamina_graph_tensor_property_constant,
    host_scalar = lamina_graph_tensor_property_host_scalar,
  };

  // The empty logical tensor: at a port of an op, it means that the port is omitted.
  logical_tensor() : logical_tensor(std::numeric_limits<std::size_t>::max(), data_type::undef) {}
  explicit logical_tensor(const lamina_graph_logical_tensor_t& c_data) : data(c_data) {}

  // Unknown rank.
  logical_tensor(std::size_t tid, data_type dtype, layout_type ltype = layout_type::undef)
      : logical_tensor(tid, dtype, LAMINA_GRAPH_UNKNOWN_NDIMS, ltype) {}
  // Known rank, unknown dims. A template, so that dims in braces, {768}, do not convert to a rank.
  template <typename Rank, typename = std::enable_if_t<std::is_integral_v<Rank>>>
  logical_tensor(std::size_t tid, data_type dtype, Rank ndims, layout_type ltype, property_type ptype = property_type::undef) {
    error::wrap_c_api(lamina_graph_logical_tensor_init(&data, tid, convert(dtype), static_cast<std::int32_t>(ndims),
                                                       convert(ltype), convert(ptype)));
  }
  logical_tensor(std::size_t tid, data_type dtype, const dims& adims, layout_type ltype,
                 property_type ptype = property_type::undef) {
    error::wrap_c_api(lamina_graph_logical_tensor_init_with_dims(&data, tid, convert(dtype), rank_of(adims), adims.data(),
                                                                 convert(ltype), convert(ptype)));
  }
  logical_tensor(std::size_t tid, data_type dtype, const dims& adims, const dims& strides,
                 property_type ptype = property_type::undef) {
    if (strides.size() != adims.size()) {
      throw error(lamina_invalid_arguments, "logical tensor " + std::to_string(tid) + " has " + std::to_string(adims.size()) +
                                                " dims and " + std::to_string(strides.size()) +
                                                " strides; give one stride per dim");
    }
    error::wrap_c_api(lamina_graph_logical_tensor_init_with_strides(&data, tid, convert(dtype), rank_of(adims), adims.data(),
                                                                    strides.data(), convert(ptype)));
  }
  // Layout opaque, with an id from get_layout_id.
  logical_tensor(std::size_t tid, data_type dtype, const dims& adims, std::size_t lid,
                 property_type ptype = property_type::undef)
      : logical_tensor(tid, dtype, adims, layout_type::opaque, ptype) {
    data.layout.layout_id = lid;
  }

  std::size_t get_id() const { return data.id; }
  data_type get_data_type() const { return static_cast<data_type>(data.data_type); }
  layout_type get_layout_type() const { return static_cast<layout_type>(data.layout_type); }
  property_type get_property_type() const { return static_cast<property_type>(data.property); }
  // Throws when the rank is unknown; a dim may be LAMINA_GRAPH_UNKNOWN_DIM.
  dims get_dims() const {
    if (data.ndims < 0) throw error(lamina_invalid_arguments, describe_id() + " has no dims: its rank is unknown");
    return {data.dims, data.dims + data.ndims};
  }
  // Throws unless the layout is strided.
  dims get_strides() const {
    if (data.layout_type != lamina_graph_layout_type_strided || data.ndims < 0) {
      throw error(lamina_invalid_arguments,
                  describe_id() + " has no strides: its layout is not strided or its rank is unknown");
    }
    return {data.layout.strides, data.layout.strides + data.ndims};
  }
  // Throws unless the layout is opaque.
  std::size_t get_layout_id() const {
    if (data.layout_type != lamina_graph_layout_type_opaque) {
      throw error(lamina_invalid_arguments, describe_id() + " has no layout id: its layout is not opaque");
    }
    return data.layout.layout_id;
  }
  std::size_t get_mem_size() const {
    std::size_t size = 0;
    error::wrap_c_api(lamina_graph_logical_tensor_get_mem_size(&data, &size));
    return size;
  }
  bool is_equal(const logical_tensor& other) const {
    std::uint8_t equal = 0;
    error::wrap_c_api(lamina_graph_logical_tensor_is_equal(&data, &other.data, &equal));
    return equal != 0;
  }

  lamina_graph_logical_tensor_t data;

 private:
  static lamina_data_type_t convert(data_type type) { return static_cast<lamina_data_type_t>(type); }
  static lamina_graph_layout_type_t convert(layout_type type) { return static_cast<lamina_graph_layout_type_t>(type); }
  static lamina_graph_tensor_property_t convert(property_type type) {
    return static_cast<lamina_graph_tensor_property_t>(type);
  }
  static std::int32_t rank_of(const dims& adims) { return static_cast<std::int32_t>(adims.size()); }
  std::string describe_id() const { return "logical tensor " + std::to_string(data.id); }
};

// A logical tensor joined with memory.
class tensor : public detail::handle<lamina_graph_tensor, lamina_graph_tensor_destroy> {
 public:
  tensor() = default;
  tensor(const logical_tensor& lt, const engine& aengine, void* memory) {
    lamina_graph_tensor_t created = nullptr;
    error::wrap_c_api(lamina_graph_tensor_create(&created, &lt.data, aengine.get(), memory));
    reset(created);
  }
  // Memory from the engine's allocator, released with the last copy.
  tensor(const logical_tensor& lt, const engine& aengine) : tensor(lt, aengine, LAMINA_MEMORY_ALLOCATE) {}
  // Copies the value.
  static tensor make_scalar_tensor(const logical_tensor& lt, const void* value) {
    lamina_graph_tensor_t created = nullptr;
    error::wrap_c_api(lamina_graph_tensor_create_scalar(&created, &lt.data, value));
    tensor result;
    result.reset(created);
    return result;
  }

  void* get_data_handle() const {
    void* memory = nullptr;
    error::wrap_c_api(lamina_graph_tensor_get_data_handle(get(), &memory));
    return memory;
  }
  void set_data_handle(void* memory) { error::wrap_c_api(lamina_graph_tensor_set_data_handle(get(), memory)); }
  // Not a copy: valid as long as the engine that the tensor was created with. Empty for a host scalar.
  engine get_engine() const {
    lamina_engine_t result = nullptr;
    error::wrap_c_api(lamina_graph_tensor_get_engine(get(), &result));
    return result == nullptr ? engine() : engine(result, true);
  }
  logical_tensor get_logical_tensor() const {
    lamina_graph_logical_tensor_t data;
    error::wrap_c_api(lamina_graph_tensor_get_logical_tensor(get(), &data));
    return logical_tensor(data);
  }
};

class compiled_partition : public detail::handle<lamina_graph_compiled_partition, lamina_graph_compiled_partition_destroy> {
 public:
  compiled_partition() = default;
  explicit compiled_partition(lamina_graph_compiled_partition_t owned) : handle(owned) {}

  logical_tensor query_logical_tensor(std::size_t tid) const {
    lamina_graph_logical_tensor_t data;
    error::wrap_c_api(lamina_graph_compiled_partition_query_logical_tensor(get(), tid, &data));
    return logical_tensor(data);
  }
  // Pairs {input id, output id} that may share memory.
  std::vector<std::pair<std::size_t, std::size_t>> get_inplace_ports() const {
    std::size_t count = 0;
    const lamina_graph_inplace_pair_t* pairs = nullptr;
    error::wrap_c_api(lamina_graph_compiled_partition_get_inplace_ports(get(), &count, &pairs));
    std::vector<std::pair<std::size_t, std::size_t>> result;
    for (std::size_t i = 0; i < count; ++i) result.emplace_back(pairs[i].input_id, pairs[i].output_id);
    return result;
  }
  // Whether this input and this output may share memory; get_inplace_ports() names each port at most once.
  bool may_share(std::size_t input_id, std::size_t output_id) const {
    std::uint8_t result = 0;
    error::wrap_c_api(lamina_graph_compiled_partition_may_share(get(), input_id, output_id, &result));
    return result != 0;
  }
  // The memory that an execution needs: get_mem_size() bytes, aligned to 64.
  logical_tensor get_scratchpad_logical_tensor() const {
    lamina_graph_logical_tensor_t data;
    error::wrap_c_api(lamina_graph_compiled_partition_get_scratchpad_logical_tensor(get(), &data));
    return logical_tensor(data);
  }
  // If `scratchpad` is empty, lamina uses memory that it keeps.
  void execute(const stream& astream, const std::vector<tensor>& inputs, const std::vector<tensor>& outputs,
               const tensor& scratchpad = tensor()) const {
    detail::small_array<const_lamina_graph_tensor_t> c_inputs(inputs.size()), c_outputs(outputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) c_inputs.data()[i] = inputs[i].get();
    for (std::size_t i = 0; i < outputs.size(); ++i) c_outputs.data()[i] = outputs[i].get();
    error::wrap_c_api(lamina_graph_compiled_partition_execute_v2(get(), astream.get(), inputs.size(), c_inputs.data(),
                                                                 outputs.size(), c_outputs.data(), scratchpad.get(true)));
  }
};

// An operation: kind, attributes, and the tensors at its ports.
class op : public detail::handle<lamina_graph_op, lamina_graph_op_destroy> {
 public:
  enum class kind : int {
#define LAMINA_OP(name, value) name = value,
#include "graph/op_kinds.def"
    LastSymbol = lamina_graph_op_last_symbol,
  };
  enum class attr : int {
    undef = lamina_graph_op_attr_undef,
#define LAMINA_ATTRIBUTE(name, value, type) name = value,
#include "graph/attribute_kinds.def"
  };

  op(std::size_t id, kind akind, const std::string& verbose_name = "") {
    lamina_graph_op_t created = nullptr;
    error::wrap_c_api(lamina_graph_op_create(&created, id, static_cast<lamina_graph_op_kind_t>(akind), verbose_name.c_str()));
    reset(created);
  }
  op(std::size_t id, kind akind, const std::vector<logical_tensor>& inputs, const std::vector<logical_tensor>& outputs,
     const std::string& verbose_name = "")
      : op(id, akind, verbose_name) {
    add_inputs(inputs);
    add_outputs(outputs);
  }

  op& add_input(const logical_tensor& input) {
    error::wrap_c_api(lamina_graph_op_add_input(get(), &input.data));
    return *this;
  }
  op& add_inputs(const std::vector<logical_tensor>& inputs) {
    for (const logical_tensor& input : inputs) add_input(input);
    return *this;
  }
  op& add_output(const logical_tensor& output) {
    error::wrap_c_api(lamina_graph_op_add_output(get(), &output.data));
    return *this;
  }
  op& add_outputs(const std::vector<logical_tensor>& outputs) {
    for (const logical_tensor& output : outputs) add_output(output);
    return *this;
  }

  // T: bool, an integer, float, double, std::string (or a string literal), std::vector<int64_t>, std::vector<float>.
  template <typename T>
  op& set_attr(attr name, const T& value) {
    const auto c_name = static_cast<lamina_graph_op_attr_t>(name);
    if constexpr (std::is_same_v<T, bool>) {
      const std::uint8_t c_value = value ? 1 : 0;
      error::wrap_c_api(lamina_graph_op_set_attr_bool(get(), c_name, &c_value, 1));
    } else if constexpr (std::is_integral_v<T>) {
      const auto c_value = static_cast<std::int64_t>(value);
      error::wrap_c_api(lamina_graph_op_set_attr_s64(get(), c_name, &c_value, 1));
    } else if constexpr (std::is_same_v<T, double>) {
      error::wrap_c_api(lamina_graph_op_set_attr_f64(get(), c_name, &value, 1));
    } else if constexpr (std::is_floating_point_v<T>) {
      const auto c_value = static_cast<float>(value);
      error::wrap_c_api(lamina_graph_op_set_attr_f32(get(), c_name, &c_value, 1));
    } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
      error::wrap_c_api(lamina_graph_op_set_attr_s64(get(), c_name, value.data(), value.size()));
    } else if constexpr (std::is_same_v<T, std::vector<float>>) {
      error::wrap_c_api(lamina_graph_op_set_attr_f32(get(), c_name, value.data(), value.size()));
    } else {
      static_assert(std::is_convertible_v<const T&, std::string>, "an attribute is a bool, number, string or list of numbers");
      const std::string text = value;
      error::wrap_c_api(lamina_graph_op_set_attr_str(get(), c_name, text.data(), text.size()));
    }
    return *this;
  }

  std::size_t get_id() const {
    std::size_t id = 0;
    error::wrap_c_api(lamina_graph_op_get_id(get(), &id));
    return id;
  }
  kind get_kind() const {
    lamina_graph_op_kind_t akind = lamina_graph_op_Wildcard;
    error::wrap_c_api(lamina_graph_op_get_kind(get(), &akind));
    return static_cast<kind>(akind);
  }
};

// A group of ops that is compiled and executed as one unit.
class partition : public detail::handle<lamina_graph_partition, lamina_graph_partition_destroy> {
 public:
  enum class policy : int { fusion = lamina_graph_partition_policy_fusion, debug = lamina_graph_partition_policy_debug };

  partition() = default;
  partition(lamina_graph_partition_t owned) : handle(owned) {}
  partition(const op& aop, engine::kind ekind) {
    lamina_graph_partition_t created = nullptr;
    error::wrap_c_api(lamina_graph_partition_create_with_op(&created, aop.get(), static_cast<lamina_engine_kind_t>(ekind)));
    reset(created);
  }

  std::size_t get_id() const { return query(lamina_graph_partition_get_id); }
  std::size_t get_ops_num() const { return query(lamina_graph_partition_get_op_num); }
  std::vector<std::size_t> get_ops() const {
    std::vector<std::size_t> ids(get_ops_num());
    error::wrap_c_api(lamina_graph_partition_get_ops(get(), ids.size(), ids.data()));
    return ids;
  }
  bool is_supported() const {
    std::uint8_t supported = 0;
    error::wrap_c_api(lamina_graph_partition_is_supported(get(), &supported));
    return supported != 0;
  }
  std::vector<logical_tensor> get_input_ports() const {
    return ports(query(lamina_graph_partition_get_input_ports_num), lamina_graph_partition_get_input_ports);
  }
  std::vector<logical_tensor> get_output_ports() const {
    return ports(query(lamina_graph_partition_get_output_ports_num), lamina_graph_partition_get_output_ports);
  }
  engine::kind get_engine_kind() const {
    lamina_engine_kind_t kind = lamina_any_engine;
    error::wrap_c_api(lamina_graph_partition_get_engine_kind(get(), &kind));
    return static_cast<engine::kind>(kind);
  }

  compiled_partition compile(const std::vector<logical_tensor>& inputs, const std::vector<logical_tensor>& outputs,
                             const engine& aengine) const {
    lamina_graph_compiled_partition_t created = nullptr;
    error::wrap_c_api(lamina_graph_compiled_partition_create(&created, get()));
    compiled_partition result(created);
    auto c_inputs = pointers_to(inputs), c_outputs = pointers_to(outputs);
    error::wrap_c_api(lamina_graph_partition_compile(get(), created, c_inputs.size(), c_inputs.data(), c_outputs.size(),
                                                     c_outputs.data(), aengine.get()));
    return result;
  }

  // Measures schedules of the kernels for these tensors; later compilations use the fastest. Returns the number of kernels
  // timed.
  std::size_t tune(const std::vector<logical_tensor>& inputs, const std::vector<logical_tensor>& outputs, const engine& aengine,
                   double milliseconds_a_kernel = 0) const {
    std::size_t timed = 0;
    auto c_inputs = pointers_to(inputs), c_outputs = pointers_to(outputs);
    error::wrap_c_api(lamina_graph_partition_tune(get(), c_inputs.size(), c_inputs.data(), c_outputs.size(), c_outputs.data(),
                                                  aengine.get(), milliseconds_a_kernel, &timed));
    return timed;
  }

 private:
  using port_getter = lamina_status_t (*)(const_lamina_graph_partition_t, std::size_t, lamina_graph_logical_tensor_t*);

  std::size_t query(lamina_status_t (*getter)(const_lamina_graph_partition_t, std::size_t*)) const {
    std::size_t result = 0;
    error::wrap_c_api(getter(get(), &result));
    return result;
  }
  std::vector<logical_tensor> ports(std::size_t count, port_getter getter) const {
    std::vector<lamina_graph_logical_tensor_t> c_ports(count);
    error::wrap_c_api(getter(get(), count, c_ports.data()));
    return {c_ports.begin(), c_ports.end()};
  }
  static std::vector<const lamina_graph_logical_tensor_t*> pointers_to(const std::vector<logical_tensor>& tensors) {
    std::vector<const lamina_graph_logical_tensor_t*> result;
    for (const logical_tensor& tensor : tensors) result.push_back(&tensor.data);
    return result;
  }
};

class graph : public detail::handle<lamina_graph_graph, lamina_graph_graph_destroy> {
 public:
  // The graph gets the default mode (set_default_fpmath_mode).
  explicit graph(engine::kind engine_kind) {
    lamina_graph_graph_t created = nullptr;
    error::wrap_c_api(lamina_graph_graph_create(&created, static_cast<lamina_engine_kind_t>(engine_kind)));
    reset(created);
  }
  graph(engine::kind engine_kind, fpmath_mode mode) {
    lamina_graph_graph_t created = nullptr;
    error::wrap_c_api(lamina_graph_graph_create_with_fpmath_mode(&created, static_cast<lamina_engine_kind_t>(engine_kind),
                                                                 static_cast<lamina_fpmath_mode_t>(mode)));
    reset(created);
  }

  void set_fpmath_mode(fpmath_mode mode, bool apply_to_int = false) {
    error::wrap_c_api(lamina_graph_graph_set_fpmath_mode(get(), static_cast<lamina_fpmath_mode_t>(mode), apply_to_int ? 1 : 0));
  }
  void get_fpmath_mode(fpmath_mode& mode, bool& apply_to_int) const {
    lamina_fpmath_mode_t c_mode = lamina_fpmath_mode_strict;
    int c_apply = 0;
    error::wrap_c_api(lamina_graph_graph_get_fpmath_mode(get(), &c_mode, &c_apply));
    mode = static_cast<fpmath_mode>(c_mode);
    apply_to_int = c_apply != 0;
  }

  // With `allow_exception` false, only the status reports a rejected op; lamina_last_error() returns the sentence.
  status add_op(const op& aop, bool allow_exception = true) {
    const lamina_status_t result = lamina_graph_add_op(get(), aop.get());
    if (allow_exception) error::wrap_c_api(result);
    return static_cast<status>(result);
  }
  // Declares that every element of the input tensor `tensor_id` is `value` at every execution: lamina may compile it in.
  void set_constant(std::size_t tensor_id, double value) {
    error::wrap_c_api(lamina_graph_graph_set_constant(get(), tensor_id, value));
  }
  void finalize() { error::wrap_c_api(lamina_graph_graph_finalize(get())); }
  bool is_finalized() const {
    std::uint8_t finalized = 0;
    error::wrap_c_api(lamina_graph_graph_is_finalized(get(), &finalized));
    return finalized != 0;
  }
  std::vector<partition> get_partitions(partition::policy policy = partition::policy::fusion) {
    error::wrap_c_api(lamina_graph_graph_filter(get(), static_cast<lamina_graph_partition_policy_t>(policy)));
    std::size_t count = 0;
    error::wrap_c_api(lamina_graph_graph_get_partition_num(get(), &count));
    std::vector<lamina_graph_partition_t> created(count);
    error::wrap_c_api(lamina_graph_graph_get_partitions(get(), count, created.data()));
    std::vector<partition> result;
    for (lamina_graph_partition_t each : created) result.emplace_back(each);
    return result;
  }
};

// Whether data derived from constant inputs is kept after a compiled partition's first execution: 1 (the initial value) or 0.
inline void set_constant_tensor_cache(int flag) { error::wrap_c_api(lamina_graph_set_constant_tensor_cache(flag)); }
inline int get_constant_tensor_cache() {
  int flag = 0;
  error::wrap_c_api(lamina_graph_get_constant_tensor_cache(&flag));
  return flag;
}
// The limit of that kept data over all compiled partitions; SIZE_MAX: no limit.
inline void set_constant_tensor_cache_capacity(engine::kind kind, std::size_t mebibytes) {
  error::wrap_c_api(lamina_graph_set_constant_tensor_cache_capacity(static_cast<lamina_engine_kind_t>(kind), mebibytes));
}
inline std::size_t get_constant_tensor_cache_capacity(engine::kind kind) {
  std::size_t mebibytes = 0;
  error::wrap_c_api(lamina_graph_get_constant_tensor_cache_capacity(static_cast<lamina_engine_kind_t>(kind), &mebibytes));
  return mebibytes;
}

// The capacity of the cache of compiled partitions, which a repeated compilation hits; 0 disables it.
inline void set_compiled_partition_cache_capacity(int capacity) {
  error::wrap_c_api(lamina_graph_set_compiled_partition_cache_capacity(capacity));
}
inline int get_compiled_partition_cache_capacity() {
  int capacity = 0;
  error::wrap_c_api(lamina_graph_get_compiled_partition_cache_capacity(&capacity));
  return capacity;
}

// Which JSON files are written to the working directory: graphs before partitioning, compiled partitions.
enum class graph_dump_mode : unsigned {
  none = lamina_graph_dump_mode_none,
  subgraph = lamina_graph_dump_mode_subgraph,
  graph = lamina_graph_dump_mode_graph,
};
inline graph_dump_mode operator|(graph_dump_mode a, graph_dump_mode b) {
  return static_cast<graph_dump_mode>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
inline void set_dump_mode(graph_dump_mode modes) {
  error::wrap_c_api(lamina_graph_set_dump_mode(static_cast<lamina_graph_dump_mode_t>(modes)));
}

}  // namespace lamina::graph
