// A client of oneDNN's primitives and graphs: both use one engine and one stream, also an engine with an allocator, and each
// reads the other's results.
#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "client.h"

namespace {

constexpr int64_t kRows = 4, kColumns = 40;

std::atomic<int> allocations{0}, releases{0};
void* allocate(size_t size, size_t alignment) {
  ++allocations;
  const size_t boundary = std::max<size_t>(alignment, 64);
  return std::aligned_alloc(boundary, (size + boundary - 1) / boundary * boundary);
}
void release(void* memory) {
  ++releases;
  std::free(memory);
}

// A primitive doubles src into middle, a graph computes its softmax, and a primitive doubles the result: 2 * softmax(2 * src).
void relay(Client& client, const dnnl::engine& engine, const char* what) {
  dnnl::stream stream(engine);
  const dnnl::memory::desc shape({kRows, kColumns}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::ab);
  Floats src = numbers(kRows * kColumns, 5), middle(src.size()), result(src.size());
  dnnl::memory from(shape, engine, src.data()), to(shape, engine, middle.data()), last(shape, engine, result.data());
  const dnnl::eltwise_forward::primitive_desc doubled(engine, dnnl::prop_kind::forward_inference,
                                                      dnnl::algorithm::eltwise_linear, shape, shape, 2.0f, 0.0f);
  const dnnl::eltwise_forward twice(doubled);

  const logical_tensor in = f32(1, {kRows, kColumns}), out = f32(2, {kRows, kColumns});
  op softmax(1, op::kind::SoftMax, {in}, {out}, "softmax");
  softmax.set_attr<int64_t>(op::attr::axis, 1);
  const partition part(softmax, dnnl::engine::kind::cpu);
  const compiled_partition compiled = part.compile({in}, {out}, engine);
  client.expect(tensor(in, engine, middle.data()).get_engine().get() == engine.get(), "the tensor's engine is the client's");

  twice.execute(stream, {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}});
  compiled.execute(stream, {tensor(in, engine, middle.data())}, {tensor(out, engine, middle.data())});
  twice.execute(stream, {{DNNL_ARG_SRC, to}, {DNNL_ARG_DST, last}});
  stream.wait();

  Doubles expected(src.size());
  for (int64_t row = 0; row < kRows; ++row) {
    double sum = 0;
    for (int64_t i = row * kColumns; i < (row + 1) * kColumns; ++i) sum += expected[i] = std::exp(2.0 * src[i]);
    for (int64_t i = row * kColumns; i < (row + 1) * kColumns; ++i) expected[i] *= 2 / sum;
  }
  client.expect_near(what, result, expected, 1e-5);
}

// A matrix product needs intermediate memory.
void product(Client& client, const dnnl::engine& engine) {
  const logical_tensor a = f32(1, {64, 64}), b = f32(2, {64, 64}), c = f32(3, {64, 64});
  const partition part(op(1, op::kind::MatMul, {a, b}, {c}, "matmul"), dnnl::engine::kind::cpu);
  const compiled_partition compiled = part.compile({a, b}, {c}, engine);
  const Floats left = numbers(64 * 64, 1), right = numbers(64 * 64, 2);
  Floats result(64 * 64);
  dnnl::stream stream(engine);
  compiled.execute(stream,
                   {tensor(a, engine, const_cast<float*>(left.data())), tensor(b, engine, const_cast<float*>(right.data()))},
                   {tensor(c, engine, result.data())});
  stream.wait();
  Doubles expected(64 * 64);
  for (int i = 0; i < 64; ++i)
    for (int k = 0; k < 64; ++k)
      for (int j = 0; j < 64; ++j) expected[i * 64 + j] += double(left[i * 64 + k]) * right[k * 64 + j];
  client.expect_near("product", result, expected, 1e-5);
}

}  // namespace

int main() {
  Client client;
  relay(client, client.engine, "primitive, graph, primitive");
  {
    const allocator memory(allocate, release);
    const dnnl::engine engine = make_engine_with_allocator(dnnl::engine::kind::cpu, 0, memory);
    client.expect(engine.get_kind() == dnnl::engine::kind::cpu, "an engine with an allocator is of the CPU");
    relay(client, engine, "the same with an allocator");
    product(client, engine);
  }
  client.expect(releases <= allocations, "nothing is released twice");
  return client.exit_code();
}
