// A convolution as a step that goes along lines of an image: of each channel by itself, of few channels of the image, or dense.
// The channels of dst are contiguous: vectors hold them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/dispatch/primitive.h"
#include "backends/cpu/program/compiled_code.h"
#include "backends/cpu/program/program_writer.h"
#include "backends/cpu/program/window_program.h"
#include "backends/cpu/threads/executor.h"

namespace lamina::cpu {

// The functions of a kind of tiles (LineTileFunction).
struct LineCode {
  CompiledCode whole;  // LineProgram::vectors; none if there are fewer channels
  CompiledCode last;   // the channels after those; none if there are none
};

class LineStep final : public Primitive {
 public:
  LineStep(LineProgram program, std::vector<LineCode> code, std::string name, bool has_following = false);
  // Of a step with this number of args.
  static std::unique_ptr<const LineStep> read(ProgramReader& from, size_t args);

  const std::string& name() const override { return name_; }
  bool has_following() const override { return has_following_; }
  size_t scratch_bytes() const override { return c_.are_packed_ahead ? 0 : weights_bytes_; }
  size_t packed_bytes() const override { return c_.are_packed_ahead ? weights_bytes_ : 0; }
  void pack(std::span<void* const> args, void* packed, void* scratch, const Executor& executor) const override;
  void run(std::span<void* const> args, void* scratch, const Executor& executor) const override {
    run_in_parts(args, scratch, executor, nullptr);
  }
  int64_t columns_of_parts() const override;
  void run_in_parts(std::span<void* const> args, void* scratch, const Executor& executor,
                    const std::function<void(const ResultPart&)>& ended) const override;
  std::string packing() const override;
  void write(ProgramWriter& to) const override;

 private:
  struct Memory {
    const char *left, *weights, *bias;
    char* dst;
    int64_t tile = 0;  // the number of the first one of a line, among those that use the same weights
  };
  struct Part {
    int64_t first_line, lines, first_channel, channels;
  };
  int64_t unit_count() const;
  int64_t terms() const { return lines_of_window_ * c_.axes.back().terms * c_.inner_terms.extent; }
  int64_t panel_width(int64_t first_channel) const;
  int64_t weights_at(int64_t channel) const;
  int64_t weights_row(int64_t channel) const;
  int64_t bytes_ahead(int64_t lines) const;
  int64_t bytes_of_src(int64_t column) const;
  void pack_panel(const char* weights, int64_t first_channel, int64_t channels, char* to) const;
  void run_part(const Memory& memory, const Part& part, const void** window) const;
  void run_line(const Memory& memory, const Part& part, int64_t line, const void** window) const;
  void run_channels(const LineProgram::Tiles& tiles, const Memory& at, const Part& part, const void* const* window) const;
  // The pixel 0 of each line of the window of a line of dst; null: outside of the image. Returns the line's place in dst.
  int64_t find_window(const char* left, int64_t line, const void** window) const;

  const LineProgram c_;
  const std::vector<LineCode> code_;
  const std::string name_;
  const bool has_following_;  // in its code
  int64_t lines_ = 0, lines_of_window_ = 0;
  int64_t tiles_of_line_ = 0;
  size_t weights_bytes_ = 0;
};

}  // namespace lamina::cpu
