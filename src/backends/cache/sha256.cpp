#include "backends/cache/sha256.h"

#include <llvm/ADT/StringRef.h>
#include <llvm/Support/SHA256.h>

namespace lamina {

Sha256 sha256(std::string_view first, std::string_view second) {
  llvm::SHA256 hash;
  hash.update(llvm::StringRef(first.data(), first.size()));
  hash.update(llvm::StringRef(second.data(), second.size()));
  return hash.final();
}

std::string sha256_hex(std::string_view text) {
  std::string digits;
  for (const uint8_t byte : sha256(text)) {
    for (const int shift : {4, 0}) digits += "0123456789abcdef"[byte >> shift & 15];
  }
  return digits;
}

}  // namespace lamina
