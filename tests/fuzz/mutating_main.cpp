// Runs a fuzz target without libFuzzer. A generator with a fixed start mutates seeds, so runs are reproducible; an input that
// ends the process is stored in fuzz_input.bin. scripts/test uses this main; scripts/fuzz searches by coverage.
//
//   fuzz_NAME EXECUTIONS [SEED FILE or FOLDER...]      fuzz_NAME --input FILE      that one input
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<uint8_t>;

const Bytes* current = nullptr;

// Writes the input that ends the process to a file.
void keep_current(int signal) {
  const int file = open("fuzz_input.bin", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file >= 0 && write(file, current->data(), current->size()) >= 0) close(file);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

Bytes read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Bytes> read_seeds(int count, char** paths) {
  std::vector<fs::path> files;
  for (int i = 0; i < count; ++i) {
    if (!fs::is_directory(paths[i])) {
      files.emplace_back(paths[i]);
      continue;
    }
    for (const auto& entry : fs::directory_iterator(paths[i])) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Bytes> seeds;
  for (const fs::path& file : files) seeds.push_back(read(file));
  if (seeds.empty()) seeds.emplace_back();
  return seeds;
}

class Mutator {
 public:
  explicit Mutator(std::vector<Bytes> seeds) : seeds_(std::move(seeds)) {}

  Bytes next() {
    Bytes bytes = seeds_[below(seeds_.size())];
    if (bytes.empty()) {
      bytes.resize(16 + below(1000));
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_());
    }
    for (size_t changes = 1 + below(4); changes > 0; --changes) change(bytes);
    return bytes;
  }

 private:
  size_t below(size_t count) { return count == 0 ? 0 : static_cast<size_t>(random_() % count); }

  void change(Bytes& bytes) {
    const size_t at = below(bytes.size() + 1), count = 1 + below(8);
    const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = bytes.begin() + static_cast<std::ptrdiff_t>(std::min(bytes.size(), at + count));
    switch (below(6)) {
      case 0: bytes.erase(place, end); break;
      case 1: bytes.insert(place, count, static_cast<uint8_t>(random_())); break;
      case 2: bytes.resize(at); break;
      case 3: {  // a part of another seed
        const Bytes& other = seeds_[below(seeds_.size())];
        const size_t from = below(other.size()), to = std::min(other.size(), from + below(64));
        const Bytes part(other.begin() + static_cast<std::ptrdiff_t>(from), other.begin() + static_cast<std::ptrdiff_t>(to));
        bytes.insert(place, part.begin(), part.end());
        break;
      }
      default:
        for (auto byte = place; byte != end; ++byte)
          *byte = below(2) == 0 ? static_cast<uint8_t>(random_()) : static_cast<uint8_t>("0123456789-[]{},:\"e."[below(20)]);
    }
  }

  std::vector<Bytes> seeds_;
  std::mt19937_64 random_{20};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--input") {
    const Bytes bytes = read(argv[2]);
    return LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  const long executions = argc > 1 ? std::atol(argv[1]) : 0;
  if (executions <= 0) return std::fprintf(stderr, "usage: %s EXECUTIONS [SEED...]\n", argv[0]), 2;
  Mutator mutator(read_seeds(argc - 2, argv + 2));
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, keep_current);
  for (long i = 0; i < executions; ++i) {
    const Bytes bytes = mutator.next();
    current = &bytes;
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%ld inputs\n", executions);
  return 0;
}
