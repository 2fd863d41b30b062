#include "backends/cpu/program/program_file.h"

#include <algorithm>

#include "backends/cache/sha256.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

constexpr std::string_view kMagic = "LAMINAPG";
constexpr size_t kDigestAt = 16, kSizesAt = 48, kDescriptionAt = 72;

void append(std::string& to, uint64_t number, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) to.push_back(static_cast<char>(number >> (8 * i)));
}

uint64_t number_at(std::string_view bytes, size_t at, size_t size) {
  uint64_t number = 0;
  for (size_t i = 0; i < size; ++i) number |= uint64_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
  return number;
}

size_t whole_pages(size_t bytes) { return (bytes + kImageAlignment - 1) / kImageAlignment * kImageAlignment; }

std::string digest_of(std::string_view rest) {
  const Sha256 digest = sha256(rest);
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

[[noreturn]] void refuse(const std::string& why) { throw Error(Status::invalid_arguments, why); }

}  // namespace

std::string digest_of_packed(std::string_view packed) { return sha256_hex(packed); }

std::string program_file(std::string_view description, std::string_view image) {
  const size_t image_at = whole_pages(kDescriptionAt + description.size());
  std::string rest;
  append(rest, description.size(), 8);
  append(rest, image_at, 8);
  append(rest, image.size(), 8);
  rest += description;
  rest.resize(image_at - kSizesAt);
  rest += image;
  std::string file(kMagic);
  append(file, kProgramVersion, 4);
  append(file, 0, 4);
  return file + digest_of(rest) + rest;
}

ProgramParts parts_of_program(std::string_view bytes) {
  if (bytes.size() < kDescriptionAt || !bytes.starts_with(kMagic)) refuse("it is not a program of lamina");
  const uint64_t version = number_at(bytes, kMagic.size(), 4);
  if (version != kProgramVersion)
    refuse(join("the program has version ", version, " of the format, this runtime reads version ", kProgramVersion));
  if (bytes.substr(kDigestAt, kSizesAt - kDigestAt) != digest_of(bytes.substr(kSizesAt)))
    refuse("the program is damaged: its digest differs");
  const uint64_t described = number_at(bytes, kSizesAt, 8), at = number_at(bytes, kSizesAt + 8, 8);
  const uint64_t size = number_at(bytes, kSizesAt + 16, 8);
  if (described > bytes.size() - kDescriptionAt || at > bytes.size() || size != bytes.size() - at ||
      at < kDescriptionAt + described || at % kImageAlignment != 0)
    refuse("the program is damaged: its parts exceed it");
  return {bytes.substr(kDescriptionAt, described), bytes.substr(at)};
}

}  // namespace lamina::cpu
