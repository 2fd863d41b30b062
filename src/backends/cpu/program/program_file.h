// The program of a model for one instruction set, as it is in a file: a header with a digest, the description of the model and
// its steps, and an image of machine code, which begins at a page.
//
//   0   8 bytes   "LAMINAPG"
//   8   4         version of the format
//   12  4         0
//   16  32        SHA-256 of everything after it
//   48  8         bytes of the description
//   56  8         where the image begins
//   64  8         bytes of the image
//   72            the description, zeros, the image
//
// Numbers are little-endian. The description is for one version alone: another lamina may write other steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/program/bytes.h"
#include "backends/exported_model.h"

namespace lamina::cpu {

inline constexpr uint32_t kProgramVersion = 13;
// The alignment of an image in the file: the size of a page, or of the largest usual ones.
inline constexpr size_t kImageAlignment = size_t{16} << 10;

template <>
inline constexpr int kLastEnumerator<ExportedModel::Value::Source> = static_cast<int>(ExportedModel::Value::Source::arena);

// What the description begins with.
struct ProgramHead {
  struct Function {
    std::string symbol;
    size_t offset = 0;  // in the image

    template <typename Self, typename Visit>
    static void for_each_field(Self& self, const Visit& visit) {
      visit(self.symbol), visit(self.offset);
    }
  };

  // Weights that a partition packs once, in the file's packed weights for this instruction set.
  struct Packed {
    size_t variant = 0, partition = 0, constant = 0;
    size_t offset = 0, bytes = 0;

    template <typename Self, typename Visit>
    static void for_each_field(Self& self, const Visit& visit) {
      visit(self.variant), visit(self.partition), visit(self.constant), visit(self.offset), visit(self.bytes);
    }
  };

  std::string writer;        // lamina's version, for messages
  std::string architecture;  // "x86-64"
  std::string isa;           // as LAMINA_MAX_ISA names it
  int threads = 1;           // the most that run it
  std::vector<Function> functions;
  ExportedModel model;
  std::vector<Packed> packed;  // empty: the first run packs
  std::string packed_digest;   // SHA-256 of the packed weights, 64 digits

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.writer), visit(self.architecture), visit(self.isa), visit(self.threads), visit(self.functions);
    visit(self.model), visit(self.packed), visit(self.packed_digest);
  }
};

// For ProgramHead::packed_digest.
std::string digest_of_packed(std::string_view packed);

std::string program_file(std::string_view description, std::string_view image);

struct ProgramParts {
  std::string_view description, image;
};

// Throws Error(invalid_arguments): no program, another version, damaged.
ProgramParts parts_of_program(std::string_view bytes);

}  // namespace lamina::cpu
