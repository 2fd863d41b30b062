// Allocation failures in compiling, tuning and executing, for everything that the CPU runs. LLVM makes too many
// allocations to test all of them, so only some are tested.
#include <array>
#include <atomic>
#include <cstdlib>

#include "../api/graph_cases.h"
#include "graph/layer_norm.h"
#include "starve/starve_fixture.h"

namespace starve {
namespace {

using api_test::Bytes;
using api_test::GraphCase;

std::vector<GraphCase> cases() {
  return {api_test::layer_norm_case(40, 512),
          api_test::layer_norm_backward_case(200, 64),
          api_test::layer_norm_backward_case(5, 8192),
          api_test::softmax_case(1, 20'000),
          api_test::attention_case(1, 2, 64, 16),
          api_test::mlp_case(64, 32, 48),
          api_test::two_products_case(64, 32),
          api_test::int8_product_case(64, 64, 48),
          api_test::convolution_case(2, 8, 12),
          api_test::weight_gradient_case(2, 8, 12),
          api_test::pool_case(2, 16, 24)};
}

// A case that uses only the C interface, so that all allocations during compile and execute are lamina's.
class InC {
 public:
  explicit InC(GraphCase which) : case_(std::move(which)), partition_(api_test::only_partition_of(case_.ops)) {
    for (const auto& each : case_.inputs) inputs_.push_back(&each.data);
    for (const auto& each : case_.outputs) outputs_.push_back(&each.data);
    for (const auto& each : case_.inputs) memory_.push_back(api_test::memory_for(each, each.get_id() == case_.positive));
    for (const auto& each : case_.outputs) results_.emplace_back(each.get_mem_size() + kRoom);
    EXPECT_EQ(lamina_graph_compiled_partition_create(&compiled_, partition_.get()), lamina_success);
  }
  ~InC() { lamina_graph_compiled_partition_destroy(compiled_); }
  InC(const InC&) = delete;
  InC& operator=(const InC&) = delete;

  lamina_status_t compile(const_lamina_engine_t engine) { return compile_into(compiled_, engine); }
  lamina_status_t compile_into(lamina_graph_compiled_partition_t compiled, const_lamina_engine_t engine) {
    return lamina_graph_partition_compile(partition_.get(), compiled, inputs_.size(), inputs_.data(), outputs_.size(),
                                          outputs_.data(), engine);
  }
  lamina_status_t tune(const_lamina_engine_t engine, size_t* timed) {
    return lamina_graph_partition_tune(partition_.get(), inputs_.size(), inputs_.data(), outputs_.size(), outputs_.data(),
                                       engine, 1, timed);
  }
  // Creates the tensors for an engine; `shift` is the number of bytes between a line boundary and the results.
  void bind(const lamina::engine& engine, size_t shift = 0) {
    tensors_.clear();
    c_inputs_.clear();
    c_outputs_.clear();
    for (size_t i = 0; i < memory_.size(); ++i) tensors_.emplace_back(case_.inputs[i], engine, memory_[i].data());
    for (size_t i = 0; i < results_.size(); ++i) tensors_.emplace_back(case_.outputs[i], engine, results_[i].data() + shift);
    for (size_t i = 0; i < tensors_.size(); ++i) (i < memory_.size() ? c_inputs_ : c_outputs_).push_back(tensors_[i].get());
    shift_ = shift;
  }
  lamina_status_t execute(lamina_stream_t stream) {
    return lamina_graph_compiled_partition_execute(compiled_, stream, c_inputs_.size(), c_inputs_.data(), c_outputs_.size(),
                                                   c_outputs_.data());
  }
  void forget_results() {
    for (Bytes& each : results_) std::fill(each.begin(), each.end(), std::byte{0xa5});
  }
  std::vector<Bytes> results() const {
    std::vector<Bytes> all;
    for (const Bytes& each : results_)
      all.emplace_back(each.begin() + static_cast<ptrdiff_t>(shift_), each.end() - static_cast<ptrdiff_t>(kRoom - shift_));
    return all;
  }
  const std::string& name() const { return case_.name; }
  const lamina::graph::partition& partition() const { return partition_; }
  lamina_graph_compiled_partition_t compiled() const { return compiled_; }

 private:
  static constexpr size_t kRoom = 64;
  GraphCase case_;
  lamina::graph::partition partition_;
  lamina_graph_compiled_partition_t compiled_ = nullptr;
  std::vector<const lamina_graph_logical_tensor_t*> inputs_, outputs_;
  std::vector<Bytes> memory_, results_;
  std::vector<lamina::graph::tensor> tensors_;
  std::vector<const_lamina_graph_tensor_t> c_inputs_, c_outputs_;
  size_t shift_ = 0;
};

class StarvedRunning : public ::testing::TestWithParam<size_t> {
 protected:
  void SetUp() override { LAMINA_EXPECT_OK(lamina_graph_set_compiled_partition_cache_capacity(0)); }
  void TearDown() override { LAMINA_EXPECT_OK(lamina_graph_set_compiled_partition_cache_capacity(1024)); }

  lamina::engine cpu_{lamina::engine::kind::cpu, 0};
  lamina::stream stream_{cpu_};
};

class StarvedQueries : public ::testing::Test {
 protected:
  lamina::engine cpu_{lamina::engine::kind::cpu, 0};
  lamina::stream stream_{cpu_};
};

INSTANTIATE_TEST_SUITE_P(Cases, StarvedRunning, ::testing::Range(size_t{0}, cases().size()), [](const auto& one) {
  std::string name = cases()[one.param].name + std::to_string(one.param);
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

// Compiling and executing while allocations fail gives the same results as without failures.
TEST_P(StarvedRunning, CompilesAndExecutes) {
  InC starved(cases()[GetParam()]), at_leisure(cases()[GetParam()]);
  const std::string compile = "compile of " + starved.name(), execute = "execute of " + starved.name();
  const int64_t failed = sweep({.label = compile.c_str(), .call = [&] { return starved.compile(cpu_.get()); }, .step = 11});
  EXPECT_GT(failed, LAMINA_FAILS_ALLOCATIONS ? 100 : -1);
  starved.bind(cpu_);
  starved.forget_results();
  sweep({execute.c_str(), [&] { return starved.execute(stream_.get()); }});
  LAMINA_EXPECT_OK(at_leisure.compile(cpu_.get()));
  at_leisure.bind(cpu_);
  LAMINA_EXPECT_OK(at_leisure.execute(stream_.get()));
  EXPECT_EQ(starved.results(), at_leisure.results());
  // Results that do not start at a line boundary may need code of their own, which is compiled now.
  starved.bind(cpu_, 4);
  starved.forget_results();
  sweep({execute.c_str(), [&] { return starved.execute(stream_.get()); }, nullptr, Owner::all_but_llvm, 11});
  EXPECT_EQ(starved.results(), at_leisure.results());
}

// Allocations of the code generator.
TEST_P(StarvedRunning, CompilesWithoutMemoryForLlvm) {
  InC starved(cases()[GetParam()]), at_leisure(cases()[GetParam()]);
  const std::string label = "compile by LLVM of " + starved.name();
  // LLVM is initialised before.
  LAMINA_EXPECT_OK(InC(api_test::layer_norm_case(8, 100)).compile(cpu_.get()));
  sweep({.label = label.c_str(), .call = [&] { return starved.compile(cpu_.get()); }, .owner = Owner::llvm, .step = 997});
  LAMINA_EXPECT_OK(at_leisure.compile(cpu_.get()));
  starved.bind(cpu_);
  at_leisure.bind(cpu_);
  LAMINA_EXPECT_OK(starved.execute(stream_.get()));
  LAMINA_EXPECT_OK(at_leisure.execute(stream_.get()));
  EXPECT_EQ(starved.results(), at_leisure.results());
}

// The queries of a compiled partition.
TEST_F(StarvedQueries, OfCompiledPartitions) {
  InC made(api_test::layer_norm_backward_case(200, 64));
  LAMINA_EXPECT_OK(made.compile(cpu_.get()));
  lamina_graph_logical_tensor_t tensor;
  sweep({"lamina_graph_compiled_partition_query_logical_tensor",
         [&] { return lamina_graph_compiled_partition_query_logical_tensor(made.compiled(), 5, &tensor); }});
  sweep({"lamina_graph_compiled_partition_get_scratchpad_logical_tensor",
         [&] { return lamina_graph_compiled_partition_get_scratchpad_logical_tensor(made.compiled(), &tensor); }});
  size_t count = 0;
  const lamina_graph_inplace_pair_t* pairs = nullptr;
  sweep({"lamina_graph_compiled_partition_get_inplace_ports",
         [&] { return lamina_graph_compiled_partition_get_inplace_ports(made.compiled(), &count, &pairs); }});
  uint8_t shares = 0;
  sweep({"lamina_graph_compiled_partition_may_share",
         [&] { return lamina_graph_compiled_partition_may_share(made.compiled(), 0, 1, &shares); }});
  Text text;
  sweep({"lamina_graph_compiled_partition_write_info",
         [&] { return lamina_graph_compiled_partition_write_info(made.compiled(), Text::take, &text); }});
  EXPECT_GT(text.length, 50u);
  const const_lamina_graph_partition_t partition = made.partition().get();
  const const_lamina_graph_compiled_partition_t compiled = made.compiled();
  sweep({.label = "lamina_graph_partitions_explain of what was compiled",
         .call =
             [&] {
               return lamina_graph_partitions_explain(1, &partition, &compiled, cpu_.get(), lamina_graph_explanation_json,
                                                      "title", nullptr, Text::take, &text);
             },
         .step = 29});
  EXPECT_EQ(text.str().find("cannot be compiled"), std::string::npos) << text.str();
}

TEST_F(StarvedQueries, Profiles) {
  const lamina::stream profiling(cpu_, lamina::stream::flags::profiling);
  InC made(api_test::layer_norm_case(8, 64));
  LAMINA_EXPECT_OK(made.compile(cpu_.get()));
  made.bind(cpu_);
  sweep({"lamina_graph_compiled_partition_execute with a profile", [&] { return made.execute(profiling.get()); }});
  for (const auto format : {lamina_profile_json, lamina_profile_table, lamina_profile_trace}) {
    Text text;
    const auto write = [&] { return lamina_stream_write_profile(profiling.get(), format, "title", Text::take, &text); };
    LAMINA_EXPECT_OK(write());  // measures the machine
    sweep({"lamina_stream_write_profile", write});
    EXPECT_NE(text.str().find("layer_norm"), std::string::npos) << text.str();
  }
}

TEST_F(StarvedQueries, Tuning) {
  InC made(api_test::softmax_case(40, 96));
  size_t timed = 0;
  // The schedules that it compiles and caches depend on timing.
  sweep({.label = "lamina_graph_partition_tune",
         .call = [&] { return made.tune(cpu_.get(), &timed); },
         .step = 499,
         .keeps_more_each_time = true});
  LAMINA_EXPECT_OK(made.compile(cpu_.get()));
}

TEST_F(StarvedQueries, Settings) {
  int number = 0;
  size_t size = 0;
  lamina_fpmath_mode_t mode = lamina_fpmath_mode_strict;
  sweep({"lamina_set_verbose", [] { return lamina_set_verbose(0); }});
  sweep({"lamina_set_verbose_output", [] { return lamina_set_verbose_output(-1, nullptr, nullptr); }});
  sweep({"lamina_set_compile_progress", [] { return lamina_set_compile_progress(nullptr, nullptr); }});
  sweep({"lamina_set_default_fpmath_mode", [&] { return lamina_set_default_fpmath_mode(mode); }});
  sweep({"lamina_get_default_fpmath_mode", [&] { return lamina_get_default_fpmath_mode(&mode); }});
  sweep({"lamina_graph_set_dump_mode", [] { return lamina_graph_set_dump_mode(lamina_graph_dump_mode_none); }});
  sweep({"lamina_graph_get_compiled_partition_cache_capacity",
         [&] { return lamina_graph_get_compiled_partition_cache_capacity(&number); }});
  sweep({"lamina_graph_set_compiled_partition_cache_capacity",
         [&] { return lamina_graph_set_compiled_partition_cache_capacity(number); }});
  sweep({"lamina_graph_get_constant_tensor_cache", [&] { return lamina_graph_get_constant_tensor_cache(&number); }});
  sweep({"lamina_graph_set_constant_tensor_cache", [&] { return lamina_graph_set_constant_tensor_cache(number); }});
  sweep({"lamina_graph_get_constant_tensor_cache_capacity",
         [&] { return lamina_graph_get_constant_tensor_cache_capacity(lamina_cpu, &size); }});
  sweep({"lamina_graph_set_constant_tensor_cache_capacity",
         [&] { return lamina_graph_set_constant_tensor_cache_capacity(lamina_cpu, size); }});
}

// Verbose lines need memory; without it, the execution still succeeds.
TEST_F(StarvedQueries, VerboseLines) {
  InC made(api_test::layer_norm_case(40, 512));
  LAMINA_EXPECT_OK(made.compile(cpu_.get()));
  made.bind(cpu_);
  Text text;
  LAMINA_EXPECT_OK(lamina_set_verbose_output(1, Text::take, &text));
  LAMINA_EXPECT_OK(made.execute(stream_.get()));
  EXPECT_EQ(text.str().rfind("lamina,exec,", 0), 0u) << text.str();
  for (int64_t number = 1; number < 30; ++number) {
    fail_allocation(number, Owner::all_but_llvm);
    const lamina_status_t status = made.execute(stream_.get());
    stop_failing();
    EXPECT_EQ(status, lamina_success) << "allocation " << number << ": " << lamina_last_error();
  }
  LAMINA_EXPECT_OK(lamina_set_verbose_output(-1, nullptr, nullptr));
}

// ---- layer normalisation by descriptor

TEST_F(StarvedQueries, LayerNorms) {
  lamina_layer_norm_desc_t desc;
  LAMINA_EXPECT_OK(lamina_layer_norm_desc_init(&desc, lamina_layer_norm_backward));
  const auto data = f32(0, {200, 64}), rows = f32(0, {200}), columns = f32(0, {64});
  for (const int each : {lamina_layer_norm_src, lamina_layer_norm_diff_dst, lamina_layer_norm_diff_src})
    desc.tensors[each] = &data;
  for (const int each : {lamina_layer_norm_mean, lamina_layer_norm_variance}) desc.tensors[each] = &rows;
  for (const int each : {lamina_layer_norm_scale, lamina_layer_norm_diff_scale, lamina_layer_norm_diff_shift})
    desc.tensors[each] = &columns;
  lamina_layer_norm_t norm = nullptr;
  EXPECT_GT(sweep({.label = "lamina_layer_norm_create",
                   .call = [&] { return lamina_layer_norm_create(&norm, &desc, cpu_.get()); },
                   .undo = [&] { lamina_layer_norm_destroy(norm); },
                   .step = 11}),
            LAMINA_FAILS_ALLOCATIONS ? 100 : -1);
  size_t size = 0;
  uint8_t may = 0;
  lamina_graph_logical_tensor_t tensor;
  sweep({"lamina_layer_norm_get_workspace_size", [&] { return lamina_layer_norm_get_workspace_size(norm, &size); }});
  sweep({"lamina_layer_norm_query", [&] { return lamina_layer_norm_query(norm, lamina_layer_norm_src, &tensor); }});
  sweep({"lamina_layer_norm_may_share",
         [&] { return lamina_layer_norm_may_share(norm, lamina_layer_norm_diff_dst, lamina_layer_norm_diff_src, &may); }});
  std::array<std::vector<float>, lamina_layer_norm_arg_count> memory;
  std::array<void*, lamina_layer_norm_arg_count> handles{};
  for (size_t i = 0; i < memory.size(); ++i) {
    memory[i].assign(200 * 64, 1.5F);
    handles[i] = memory[i].data();
  }
  sweep({"lamina_layer_norm_execute",
         [&] { return lamina_layer_norm_execute(norm, stream_.get(), handles.data(), nullptr, 0); }});
  // Destroying must not need memory.
  fail_allocation(1, Owner::all_but_llvm);
  const lamina_status_t status = lamina_layer_norm_destroy(norm);
  EXPECT_FALSE(stop_failing());
  EXPECT_EQ(status, lamina_success);
}

// ---- the user's allocator

bool gives_memory = true;
std::atomic<int> given = 0;

void* give(size_t size, size_t alignment) {
  if (!gives_memory) return nullptr;
  ++given;
  return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}
void take_back(void* memory) {
  --given;
  free(memory);
}

TEST_P(StarvedRunning, ExecutesWithoutMemoryOfTheUsersAllocator) {
  const lamina::graph::allocator allocator(give, take_back);
  {
    const lamina::engine own = lamina::graph::make_engine_with_allocator(lamina::engine::kind::cpu, 0, allocator);
    const lamina::stream stream(own);
    InC starved(cases()[GetParam()]), at_leisure(cases()[GetParam()]);
    LAMINA_EXPECT_OK(starved.compile(own.get()));
    LAMINA_EXPECT_OK(at_leisure.compile(cpu_.get()));
    starved.bind(own);
    at_leisure.bind(cpu_);
    size_t needed = 0;
    lamina_graph_logical_tensor_t scratchpad;
    LAMINA_EXPECT_OK(lamina_graph_compiled_partition_get_scratchpad_logical_tensor(starved.compiled(), &scratchpad));
    LAMINA_EXPECT_OK(lamina_graph_logical_tensor_get_mem_size(&scratchpad, &needed));
    gives_memory = false;
    const lamina_status_t status = starved.execute(stream.get());
    EXPECT_EQ(status, needed > 0 ? lamina_out_of_memory : lamina_success) << lamina_last_error();
    gives_memory = true;
    LAMINA_EXPECT_OK(starved.execute(stream.get()));
    LAMINA_EXPECT_OK(at_leisure.execute(stream_.get()));
    EXPECT_EQ(starved.results(), at_leisure.results());
  }
  EXPECT_EQ(given, 0);
}

}  // namespace
}  // namespace starve
