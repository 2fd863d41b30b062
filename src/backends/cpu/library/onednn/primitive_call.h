// The common part of library ops by oneDNN: descriptions of tensors, primitives for one thread, and calls of them from many
// threads.
#pragma once

#include <cstddef>
#include <future>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/cpu/library/onednn/headers.h"
#include "backends/cpu/library/primitive_library.h"
#include "backends/cpu/threads/executor.h"
#include "handles/locks.h"
#include "interface/logical_tensor.h"
#include "kernels/plan.h"

namespace lamina::cpu::onednn {

const dnnl::engine& engine();

// Throws Error(unimplemented) for a type that oneDNN does not have.
dnnl::memory::data_type type_of(DataType dtype);
dnnl::memory::desc desc_of(const LogicalTensor& tensor);  // unchanged dims and strides

// Whether oneDNN has instructions of this machine for products of this type.
bool computes_fast_in(DataType dtype);
// Whether products of u8 or s8 with s8 are summed exactly by blocked kernels; older instructions saturate. Tried once.
bool multiplies_integers();
bool convolves_integers();
// Whether these are oneDNN's blocked kernels, which sum in the order of k for any number of rows; older ones may not.
bool is_blocked_product(std::string_view implementation);
bool is_blocked_convolution(std::string_view implementation);
// Whether these are oneDNN's generic loops, without code generated for the case.
bool is_plain_loops(std::string_view implementation);

// The attributes of every primitive of this module: the caller provides scratchpads.
dnnl::primitive_attr attributes();

// A lack of memory must not be reported as missing support.
inline void rethrow_out_of_memory(const dnnl::error& error) {
  if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
}

// oneDNN caches its primitives. If the creation of one throws, its cache keeps a promise that is never fulfilled, and the
// next request for the same primitive waits forever. This clears the cache, which only costs time.
void forget_primitives();

template <typename Make>
auto made_or_forgotten(Make&& make) {
  const ForkGuard guard(LockRow::library_calls);  // oneDNN locks its cache of primitives
  try {
    return make();
  } catch (const std::bad_alloc&) {
    forget_primitives();
    throw;
  } catch (const std::future_error&) {
    forget_primitives();
  }
  return make();
}

// Converts oneDNN's exceptions to Error(unimplemented or runtime_error) with the op's name. Primitives are created for one
// thread, independent of the caller's OpenMP settings, because lamina divides tiles among threads.
template <typename Make>
auto made_for(const Op& op, Make&& make) {
  const ThreadLimit alone(1);
  try {
    return made_or_forgotten(make);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) forget_primitives();
    rethrow_out_of_memory(error);
    const bool refused = error.status == dnnl_unimplemented;
    throw Error(refused ? Status::unimplemented : Status::runtime_error, place_of(op), join("oneDNN: ", error.what()));
  }
}

// A primitive that many threads may call at the same time. Each call uses separate memory handles, which later calls reuse.
class PrimitiveCall {
 public:
  // The description of each argument, by oneDNN's index (DNNL_ARG_SRC). The scratchpad's comes from `description`.
  using Arguments = std::vector<std::pair<int, dnnl::memory::desc>>;
  PrimitiveCall() = default;
  template <typename Description>
  PrimitiveCall(const Description& description, const dnnl::primitive& primitive, Arguments arguments)
      : PrimitiveCall(primitive, std::move(arguments), description.scratchpad_desc(), description.impl_info_str()) {}

  // `pointers`: one per argument, in the order of `arguments`. `scratch`: scratch_bytes(), 64-byte aligned.
  void run(std::span<void* const> pointers, void* scratch) const;
  void run(std::initializer_list<void*> pointers, void* scratch) const {
    run(std::span(pointers.begin(), pointers.end()), scratch);
  }

  size_t scratch_bytes() const { return scratch_bytes_; }
  const std::string& implementation() const { return implementation_; }  // "brg:avx512_core"
  explicit operator bool() const { return pool_ != nullptr; }

 private:
  struct Handles {
    dnnl::stream stream{engine()};
    std::vector<dnnl::memory> memories;
    std::vector<dnnl_exec_arg_t> arguments;
  };
  struct Pool {
    Mutex mutex{LockRow::primitive_call};
    std::vector<std::unique_ptr<Handles>> idle;
  };
  PrimitiveCall(const dnnl::primitive& primitive, Arguments arguments, const dnnl::memory::desc& scratchpad,
                std::string implementation);
  std::unique_ptr<Handles> take() const;
  void keep(std::unique_ptr<Handles> handles) const;

  dnnl::primitive primitive_;
  Arguments arguments_;
  size_t scratch_bytes_ = 0;
  std::string implementation_;
  std::unique_ptr<Pool> pool_;
};

// A copy from one layout or type to another, on one thread. `reorder` is empty if both are the same.
PrimitiveCall copy(const dnnl::memory::desc& from, const dnnl::memory::desc& to);
PrimitiveCall reorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to);

inline void* offset(const void* base, int64_t bytes) { return static_cast<char*>(const_cast<void*>(base)) + bytes; }

}  // namespace lamina::cpu::onednn
