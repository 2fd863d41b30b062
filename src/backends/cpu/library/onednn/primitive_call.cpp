#include "backends/cpu/library/onednn/primitive_call.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "interface/status.h"

namespace lamina::cpu::onednn {

namespace {

using dt = dnnl::memory::data_type;

void check(dnnl_status_t status, const std::string& implementation) {
  if (status == dnnl_success) return;
  throw Error(status == dnnl_out_of_memory ? Status::out_of_memory : Status::runtime_error,
              join("oneDNN: ", implementation, " ended with status ", static_cast<int>(status)));
}

bool multiplies_fast(DataType dtype) {
  const ThreadLimit alone(1);
  const dnnl::memory::desc matrix({64, 64}, type_of(dtype), dnnl::memory::format_tag::ab);
  const dnnl::matmul::primitive_desc made(engine(), matrix, matrix, matrix, attributes(), true);
  return made && is_blocked_product(made.impl_info_str());
}

// Whether all results of a primitive equal `terms` times the product of the largest numbers. Without VNNI, two neighbouring
// products are summed in 16 bits and saturate.
template <typename Left>
bool sums_exactly(const PrimitiveCall& call, Left largest, int64_t terms, size_t elements, size_t weights) {
  std::vector<Left> a(elements, largest);
  std::vector<int8_t> b(weights, 127);
  std::vector<float> c(elements);
  std::vector<char> scratch(call.scratch_bytes() + 64);
  void* const aligned_scratch = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64);
  call.run({a.data(), b.data(), c.data()}, aligned_scratch);
  const auto expected = static_cast<float>(terms * 127 * largest);
  return std::all_of(c.begin(), c.end(), [&](float value) { return value == expected; });
}

constexpr int64_t kTried = 64;  // rows, columns, channels, positions

template <typename Left>
bool multiplies_exactly(dt left, Left largest) {
  const ThreadLimit alone(1);
  const auto matrix = [](dt type) { return dnnl::memory::desc({kTried, kTried}, type, dnnl::memory::format_tag::ab); };
  const dnnl::memory::desc src = matrix(left), weights = matrix(dt::s8), dst = matrix(dt::f32);
  const dnnl::matmul::primitive_desc made(engine(), src, weights, dst, attributes(), true);
  if (!made || !is_blocked_product(made.impl_info_str())) return false;
  const PrimitiveCall multiply(made, dnnl::matmul(made),
                               {{DNNL_ARG_SRC, src}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, dst}});
  return sums_exactly(multiply, largest, kTried, kTried * kTried, kTried * kTried);
}

// Only with u8: s8 would be shifted to u8, and the weights that correct this have an internal layout of oneDNN.
bool convolves_exactly() {
  using tag = dnnl::memory::format_tag;
  const ThreadLimit alone(1);
  const dnnl::memory::desc src({1, kTried, 1, kTried}, dt::u8, tag::nhwc), any({kTried, kTried, 1, 1}, dt::s8, tag::any);
  const dnnl::memory::desc dst({1, kTried, 1, kTried}, dt::f32, tag::nhwc);
  const dnnl::convolution_forward::primitive_desc made(engine(), dnnl::prop_kind::forward_inference,
                                                       dnnl::algorithm::convolution_direct, src, any, dst, {1, 1}, {0, 0},
                                                       {0, 0}, attributes(), true);
  if (!made || !is_blocked_convolution(made.impl_info_str())) return false;
  const PrimitiveCall convolve(made, dnnl::convolution_forward(made),
                               {{DNNL_ARG_SRC, src}, {DNNL_ARG_WEIGHTS, made.weights_desc()}, {DNNL_ARG_DST, dst}});
  // All weights are one number, so their order is irrelevant.
  return sums_exactly<uint8_t>(convolve, 255, kTried, kTried * kTried, made.weights_desc().get_size());
}

}  // namespace

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dt type_of(DataType dtype) {
  switch (dtype) {
    case DataType::f32: return dt::f32;
    case DataType::bf16: return dt::bf16;
    case DataType::f16: return dt::f16;
    case DataType::s8: return dt::s8;
    case DataType::u8: return dt::u8;
    case DataType::s32: return dt::s32;
    default: throw Error(Status::unimplemented, join("oneDNN has no tensors of type ", name_of(dtype)));
  }
}

