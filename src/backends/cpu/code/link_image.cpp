#include "backends/cpu/code/link_image.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <utility>

#include "backends/cpu/llvm/headers.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

constexpr uint64_t kSectionAlignment = 64;

// Sections where they are linked, before they get their places in the image.
class ImageMemory final : public llvm::RTDyldMemoryManager {
 public:
  struct Section {
    std::unique_ptr<uint8_t, void (*)(void*)> bytes;
    uint64_t size, alignment, place = 0;
    bool is_code;
  };

  uint8_t* allocateCodeSection(uintptr_t size, unsigned alignment, unsigned, llvm::StringRef) override {
    return add(size, alignment, true);
  }
  uint8_t* allocateDataSection(uintptr_t size, unsigned alignment, unsigned, llvm::StringRef, bool is_constant) override {
    has_data_ = has_data_ || (!is_constant && size > 0);
    return add(size, alignment, false);
  }
  void registerEHFrames(uint8_t*, uint64_t, size_t) override {}
  void deregisterEHFrames() override {}
  bool finalizeMemory(std::string*) override { return false; }

  bool has_data() const { return has_data_; }
  std::deque<Section>& sections() { return sections_; }

 private:
  uint8_t* add(uintptr_t size, unsigned alignment, bool is_code) {
    const uint64_t aligned = std::max<uint64_t>(alignment, kSectionAlignment);
    auto* const memory =
        static_cast<uint8_t*>(std::aligned_alloc(aligned, llvm::alignTo(std::max<uintptr_t>(size, 1), aligned)));
    if (memory == nullptr) throw std::bad_alloc();
    std::memset(memory, 0, llvm::alignTo(std::max<uintptr_t>(size, 1), aligned));
    sections_.push_back({{memory, std::free}, size, aligned, 0, is_code});
    return memory;
  }

  std::deque<Section> sections_;
  bool has_data_ = false;
};

class NoSymbols final : public llvm::LegacyJITSymbolResolver {
 public:
  llvm::JITSymbol findSymbol(const std::string&) override { return nullptr; }
  llvm::JITSymbol findSymbolInLogicalDylib(const std::string&) override { return nullptr; }
};

[[noreturn]] void fail(const std::string& symbol, const std::string& fault) {
  throw Error(Status::unimplemented, join("the code of ", symbol, " cannot be exported: ", fault));
}

class ImageLinker {
 public:
  // The addresses of the image begin at `base`.
  ImageLinker(std::span<const ProgramWriter::Code> codes, uint64_t base) : codes_(codes), base_(base) {}

  CodeImage link() {
    for (const ProgramWriter::Code& code : codes_) load(code);
    place_sections();
    loader_.resolveRelocations();
    if (loader_.hasError()) fail("the model", loader_.getErrorString().str());
    CodeImage image{std::string(size_, '\0'), {}};
    for (const ImageMemory::Section& section : memory_.sections())
      std::memcpy(image.bytes.data() + section.place, section.bytes.get(), section.size);
    for (const ProgramWriter::Code& code : codes_) {
      const uint64_t address = loader_.getSymbol(code.symbol).getAddress();
      if (address < base_ || address >= base_ + size_) fail(code.symbol, "its object does not define it");
      image.offsets.push_back(address - base_);
    }
    return image;
  }

 private:
  void load(const ProgramWriter::Code& code) {
    if (code.object == nullptr) fail(code.symbol, "its object was not kept");
    auto object = llvm::object::ObjectFile::createObjectFile({*code.object, code.symbol});
    if (!object) fail(code.symbol, llvm::toString(object.takeError()));
    loader_.loadObject(**object);
    objects_.push_back(std::move(*object));
    if (loader_.hasError()) fail(code.symbol, loader_.getErrorString().str());
    if (memory_.has_data()) fail(code.symbol, "it needs addresses from elsewhere, or memory to write to");
  }

  void place_sections() {
    for (const bool is_code : {true, false}) {
      for (ImageMemory::Section& section : memory_.sections()) {
        if (section.is_code != is_code) continue;
        section.place = llvm::alignTo(size_, section.alignment);
        size_ = section.place + section.size;
        loader_.mapSectionAddress(section.bytes.get(), base_ + section.place);
      }
    }
  }

  std::span<const ProgramWriter::Code> codes_;
  uint64_t base_, size_ = 0;
  ImageMemory memory_;
  NoSymbols none_;
  llvm::RuntimeDyld loader_{memory_, none_};
  std::vector<std::unique_ptr<llvm::object::ObjectFile>> objects_;
};

}  // namespace

// Two places give the same bytes only if all addresses are relative.
CodeImage link_image(std::span<const ProgramWriter::Code> codes, const Architecture& architecture) {
  if (codes.empty()) return {};  // a model of steps by lamina's own loops
  constexpr uint64_t kBases[] = {uint64_t{1} << 28, uint64_t{1} << 40};
  CodeImage image = ImageLinker(codes, kBases[0]).link();
  if (image.bytes == ImageLinker(codes, kBases[1]).link().bytes) return image;
  for (const ProgramWriter::Code& code : codes) {
    const std::span<const ProgramWriter::Code> one(&code, 1);
    if (ImageLinker(one, kBases[0]).link().bytes != ImageLinker(one, kBases[1]).link().bytes)
      fail(code.symbol, join("it has absolute addresses on ", architecture.name));
  }
  fail("the model", join("it has absolute addresses on ", architecture.name));
}

}  // namespace lamina::cpu
