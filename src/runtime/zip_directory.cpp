#include "runtime/zip_directory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "interface/status.h"

namespace lamina::runtime {

namespace {

constexpr size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30;
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

ZipMember member_of(std::string_view file, std::string_view entry, std::string_view name) {
  if (number(entry, 8, 2) != 0 || number(entry, 10, 2) != 0) refuse(join("member ", name, " is compressed or encrypted"));
  const uint64_t size = number(entry, 24, 4), at = number(entry, 42, 4);
  if (number(entry, 20, 4) != size) refuse(join("the file is damaged: member ", name, " has two sizes"));
  const std::string_view local = part(file, at, kLocalBytes);
  if (number(local, 0, 4) != 0x04034B50) refuse(join("the file is damaged: member ", name, " has no header"));
  return {std::string(name), part(file, at + kLocalBytes + number(local, 26, 2) + number(local, 28, 2), size)};
}

}  // namespace

std::vector<ZipMember> read_zip_directory(std::string_view file) {
  const std::string_view end = end_record(file);
  const uint64_t count = number(end, 10, 2);
  if (count > kMostMembers) refuse(join("the file has ", count, " members, allowed are ", kMostMembers));
  std::string_view directory = part(file, number(end, 16, 4), number(end, 12, 4));
  std::vector<ZipMember> members;
  for (uint64_t m = 0; m < count; ++m) {
    const std::string_view entry = part(directory, 0, kEntryBytes);
    if (number(entry, 0, 4) != 0x02014B50) refuse("the file is damaged: its directory has another record");
    const uint64_t name_bytes = number(entry, 28, 2), rest = number(entry, 30, 2) + number(entry, 32, 2);
    members.push_back(member_of(file, entry, part(directory, kEntryBytes, name_bytes)));
    directory = directory.substr(part(directory, 0, kEntryBytes + name_bytes + rest).size());
  }
  return members;
}

}  // namespace lamina::runtime
