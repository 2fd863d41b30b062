// Compiled convolutions as data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "backends/cpu/program/product_calls.h"
#include "kernels/window_axis.h"

namespace lamina::cpu {

// How the rows of a product are made or found (dispatch/window_rows.h), of a kernel::WindowedContraction.
struct WindowRowsProgram {
  kernel::WindowDim groups = {}, outer_rows = {}, inner_rows = {}, outer_terms = {}, inner_terms = {};
  std::vector<kernel::WindowAxis> axes = {};
  int64_t rows = 1;  // of a product; an entry of the batch has the next ones
  ColumnGroups column_groups = {};
  int64_t column_group_count = 0;
  int64_t element_bytes = 0, row_bytes = 0;  // of an element of left, and of a row that is made
  bool is_contiguous = false;                // a line without pads is contiguous in memory
  bool finds_lines = false;                  // a part is a line, else the inner terms

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.groups), visit(self.outer_rows), visit(self.inner_rows), visit(self.outer_terms), visit(self.inner_terms);
    visit(self.axes), visit(self.rows), visit(self.column_groups), visit(self.column_group_count);
    visit(self.element_bytes), visit(self.row_bytes), visit(self.is_contiguous), visit(self.finds_lines);
  }
};

// A convolution by a product.
struct ConvolutionProgram {
  size_t left = 0, right = 0, dst = 0;  // args
  std::optional<size_t> bias = std::nullopt;
  int64_t groups = 1, columns = 1;
  bool is_matrix = false;  // dst is one dense matrix, whose columns are those of all groups
  // The weights of all groups are copied to a matrix, if they are none: entries and strides in elements.
  bool copies_weights = false;
  int64_t weight_bytes = 0;  // of an element
  int64_t group_stride = 0, column_stride = 0;
  kernel::WindowDim outer_terms = {}, inner_terms = {};
  std::vector<kernel::WindowAxis> axes = {};

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.left), visit(self.right), visit(self.dst), visit(self.bias), visit(self.groups), visit(self.columns);
    visit(self.is_matrix), visit(self.copies_weights), visit(self.weight_bytes), visit(self.group_stride);
    visit(self.column_stride), visit(self.outer_terms), visit(self.inner_terms), visit(self.axes);
  }
};

// A convolution along lines of an image (dispatch/line_step.h): the columns of dst are contiguous, and the channels of src
// unless all columns share them. Strides are in elements, which have the type of the sums.
struct LineProgram {
  // Tiles of a line of dst with the same code: `count` of them, of `pixels` each.
  struct Tiles {
    int64_t first = 0, pixels = 0, count = 1;
    size_t code = 0;

    template <typename Self, typename Visit>
    static void for_each_field(Self& self, const Visit& visit) {
      visit(self.first), visit(self.pixels), visit(self.count), visit(self.code);
    }
  };

  size_t left = 0, right = 0, dst = 0;  // args
  std::optional<size_t> bias = std::nullopt;
  kernel::WindowDim images = {}, columns = {}, inner_terms = {};
  bool is_shared = false;          // all columns multiply the same elements of src
  bool is_dense = false;           // of many channels: weights are panels, each of as many columns as a tile
  int64_t columns_of_channel = 1;  // of src, if they do not share all channels
  std::vector<kernel::WindowAxis> axes = {};
  int64_t element_bytes = 0;
  bool is_matrix = false;         // dst is one dense matrix
  bool are_packed_ahead = false;  // the weights
  int64_t lanes = 1, vectors = 1;
  std::vector<Tiles> tiles = {};  // of each line
  // What a thread takes at a time: lines of dst, and columns, of which it computes `chunk` for all lines before the next ones.
  int64_t line_block = 1, column_block = 1, chunk = 1;
  int threads = 1;

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.left), visit(self.right), visit(self.dst), visit(self.bias), visit(self.images), visit(self.columns);
    visit(self.inner_terms), visit(self.is_shared), visit(self.is_dense), visit(self.columns_of_channel);
    visit(self.axes), visit(self.element_bytes), visit(self.is_matrix);
    visit(self.are_packed_ahead), visit(self.lanes), visit(self.vectors), visit(self.tiles), visit(self.line_block);
    visit(self.column_block), visit(self.chunk);
    visit(self.threads);
  }
};

// A weight gradient of a convolution of each channel by itself (dispatch/tap_step.h). Strides are in elements.
struct TapProgram {
  size_t left = 0, right = 0, dst = 0;  // args: the image, the positions, the weights
  kernel::WindowDim images = {}, channels = {};
  std::vector<kernel::WindowAxis> axes = {};
  int64_t left_bytes = 0, right_bytes = 0, dst_bytes = 0, sum_bytes = 0;  // of an element
  bool copies_left = false, copies_right = false;  // to dense memory with the channels of a unit last, image by image
  int64_t lanes = 1, vectors = 1;
  int64_t rows = 1;   // of taps, of a tile
  int64_t inner = 0;  // positions of a line for which all taps are inside of the image
  int threads = 1;

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.left), visit(self.right), visit(self.dst), visit(self.images), visit(self.channels), visit(self.axes);
    visit(self.left_bytes), visit(self.right_bytes), visit(self.dst_bytes), visit(self.sum_bytes), visit(self.copies_left);
    visit(self.copies_right), visit(self.lanes), visit(self.vectors), visit(self.rows), visit(self.inner), visit(self.threads);
  }
};

}  // namespace lamina::cpu
