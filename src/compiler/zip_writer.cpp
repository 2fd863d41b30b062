#include "compiler/zip_writer.h"

#include "interface/status.h"

namespace lamina::compiler {

namespace {

// Little-endian fields of a record.
class Record {
 public:
  Record& two(uint64_t value) { return add(value, 2); }
  Record& four(uint64_t value) { return add(value, 4); }
  Record& eight(uint64_t value) { return add(value, 8); }
  const std::string& bytes() const { return bytes_; }

 private:
  Record& add(uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) bytes_.push_back(static_cast<char>(value >> (8 * i)));
    return *this;
  }
  std::string bytes_;
};

constexpr uint64_t kVersion = 10, kLargeVersion = 45, kNoFlags = 0, kStored = 0;
constexpr uint64_t kTime = 0, kDate = 1 << 5 | 1;  // 1 January 1980, the first day that the format has
constexpr uint64_t kAlignmentField = 0xD935;       // the field that zipalign writes: the alignment, then padding
constexpr uint64_t kLargeField = 1;                // the numbers that do not fit their place
constexpr uint64_t kElsewhere = 0xFFFFFFFF, kManyElsewhere = 0xFFFF;
constexpr size_t kLocalBytes = 30, kFieldBytes = 6, kLargeSizesBytes = 20;

}  // namespace

void ZipWriter::write(std::string_view bytes) {
  out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  written_ += bytes.size();
}

void ZipWriter::add(const std::string& name, std::span<const std::string_view> parts, uint32_t checksum, size_t alignment) {
  Member member{name, checksum, 0, written_, false};
  for (const std::string_view part : parts) member.size += part.size();
  member.is_large = written_ + member.size >= most_;
  const size_t large_bytes = member.is_large ? kLargeSizesBytes : 0;
  const uint64_t data_at = written_ + kLocalBytes + name.size() + large_bytes + kFieldBytes;
  const uint64_t padding = (alignment - data_at % alignment) % alignment, size = member.is_large ? kElsewhere : member.size;
  Record local;
  local.four(0x04034B50).two(member.is_large ? kLargeVersion : kVersion).two(kNoFlags).two(kStored).two(kTime).two(kDate);
  local.four(member.checksum).four(size).four(size).two(name.size()).two(large_bytes + kFieldBytes + padding);
  Record fields;
  if (member.is_large) fields.two(kLargeField).two(16).eight(member.size).eight(member.size);
  fields.two(kAlignmentField).two(2 + padding).two(alignment);
  write(local.bytes());
  write(name);
  write(fields.bytes());
  write(std::string(padding, '\0'));
  for (const std::string_view part : parts) write(part);
  members_.push_back(std::move(member));
}

void ZipWriter::finish() {
  const uint64_t begin = written_;
  bool is_large = begin >= most_;
  for (const Member& member : members_) {
    is_large = is_large || member.is_large;
    const uint64_t version = member.is_large ? kLargeVersion : kVersion, size = member.is_large ? kElsewhere : member.size;
    Record entry, field;
    if (member.is_large) field.two(kLargeField).two(24).eight(member.size).eight(member.size).eight(member.at);
    entry.four(0x02014B50).two(version).two(version).two(kNoFlags).two(kStored).two(kTime).two(kDate).four(member.checksum);
    entry.four(size).four(size).two(member.name.size()).two(field.bytes().size()).two(0).two(0).two(0).four(0);
    entry.four(member.is_large ? kElsewhere : member.at);
    write(entry.bytes());
    write(member.name);
    write(field.bytes());
  }
  const uint64_t end = written_, count = members_.size();
  Record last;
  if (is_large) {
    last.four(0x06064B50).eight(44).two(kLargeVersion).two(kLargeVersion).four(0).four(0).eight(count).eight(count);
    last.eight(end - begin).eight(begin);
    last.four(0x07064B50).four(0).eight(end).four(1);
    last.four(0x06054B50).two(0).two(0).two(kManyElsewhere).two(kManyElsewhere).four(kElsewhere).four(kElsewhere).two(0);
  } else {
    last.four(0x06054B50).two(0).two(0).two(count).two(count).four(end - begin).four(begin).two(0);
  }
  write(last.bytes());
}

}  // namespace lamina::compiler
