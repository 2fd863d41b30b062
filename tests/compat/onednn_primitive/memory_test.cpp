// The front end's own allocation of memory fails cleanly. This file replaces aligned new for the whole program.
#include <cstdlib>
#include <new>

#include "primitive_fixture.h"

namespace {
bool exhausted = false;
}

void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  const auto unit = static_cast<std::size_t>(alignment);
  return exhausted ? nullptr : std::aligned_alloc(unit, (size + unit - 1) / unit * unit);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  void* const memory = operator new(size, alignment, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace primitive_test {
namespace {

TEST(Memory, IsKeptWhenThereIsNoMore) {
  const engine cpu(engine::kind::cpu, 0);
  const memory::desc desc({4, 8}, dt::f32, tag::nc);
  const memory held(desc, cpu);
  auto* const values = static_cast<float*>(held.get_data_handle());
  ASSERT_NE(values, nullptr);
  values[31] = 7;
  exhausted = true;
  const Failure failure = failure_of([&] { held.set_data_handle(DNNL_MEMORY_ALLOCATE); });
  exhausted = false;
  EXPECT_THAT(failure, FailsWith(dnnl_out_of_memory, "cannot allocate the 128 bytes of its descriptor"));
  EXPECT_EQ(held.get_data_handle(), values);
  EXPECT_EQ(values[31], 7);
  held.set_data_handle(DNNL_MEMORY_ALLOCATE);
  EXPECT_NE(held.get_data_handle(), nullptr);
}

}  // namespace
}  // namespace primitive_test