dnnl::memory::desc desc_of(const LogicalTensor& tensor) {
  // In oneDNN, a scalar is a tensor of one element.
  if (tensor.shape->empty()) return {{1}, type_of(tensor.dtype), dnnl::memory::dims{1}};
  return {*tensor.shape, type_of(tensor.dtype), tensor.strides};
}

void forget_primitives() {
  const ForkGuard guard(LockRow::library_calls);
  const int capacity = dnnl::get_primitive_cache_capacity();
  dnnl::set_primitive_cache_capacity(0);
  dnnl::set_primitive_cache_capacity(capacity);
}

bool computes_fast_in(DataType dtype) {
  if (dtype == DataType::f32) return true;
  static const bool bf16 = made_or_forgotten([] { return multiplies_fast(DataType::bf16); }),
                    f16 = made_or_forgotten([] { return multiplies_fast(DataType::f16); });
  return dtype == DataType::bf16 ? bf16 : dtype == DataType::f16 && f16;
}

bool multiplies_integers() {
  static const bool exact =
      made_or_forgotten([] { return multiplies_exactly<uint8_t>(dt::u8, 255) && multiplies_exactly<int8_t>(dt::s8, -128); });
  return exact;
}

bool convolves_integers() {
  static const bool exact = made_or_forgotten(convolves_exactly);
  return exact;
}

bool is_blocked_product(std::string_view implementation) { return implementation.substr(0, 4) == "brg:"; }

bool is_blocked_convolution(std::string_view implementation) { return implementation.substr(0, 7) == "brgconv"; }

bool is_plain_loops(std::string_view implementation) { return implementation.find("ref") != std::string_view::npos; }

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

PrimitiveCall::PrimitiveCall(const dnnl::primitive& primitive, Arguments arguments, const dnnl::memory::desc& scratchpad,
                             std::string implementation)
    : primitive_(primitive),
      arguments_(std::move(arguments)),
      scratch_bytes_(aligned(scratchpad.get_size())),
      implementation_(std::move(implementation)),
      pool_(std::make_unique<Pool>()) {
  arguments_.emplace_back(DNNL_ARG_SCRATCHPAD, scratchpad);
}

std::unique_ptr<PrimitiveCall::Handles> PrimitiveCall::take() const {
  {
    const std::lock_guard lock(pool_->mutex);
    if (!pool_->idle.empty()) {
      std::unique_ptr<Handles> handles = std::move(pool_->idle.back());
      pool_->idle.pop_back();
      return handles;
    }
  }
  auto handles = std::make_unique<Handles>();
  for (const auto& [index, desc] : arguments_) {
    handles->memories.emplace_back(desc, engine(), nullptr);
    handles->arguments.push_back({index, handles->memories.back().get()});
  }
  return handles;
}

void PrimitiveCall::keep(std::unique_ptr<Handles> handles) const {
  const std::lock_guard lock(pool_->mutex);
  pool_->idle.push_back(std::move(handles));
}

void PrimitiveCall::run(std::span<void* const> pointers, void* scratch) const {
  LAMINA_CHECK(pointers.size() + 1 == arguments_.size(), join(implementation_, " was given ", pointers.size(), " pointers"));
  std::unique_ptr<Handles> handles = take();
  for (size_t i = 0; i < pointers.size(); ++i)
    check(dnnl_memory_set_data_handle(handles->arguments[i].memory, pointers[i]), implementation_);
  check(dnnl_memory_set_data_handle(handles->arguments.back().memory, scratch_bytes_ == 0 ? nullptr : scratch),
        implementation_);
  check(dnnl_primitive_execute(primitive_.get(), handles->stream.get(), static_cast<int>(handles->arguments.size()),
                               handles->arguments.data()),
        implementation_);
  keep(std::move(handles));
}

PrimitiveCall reorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to) {
  return from == to ? PrimitiveCall{} : copy(from, to);
}

PrimitiveCall copy(const dnnl::memory::desc& from, const dnnl::memory::desc& to) {
  const ForkGuard guard(LockRow::library_calls);
  const dnnl::reorder::primitive_desc made(engine(), from, engine(), to, attributes());
  return {made, dnnl::reorder(made), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}};
}

}  // namespace lamina::cpu::onednn
