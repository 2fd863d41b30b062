// Layer normalisation by descriptor: invalid input gives a status and an error message.
#include <cstddef>
#include <cstring>
#include <set>

#include "layer_norm_fixture.h"

namespace api_test {
namespace {

Failure create_failure(const std::function<void(layer_norm::description&)>& spoil,
                       layer_norm::pass pass = layer_norm::pass::forward) {
  const engine cpu(engine::kind::cpu, 0);
  layer_norm::description what;
  what.direction = pass;
  what.tensors = {{arg::src, f32(0, {4, 8})}};
  if (pass == layer_norm::pass::forward) {
    what.tensors[arg::dst] = f32(0, {4, 8});
  } else {
    what.flags |= kStats;
    what.tensors[arg::diff_dst] = what.tensors[arg::diff_src] = f32(0, {4, 8});
  }
  spoil(what);
  return failure_of([&] { layer_norm(what, cpu); });
}

TEST(LayerNormDescriptor, BadDescriptorsGetASentence) {
  using D = layer_norm::description;
  const auto backward = layer_norm::pass::backward;
  EXPECT_THAT(create_failure([](D& d) { d.flags = 0x40; }), FailsWith(lamina_invalid_arguments, "flags are 64"));
  EXPECT_THAT(create_failure([](D& d) { d.outputs = 0x40; }), FailsWith(lamina_invalid_arguments, "outputs are 64"));
  EXPECT_THAT(create_failure([](D& d) { d.outputs = lamina_layer_norm_output_diff_src; }),
              FailsWith(lamina_invalid_arguments, "outputs are 4"));
  EXPECT_THAT(create_failure([](D& d) { d.outputs = lamina_layer_norm_output_stats; }),
              FailsWith(lamina_invalid_arguments, "leave out dst"));
  EXPECT_THAT(create_failure([](D& d) { d.epsilon = 0; }), FailsWith(lamina_invalid_arguments, "epsilon is 0"));
  EXPECT_THAT(create_failure([](D& d) { d.begin_norm_axis = 2; }),
              FailsWith(lamina_invalid_arguments, "begin_norm_axis is 2, allowed is -2..1"));
  EXPECT_THAT(create_failure([](D& d) { d.direction = static_cast<layer_norm::pass>(7); }),
              FailsWith(lamina_invalid_arguments, "pass is 7"));
  EXPECT_THAT(create_failure([](D& d) { d.stats = layer_norm::stats_kind::rstd; }),
              FailsWith(lamina_invalid_arguments, "stats_kind"));
  EXPECT_THAT(create_failure([](D& d) { d.flags |= kNormalized; }), FailsWith(lamina_invalid_arguments, "src_is_normalized"));
  EXPECT_THAT(create_failure([](D& d) { d.tensors.erase(arg::dst); }),
              FailsWith(lamina_invalid_arguments, "argument dst has no tensor"));
  EXPECT_THAT(create_failure([](D& d) { d.tensors[arg::mean] = f32(0, {4}); }),
              FailsWith(lamina_invalid_arguments, "argument mean is given"));
  EXPECT_THAT(create_failure([](D& d) { d.tensors[arg::dst] = f32(0, {4, 9}); }),
              FailsWith(lamina_invalid_shape, "argument dst has shape [4, 9], allowed is [4, 8]"));
  EXPECT_THAT(create_failure([](D& d) { d.tensors[arg::scale] = f32(0, {9}); }),
              FailsWith(lamina_invalid_shape, "argument scale has shape [9], allowed is [8]"));
  EXPECT_THAT(create_failure([](D& d) { d.tensors[arg::src] = f32(0, {}); }),
              FailsWith(lamina_invalid_shape, "src is a scalar"));
  EXPECT_THAT(create_failure([](D& d) { d.tensors[arg::src] = logical_tensor(0, data_type::f32, 2, layout_type::strided); }),
              FailsWith(lamina_invalid_shape, "a known shape is needed"));
  EXPECT_THAT(
      create_failure([](D& d) { d.tensors[arg::dst] = logical_tensor(0, data_type::s32, dims{4, 8}, layout_type::strided); }),
      FailsWith(lamina_invalid_data_type, "argument dst has type s32, allowed is f32, bf16, f16, f64, s8, u8"));
  EXPECT_THAT(create_failure([](D& d) { d.tensors[arg::src_scale] = f32(0, {1}); }),
              FailsWith(lamina_unimplemented, "src has type f32"));
  EXPECT_THAT(create_failure(
                  [](D& d) { d.tensors[arg::diff_src] = logical_tensor(0, data_type::s8, dims{4, 8}, layout_type::strided); },
                  backward),
              FailsWith(lamina_invalid_data_type, "argument diff_src has type s8"));
  EXPECT_THAT(create_failure([](D& d) { d.tensors[arg::variance] = f32(0, {5}); }, backward),
              FailsWith(lamina_invalid_shape, "argument variance has shape [5], allowed is [4]"));
}

TEST(LayerNormDescriptor, BadExecutionsGetASentence) {
  const engine cpu(engine::kind::cpu, 0);
  const stream s(cpu);
  const auto x = f32(0, {400, 8});
  const layer_norm norm({.direction = layer_norm::pass::backward,
                         .flags = kStats | kScale | kShift,
                         .tensors = {{arg::src, x}, {arg::diff_dst, x}, {arg::diff_src, x}}},
                        cpu);
  std::vector<float> big(3200), more(3200), gradient(3200), rows(400, 1), columns(8), diff_scale(8), diff_shift(8),
      workspace(100000);
  void* memory[lamina_layer_norm_arg_count] = {};
  memory[lamina_layer_norm_src] = big.data();
  memory[lamina_layer_norm_diff_dst] = more.data();
  memory[lamina_layer_norm_diff_src] = gradient.data();
  memory[lamina_layer_norm_mean] = memory[lamina_layer_norm_variance] = rows.data();
  memory[lamina_layer_norm_scale] = columns.data();
  memory[lamina_layer_norm_diff_scale] = diff_scale.data();
  memory[lamina_layer_norm_diff_shift] = diff_shift.data();
  const size_t size = norm.get_workspace_size();
  const auto execute = [&](size_t given) {
    return failure_of(
        [&] { error::wrap_c_api(lamina_layer_norm_execute(norm.get(), s.get(), memory, workspace.data(), given)); });
  };
  EXPECT_THAT(execute(size - 1),
              FailsWith(lamina_invalid_arguments, "the workspace has " + std::to_string(size - 1) + " bytes"));
  memory[lamina_layer_norm_scale] = nullptr;
  EXPECT_THAT(execute(size), FailsWith(lamina_invalid_arguments, "memory of argument scale is null"));
  memory[lamina_layer_norm_scale] = memory[lamina_layer_norm_diff_scale];
  EXPECT_THAT(execute(size), FailsWith(lamina_invalid_arguments, "diff_scale uses the memory of scale"));
  EXPECT_EQ(lamina_layer_norm_execute(norm.get(), nullptr, memory, nullptr, 0), lamina_invalid_arguments);
  EXPECT_EQ(lamina_layer_norm_execute(norm.get(), s.get(), nullptr, nullptr, 0), lamina_invalid_arguments);
  EXPECT_EQ(lamina_layer_norm_execute(nullptr, s.get(), memory, nullptr, 0), lamina_invalid_arguments);
}

// Runs the forward pass with dst `offset` elements after src in one buffer; returns the status, and the message of a failure.
Failure executed_at_offset(const dims& strides, int64_t offset) {
  const engine cpu(engine::kind::cpu, 0);
  const logical_tensor x(0, data_type::f32, dims{6, 8}, strides);
  const layer_norm norm({.flags = 0, .tensors = {{arg::src, x}, {arg::dst, x}}}, cpu);
  std::vector<float> buffer(400);
  void* memory[lamina_layer_norm_arg_count] = {};
  memory[lamina_layer_norm_src] = &buffer[100];
  memory[lamina_layer_norm_dst] = &buffer[static_cast<size_t>(100 + offset)];
  const lamina_status_t status = lamina_layer_norm_execute(norm.get(), stream(cpu).get(), memory, nullptr, 0);
  return {status, status == lamina_success ? "" : lamina_last_error()};
}

TEST(LayerNormDescriptor, AnOutputThatOverlapsAnInputInPartIsRefused) {
  for (const int64_t offset : {1, 7, 8, 24, 47, -1, -47})
    EXPECT_THAT(executed_at_offset({8, 1}, offset),
                FailsWith(lamina_invalid_arguments, "dst uses memory that overlaps the memory of src"))
        << offset;
  for (const int64_t offset : {-48, 0, 48}) EXPECT_EQ(executed_at_offset({8, 1}, offset).status, lamina_success) << offset;
}

TEST(LayerNormDescriptor, AnOutputBetweenTheRowsOfAnInputIsTaken) {
  for (const int64_t offset : {8, -8, 24, 96}) EXPECT_EQ(executed_at_offset({16, 1}, offset).status, lamina_success) << offset;
  for (const int64_t offset : {7, 9, -1, 16})
    EXPECT_THAT(executed_at_offset({16, 1}, offset), FailsWith(lamina_invalid_arguments, "overlaps the memory of src"))
        << offset;
}

TEST(LayerNormDescriptor, TwoOutputsInOneMemoryAreRefused) {
  const engine cpu(engine::kind::cpu, 0);
  const auto x = f32(0, {6, 8});
  const layer_norm norm({.flags = 0,
                         .outputs = lamina_layer_norm_output_dst | lamina_layer_norm_output_stats,
                         .tensors = {{arg::src, x}, {arg::dst, x}}},
                        cpu);
  std::vector<float> src(48), dst(48), rows(6);
  EXPECT_THAT(failure_of([&] {
                norm.execute(
                    stream(cpu),
                    {{arg::src, src.data()}, {arg::dst, dst.data()}, {arg::mean, rows.data()}, {arg::variance, rows.data()}});
              }),
              FailsWith(lamina_invalid_arguments, "variance uses the memory of mean"));
}

TEST(LayerNormDescriptor, AnotherDeviceIsRefused) {
  if (engine::get_count(engine::kind::gpu) == 0) {
    EXPECT_THAT(failure_of([] { engine(engine::kind::gpu, 0); }), FailsWith(lamina_unimplemented, ""));
    GTEST_SKIP() << "there is no device beside the CPU to refuse";
  }
  const engine cpu(engine::kind::cpu, 0), gpu(engine::kind::gpu, 0);
  const auto x = f32(0, {4, 8});
  const layer_norm::description what{.flags = 0, .tensors = {{arg::src, x}, {arg::dst, x}}};
  EXPECT_THAT(failure_of([&] { layer_norm(what, gpu); }),
              FailsWith(lamina_unimplemented, "the engine is a GPU, allowed is the CPU"));
  const layer_norm norm(what, cpu);
  const stream s(gpu);
  std::vector<float> data(32);
  EXPECT_THAT(failure_of([&] { norm.execute(s, {{arg::src, data.data()}, {arg::dst, data.data()}}); }),
              FailsWith(lamina_invalid_arguments, "the stream is for a GPU"));
}

// Descriptors of programs that were compiled with older or newer headers, which have fewer or more arguments.
class LayerNormDescSize : public ::testing::Test {
 protected:
  static constexpr size_t kKnown = sizeof(lamina_layer_norm_desc_t);
  static constexpr size_t up_to(lamina_layer_norm_arg_t last) {
    return offsetof(lamina_layer_norm_desc_t, tensors) + (static_cast<size_t>(last) + 1) * sizeof(void*);
  }
  struct NewerDesc {
    lamina_layer_norm_desc_t known;
    const lamina_graph_logical_tensor_t* more[2];
  };

