// A GPU language: its words for what the dialect of generated programs leaves open. Adding one takes a table like those in
// this folder. program_text.cpp turns it into macros; emit/prelude.inl and the texts of emit/math_text.cpp use these.
#pragma once

#include <string>

namespace lamina::gpu {

struct Language {
  const char* name;
  const char* file_ending;
  const char* start;  // the first lines of a program

  // Qualifiers and types.
  const char* function;
  const char* kernel;           // with the macro's parameters: `size` threads of a group, `resident` groups on a multiprocessor
  const char *global, *shared;  // a pointer to memory of the device, of the work-group
  const char* shared_variable;
  const char* restrict_word;
  const char *s8, *s64;

  // Expressions. `shuffle`: the `x` of the thread of the warp whose number differs in bit `distance`; "" if the language knows
  // no warps, and teams use shared memory.
  const char *group, *thread, *barrier, *shuffle;
  // Arithmetic of (a, b, c) and (x), rounded to nearest even. `bits`: an unsigned integer with the bits of x; `real`: back.
  struct Functions {
    const char *fma, *divide, *square_root, *bits, *real;
  } f32, f64;

  // Definitions of conversions (small_float_text in emit/math_text.h) that the device's instructions compute with the same
  // bits, each with a macro of its name.
  const char* conversions;

  // Definitions for work-groups of a cluster, which run at the same time and write into each other's local memory; "" if the
  // language has none. `arrivals`: two counters of bytes in local memory, each for every second exchange.
  //   LM_CLUSTER(groups): between a kernel's qualifiers and its name
  //   lm_start_cluster(arrivals, is_first): of all threads, `is_first` in one; waits until all work-groups have started
  //   lm_expect_bytes(arrival, bytes): of one thread, before it waits
  //   lm_send_f32(to, x, arrival, rank), lm_send_f64: writes to the same place in the memory of work-group `rank`
  //   lm_wait_for_bytes(arrival, parity): until the expected bytes are there; `parity` of the number of waits before
  const char* clusters;

  // Definitions for rows that are copied to local memory beside computation; "" if the language has no such copies.
  //   LM_COPIED_ROWS(bytes): declares `copied`, local memory that begins at a multiple of 16
  //   LM_COPY_AHEAD(count, to, from): copies elements, a multiple of 16 bytes, to local memory
  //   lm_end_copies(), LM_WAIT_FOR_COPIES(n): ends a group of copies; waits for all but the last n groups of this thread
  const char* copies_ahead;

  // Definitions of what products by matrix instructions use (emit/matrix_tile_text.h); "" if the language has none. A *lane* is
  // one of the 32 threads of a warp.
  //   LM_MATRIX_MEMORY(bytes, threads): declares lm_memory, local memory for 16-bit elements that begins at a multiple of 1024
  //   LM_WARP: the number of the thread's warp
  //   lm_copy_chunk(to, from, count): copies 16 bytes to local memory; elements from `count` on are 0
  //   lm_end_copies(), LM_WAIT_FOR_COPIES(n): ends a group of copies; waits for all but the last n groups of this thread
  //   lm_load_matrices(to, line): four matrices of 8 x 8 elements, whose lines begin at the lanes' `line`s; a lane gets two
  //     neighbours of each, elements lane % 4 * 2 of line lane / 4. ..._transposed(to, line): of the transposed matrices
  //   lm_multiply_bf16(sum, left, right), lm_multiply_f16: 16 x 8 sums += [16, 16] x [16, 8]
  const char* matrix_instructions;
  // The same for instructions of four warps in the order of their number, which read both factors from local memory while the
  // warps go on. Null if the language has none.
  //   lm_show_copies(): after a thread waited for its copies, before the barrier
  //   lm_start_products(), lm_end_products(): begins and ends a group of products
  //   LM_WAIT_FOR_PRODUCTS(n): waits for all but the last n groups of these warps
  //   lm_multiply_by_four_warps(sum, left, right): 64 x `columns` sums += [64, 16] x [16, columns]. A warp has 16 rows, in the
  //     order of lm_multiply_bf16; eight columns follow eight columns
  std::string (*instructions_of_four_warps)(int columns, const std::string& type, bool left_along_terms,
                                            bool right_along_terms);
};

namespace languages {
extern const Language cuda, hip, opencl;
}

}  // namespace lamina::gpu
