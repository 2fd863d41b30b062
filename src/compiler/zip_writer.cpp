#include "compiler/zip_writer.h"

#include <array>

#include "interface/status.h"

namespace lamina::compiler {

namespace {

// Little-endian fields of a record.
class Record {
 public:
  Record& two(uint64_t value) { return add(value, 2); }
  Record& four(uint64_t value) { return add(value, 4); }
  const std::string& bytes() const { return bytes_; }

 private:
  Record& add(uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) bytes_.push_back(static_cast<char>(value >> (8 * i)));
    return *this;
  }
  std::string bytes_;
};

constexpr uint64_t kVersion = 10, kNoFlags = 0, kStored = 0;
constexpr uint64_t kTime = 0, kDate = 1 << 5 | 1;  // 1 January 1980, the first day that the format has
constexpr uint64_t kAlignmentField = 0xD935;       // the field that zipalign writes: the alignment, then padding
constexpr size_t kLocalBytes = 30, kFieldBytes = 6;
constexpr uint64_t kMostBytes = 0xFFFFFFFE;

uint32_t checksum_of(std::span<const std::string_view> parts) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> entries;
    for (uint32_t i = 0; i < entries.size(); ++i) {
      uint32_t entry = i;
      for (int bit = 0; bit < 8; ++bit) entry = entry >> 1 ^ ((entry & 1) != 0 ? 0xEDB88320U : 0);
      entries[i] = entry;
    }
    return entries;
  }();
  uint32_t crc = 0xFFFFFFFF;
  for (const std::string_view part : parts) {
    for (const char byte : part) crc = table[(crc ^ static_cast<uint8_t>(byte)) & 255] ^ crc >> 8;
  }
  return ~crc;
}

}  // namespace

void ZipWriter::write(std::string_view bytes) {
  out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  written_ += bytes.size();
}

void ZipWriter::add(const std::string& name, std::span<const std::string_view> parts, size_t alignment) {
  Member member{name, checksum_of(parts), 0, written_};
  for (const std::string_view part : parts) member.size += part.size();
  const uint64_t data_at = written_ + kLocalBytes + name.size() + kFieldBytes;
  const uint64_t padding = (alignment - data_at % alignment) % alignment;
  if (data_at + padding + member.size > kMostBytes)
    throw Error(Status::unimplemented, join("the file exceeds 4 GiB at its member ", name, ", which lamina does not write"));
  Record local;
  local.four(0x04034B50).two(kVersion).two(kNoFlags).two(kStored).two(kTime).two(kDate).four(member.checksum);
  local.four(member.size).four(member.size).two(name.size()).two(kFieldBytes + padding);
  Record field;
  field.two(kAlignmentField).two(2 + padding).two(alignment);
  write(local.bytes());
  write(name);
  write(field.bytes());
  write(std::string(padding, '\0'));
  for (const std::string_view part : parts) write(part);
  members_.push_back(std::move(member));
}

void ZipWriter::finish() {
  const uint64_t begin = written_;
  for (const Member& member : members_) {
    Record entry;
    entry.four(0x02014B50).two(kVersion).two(kVersion).two(kNoFlags).two(kStored).two(kTime).two(kDate).four(member.checksum);
    entry.four(member.size).four(member.size).two(member.name.size()).two(0).two(0).two(0).two(0).four(0).four(member.at);
    write(entry.bytes());
    write(member.name);
  }
  Record end;
  end.four(0x06054B50).two(0).two(0).two(members_.size()).two(members_.size()).four(written_ - begin).four(begin).two(0);
  write(end.bytes());
}

}  // namespace lamina::compiler
