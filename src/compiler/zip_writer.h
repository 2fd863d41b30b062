// A zip archive whose members are stored, each at a multiple of an alignment, so that readers can map it. The same members give
// the same bytes: no times are written.
#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/crc32.h"

namespace lamina::compiler {

class ZipWriter {
 public:
  // `most`: bytes of an archive whose places and sizes have 32 bits; larger ones have records of zip64.
  explicit ZipWriter(std::ostream& out, uint64_t most = 0xFFFFFFFF) : out_(out), most_(most) {}

  // The member's data are `parts`, one after the other, and `checksum` their CRC-32. `alignment`: at most 32 KiB.
  void add(const std::string& name, std::span<const std::string_view> parts, uint32_t checksum, size_t alignment);
  void add(const std::string& name, std::string_view data, size_t alignment) {
    const std::span parts(&data, 1);
    add(name, parts, crc32(parts), alignment);
  }
  // The directory, after the last member.
  void finish();

 private:
  struct Member {
    std::string name;
    uint32_t checksum;
    uint64_t size, at;  // at: of the local header
    bool is_large;      // it does not begin and end in 32 bits
  };
  void write(std::string_view bytes);

  std::ostream& out_;
  uint64_t most_, written_ = 0;
  std::vector<Member> members_;
};

}  // namespace lamina::compiler
