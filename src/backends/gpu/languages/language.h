// A GPU language: its words for what the dialect of generated programs leaves open. Adding one takes a table like those in
// this folder. program_text.cpp turns it into macros; emit/prelude.inl and the texts of emit/math_text.cpp use these.
#pragma once

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

  // Definitions of what products by matrix instructions use (emit/matrix_tile_text.h); "" if the language has none. A *lane* is
  // one of the 32 threads of a warp.
  //   LM_MATRIX_EXCHANGE(threads): declarations at the start of a kernel
  //   lm_copy_chunk(to, from, count): copies 16 bytes to local memory; elements from `count` on are 0
  //   lm_end_copies(), LM_WAIT_FOR_COPIES(n): ends a group of copies; waits for all but the last n groups of this thread
  //   lm_load_matrices(to, line): four matrices of 8 x 8 elements, whose lines begin at the lanes' `line`s; a lane gets two
  //     neighbours of each, elements lane % 4 * 2 of line lane / 4. ..._transposed(to, line): of the transposed matrices
  //   lm_multiply_bf16(sum, left, right), lm_multiply_f16: 16 x 8 sums += [16, 16] x [16, 8]
  const char* matrix_instructions;
};

namespace languages {
extern const Language cuda, hip, opencl;
}

}  // namespace lamina::gpu
