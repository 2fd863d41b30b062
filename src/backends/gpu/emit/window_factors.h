// The factors of a convolution as those of a product by matrix instructions.
//
// Eight elements of a chunk are a *run* if they are a constant distance apart and either all inside of the image or all
// outside: channels of one tap, positions along which the window does not move and has no pads, or columns. A run of neighbours
// that begins at a multiple of 16 bytes is copied at once. Other chunks are copied by elements, each with its own place.
//
// Names in the text: from_left and from_right point to the group's first element.
#pragma once

#include <optional>

#include "backends/gpu/emit/matrix_tile_text.h"
#include "backends/gpu/emit/window_text.h"

namespace lamina::gpu {

// Whether the chunks of a tile are along the terms.
bool left_is_along_terms(const kernel::WindowedContraction& contraction);
bool right_is_along_terms(const kernel::WindowedContraction& contraction);

class WindowedFactor : public MatrixFactor {
 public:
  // Whether chunks are copied at once, if the group's first element is at a multiple of 16 bytes.
  bool is_in_chunks() const { return run_ == 1 && is_whole_; }
  void emit_start(Text& out, const TileCopies& copies) const override;
  void emit_step(Text& out, const TileCopies& copies) const override;

 protected:
  WindowedFactor(const char* name, const kernel::WindowedContraction& contraction, bool along_terms, std::optional<int64_t> run,
                 bool is_whole)
      : MatrixFactor(name, along_terms), c_(contraction), run_(run), is_whole_(is_whole) {}
  virtual void emit_rows(Text& out, const TileCopies& copies) const = 0;  // what does not depend on the terms
  // Whether all terms of a step are channels of one tap, so that only these differ between threads.
  bool steps_are_in_a_tap(const TileCopies& copies) const { return c_.inner_terms.extent % copies.depth == 0; }
  // The part of a term's channel that its thread or its copy adds to that of the step; "" if steps are not in a tap.
  std::string channel(const TileCopies& copies) const;
  // Defines the places of the copy's terms, unless emit_step did.
  void emit_terms(Text& out, const TileCopies& copies) const;
  void emit_run(Text& out, const std::string& place, const std::string& inside, bool in_chunks) const;

  const kernel::WindowedContraction& c_;
  std::optional<int64_t> run_;  // the distance between the elements of a chunk, if it is a run
  bool is_whole_;               // chunks begin at multiples of 16 bytes if the group's first element does
};

class WindowedLeft final : public WindowedFactor {
 public:
  explicit WindowedLeft(const kernel::WindowedContraction& contraction);
  bool has_arrays() const override { return along_terms(); }
  void emit_copy(Text& out, const TileCopies& copies, bool in_chunks) const override;

 private:
  void emit_rows(Text& out, const TileCopies& copies) const override;
  // The offset, after conditions that the pixel is inside.
  std::string place(Text& out, const TileCopies& copies, std::string& inside) const;
  void emit_elements(Text& out) const;
};

class WindowedRight final : public WindowedFactor {
 public:
  explicit WindowedRight(const kernel::WindowedContraction& contraction);
  void emit_copy(Text& out, const TileCopies& copies, bool in_chunks) const override;

 private:
  void emit_rows(Text&, const TileCopies&) const override {}
};

}  // namespace lamina::gpu