  void SetUp() override {
    std::memset(static_cast<void*>(&newer_), 0xff, sizeof newer_);  // arbitrary stack contents
  }
  lamina_status_t init(size_t size) {
    const lamina_status_t status = lamina_layer_norm_desc_init_sized(&newer_.known, size, lamina_layer_norm_forward);
    newer_.known.flags = 0;
    newer_.known.tensors[lamina_layer_norm_src] = newer_.known.tensors[lamina_layer_norm_dst] = &x_.data;
    return status;
  }
  lamina_status_t create() {
    lamina_layer_norm_t norm = nullptr;
    const lamina_status_t status = lamina_layer_norm_create(&norm, &newer_.known, cpu_.get());
    lamina_layer_norm_destroy(norm);
    return status;
  }

  const engine cpu_{engine::kind::cpu, 0};
  const logical_tensor x_ = f32(0, {4, 8});
  NewerDesc newer_;
};

TEST_F(LayerNormDescSize, OfAnOlderHeaderIsFilledAndReadUpToItsEnd) {
  ASSERT_EQ(init(up_to(lamina_layer_norm_diff_shift)), lamina_success) << lamina_last_error();
  EXPECT_EQ(newer_.known.struct_size, up_to(lamina_layer_norm_diff_shift));
  EXPECT_EQ(newer_.known.tensors[lamina_layer_norm_diff_shift], nullptr);
  uintptr_t behind = 0;
  std::memcpy(&behind, &newer_.known.tensors[lamina_layer_norm_src_scale], sizeof behind);
  EXPECT_EQ(behind, ~uintptr_t{0});  // neither written nor read: it is an invalid pointer
  EXPECT_EQ(create(), lamina_success) << lamina_last_error();
}

TEST_F(LayerNormDescSize, OfANewerHeaderIsTakenWhenItsNewArgumentsAreNotGiven) {
  ASSERT_EQ(init(sizeof newer_), lamina_success) << lamina_last_error();
  EXPECT_EQ(newer_.more[1], nullptr);
  EXPECT_EQ(create(), lamina_success) << lamina_last_error();
  newer_.more[1] = &x_.data;
  EXPECT_EQ(create(), lamina_invalid_arguments);
  EXPECT_THAT(lamina_last_error(), ::testing::HasSubstr("the library is older than the caller's header"));
}

TEST_F(LayerNormDescSize, OfNoHeaderIsRefused) {
  for (const size_t size : {size_t{0}, size_t{8}, kKnown - 1, kKnown + 4, size_t{4104}, ~size_t{0}}) {
    SCOPED_TRACE(size);
    EXPECT_EQ(init(size), lamina_invalid_arguments);
    newer_.known.struct_size = size;
    EXPECT_EQ(create(), lamina_invalid_arguments);
    EXPECT_THAT(lamina_last_error(), ::testing::HasSubstr("lamina_layer_norm_desc_init sets it"));
  }
}

TEST(LayerNormDescriptor, UseAfterDestroyIsFoundOut) {
  const engine cpu(engine::kind::cpu, 0);
  lamina_layer_norm_desc_t desc;
  ASSERT_EQ(lamina_layer_norm_desc_init(&desc, lamina_layer_norm_forward), lamina_success);
  const auto x = f32(0, {4, 8});
  desc.tensors[lamina_layer_norm_src] = desc.tensors[lamina_layer_norm_dst] = &x.data;
  lamina_layer_norm_t norm = nullptr;
  ASSERT_EQ(lamina_layer_norm_create(&norm, &desc, cpu.get()), lamina_success) << lamina_last_error();
  EXPECT_EQ(lamina_layer_norm_destroy(norm), lamina_success);
  size_t size = 0;
  EXPECT_EQ(lamina_layer_norm_get_workspace_size(norm, &size), lamina_invalid_arguments);
  EXPECT_THAT(lamina_last_error(), ::testing::HasSubstr("is already destroyed"));
  EXPECT_EQ(lamina_layer_norm_destroy(norm), lamina_invalid_arguments);
  EXPECT_EQ(lamina_layer_norm_destroy(nullptr), lamina_success);
}

// Handle values are reused after some time: the memory for them does not grow, and the most recent stale handle is still
// detected.
TEST(LayerNormDescriptor, ManyMayComeAndGo) {
  const engine cpu(engine::kind::cpu, 0);
  lamina_layer_norm_desc_t desc;
  ASSERT_EQ(lamina_layer_norm_desc_init(&desc, lamina_layer_norm_forward), lamina_success);
  const auto x = f32(0, {4, 8});
  desc.tensors[lamina_layer_norm_src] = desc.tensors[lamina_layer_norm_dst] = &x.data;
  lamina_layer_norm_t stays = nullptr, norm = nullptr;
  ASSERT_EQ(lamina_layer_norm_create(&stays, &desc, cpu.get()), lamina_success) << lamina_last_error();
  std::set<lamina_layer_norm_t> handles;
  size_t size = 0;
  for (int i = 0; i < 2500; ++i) {
    ASSERT_EQ(lamina_layer_norm_create(&norm, &desc, cpu.get()), lamina_success) << lamina_last_error();
    ASSERT_NE(norm, stays);
    ASSERT_EQ(lamina_layer_norm_get_workspace_size(norm, &size), lamina_success);
    ASSERT_EQ(lamina_layer_norm_destroy(norm), lamina_success);
    ASSERT_EQ(lamina_layer_norm_destroy(norm), lamina_invalid_arguments);
    handles.insert(norm);
  }
  EXPECT_LT(handles.size(), 1200u) << "of 1024 that are kept and those before";
  EXPECT_EQ(lamina_layer_norm_destroy(stays), lamina_success);
}

}  // namespace
}  // namespace api_test
