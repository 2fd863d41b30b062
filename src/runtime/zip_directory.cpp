#include "runtime/zip_directory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "interface/status.h"

namespace lamina::runtime {

namespace {

constexpr size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30, kFieldBytes = 4;
constexpr size_t kLargeEndBytes = 56, kLocatorBytes = 20;
constexpr uint64_t kElsewhere = 0xFFFFFFFF;
constexpr size_t kMostComment = 65535, kMostMembers = 1024;

[[noreturn]] void refuse(const std::string& why) { throw Error(Status::invalid_arguments, why); }

// The bytes at a place in the file; refuses those outside.
std::string_view part(std::string_view file, uint64_t at, uint64_t size) {
  if (at > file.size() || size > file.size() - at) refuse("the file is truncated or damaged: a record exceeds it");
  return file.substr(at, size);
}

uint64_t number(std::string_view record, size_t at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value |= uint64_t{static_cast<uint8_t>(record[at + i])} << (8 * i);
  return value;
}

// The record at the end, before a comment.
std::string_view end_record(std::string_view file) {
  const size_t most = std::min(file.size(), kEndBytes + kMostComment);
  for (size_t before_end = kEndBytes; before_end <= most; ++before_end) {
    const std::string_view record = file.substr(file.size() - before_end, kEndBytes);
    if (number(record, 0, 4) == 0x06054B50 && number(record, 20, 2) == before_end - kEndBytes) return record;
  }
  refuse("it is not a model of lamina, or it is truncated");
}

// Where the directory is.
struct Directory {
  uint64_t at, bytes, count;
};

// A large archive has a record of 64-bit numbers before the last one, and a pointer to it.
Directory directory_of(std::string_view file, std::string_view end) {
  if (number(end, 16, 4) != kElsewhere) return {number(end, 16, 4), number(end, 12, 4), number(end, 10, 2)};
  const auto end_at = static_cast<uint64_t>(end.data() - file.data());
  if (end_at < kLocatorBytes) refuse("the file is truncated or damaged: a record exceeds it");
  const std::string_view locator = part(file, end_at - kLocatorBytes, kLocatorBytes);
  const std::string_view record = part(file, number(locator, 8, 8), kLargeEndBytes);
  if (number(locator, 0, 4) != 0x07064B50 || number(record, 0, 4) != 0x06064B50)
    refuse("the file is damaged: the end of its directory has another record");
  return {number(record, 48, 8), number(record, 40, 8), number(record, 32, 8)};
}

// The 64-bit numbers of a member that do not fit its entry: size, stored size, place. Empty: there are none.
std::string_view large_numbers(std::string_view fields) {
  while (fields.size() >= kFieldBytes) {
    const std::string_view field = part(fields, kFieldBytes, number(fields, 2, 2));
    if (number(fields, 0, 2) == 1) return field;
    fields.remove_prefix(kFieldBytes + field.size());
  }
  return {};
}

ZipMember member_of(std::string_view file, std::string_view entry, std::string_view name, std::string_view fields) {
  if (number(entry, 8, 2) != 0 || number(entry, 10, 2) != 0) refuse(join("member ", name, " is compressed or encrypted"));
  uint64_t size = number(entry, 24, 4), stored = number(entry, 20, 4), at = number(entry, 42, 4);
  if (const std::string_view large = large_numbers(fields); large.size() >= 24)
    size = number(large, 0, 8), stored = number(large, 8, 8), at = number(large, 16, 8);
  if (stored != size) refuse(join("the file is damaged: member ", name, " has two sizes"));
  const std::string_view local = part(file, at, kLocalBytes);
  if (number(local, 0, 4) != 0x04034B50) refuse(join("the file is damaged: member ", name, " has no header"));
  return {std::string(name), part(file, at + kLocalBytes + number(local, 26, 2) + number(local, 28, 2), size)};
}

}  // namespace

std::vector<ZipMember> read_zip_directory(std::string_view file) {
  const Directory found = directory_of(file, end_record(file));
  if (found.count > kMostMembers) refuse(join("the file has ", found.count, " members, allowed are ", kMostMembers));
  std::string_view directory = part(file, found.at, found.bytes);
  std::vector<ZipMember> members;
  for (uint64_t m = 0; m < found.count; ++m) {
    const std::string_view entry = part(directory, 0, kEntryBytes);
    if (number(entry, 0, 4) != 0x02014B50) refuse("the file is damaged: its directory has another record");
    const uint64_t name_bytes = number(entry, 28, 2), field_bytes = number(entry, 30, 2), rest = number(entry, 32, 2);
    const std::string_view name = part(directory, kEntryBytes, name_bytes);
    members.push_back(member_of(file, entry, name, part(directory, kEntryBytes + name_bytes, field_bytes)));
    directory = directory.substr(part(directory, 0, kEntryBytes + name_bytes + field_bytes + rest).size());
  }
  return members;
}

}  // namespace lamina::runtime
