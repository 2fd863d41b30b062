// Files that persist between runs: the text of a tuned schedule, and a cache entry whose file was overwritten. Reading returns
// the stored value or a miss.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

#include "backends/cache/code_cache.h"
#include "backends/cpu/schedule/schedule.h"
#include "backends/tune/tuned_schedules.h"
#include "fuzz/fuzz_input.h"

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKey = "kind of code, machine, kernel", kObject = "the object that was kept";

struct Folder {
  fs::path path;
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "lamina-fuzz-XXXXXX").string();
    lamina::fuzz::require(mkdtemp(pattern.data()) != nullptr, "a folder");
    path = pattern;
  }
  ~Folder() { fs::remove_all(path); }
};

// Damages the entry's file: changes bytes or the length.
void damage(const fs::path& file, lamina::fuzz::FuzzInput& input) {
  const int entry = open(file.c_str(), O_WRONLY | O_CLOEXEC);
  lamina::fuzz::require(entry >= 0, "the entry that was kept");
  const auto size = static_cast<size_t>(fs::file_size(file));
  if (input.flip())
    lamina::fuzz::require(ftruncate(entry, static_cast<off_t>(input.take<uint16_t>() % (size + 9))) == 0, "another end");
  const auto place = static_cast<off_t>(input.take<uint16_t>() % (size + 1));
  const std::string_view bytes = input.rest();
  lamina::fuzz::require(pwrite(entry, bytes.data(), bytes.size(), place) == static_cast<ssize_t>(bytes.size()),
                        "bytes are written");
  close(entry);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamina;
  fuzz::FuzzInput input(data, size);
  if (input.flip()) {
    if (const auto tuned = parse_tuned<cpu::Schedule>(input.rest())) {
      const auto again = parse_tuned<cpu::Schedule>(text_of(*tuned));
      fuzz::require(again.has_value() && text_of(*again) == text_of(*tuned), "what was read is written and read alike");
    }
    return 0;
  }
  static const Folder folder;
  const CodeCache cache(folder.path);
  cache.store(kKey, kObject);
  damage(folder.path / CodeCache::file_name(kKey), input);
  const auto found = cache.find(kKey);
  fuzz::require(!found || *found == kObject, "what is found is what was kept");
  return 0;
}
