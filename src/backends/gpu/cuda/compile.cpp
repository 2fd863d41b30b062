#include "backends/gpu/cuda/compile.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "interface/status.h"

namespace lamina::gpu::cuda {

namespace {

namespace fs = std::filesystem;

void check(const NvrtcApi& nvrtc, nvrtcResult result, const char* function) {
  if (result != 0) throw Error(Status::runtime_error, join("NVRTC: ", function, " failed: ", nvrtc.error_string(result)));
}

// 128 bits of FNV-1a, as two runs that start differently.
std::string hash_of(const std::string& text) {
  uint64_t halves[2] = {0xcbf29ce484222325, 0x9ae16a3b2f90404f};
  for (const char c : text) {
    for (uint64_t& half : halves) half = (half ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  char digits[40];
  std::snprintf(digits, sizeof digits, "%016llx%016llx", static_cast<unsigned long long>(halves[0]),
                static_cast<unsigned long long>(halves[1]));
  return digits;
}

fs::path cache_file(const std::string& name, const std::string& key) {
  const char* const folder = std::getenv("LAMINA_CACHE_DIR");
  if (folder == nullptr || *folder == '\0') return {};
  return fs::path(folder) / join(name, "-", hash_of(key), ".cubin");
}

bool read_file(const fs::path& path, std::string& data) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return false;
  data.assign(std::istreambuf_iterator<char>(in), {});
  return !data.empty();
}

// Whole or not at all: other processes may read the folder. A cache that cannot be written is no error.
void write_file(const fs::path& path, const std::string& data) {
  static std::atomic<unsigned> counter = 0;
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  const fs::path temporary = path.string() + join(".", ::getpid(), ".", counter++);
  std::ofstream out(temporary, std::ios::binary);
  out.write(data.data(), static_cast<std::streamsize>(data.size()));
  out.close();
  if (out)
    fs::rename(temporary, path, ignored);
  else
    fs::remove(temporary, ignored);
}

// The newest architecture that NVRTC knows and the device runs.
int nearest_architecture(const NvrtcApi& nvrtc, int capability) {
  int count = 0;
  check(nvrtc, nvrtc.supported_count(&count), "nvrtcGetNumSupportedArchs");
  std::vector<int> known(static_cast<size_t>(count));
  check(nvrtc, nvrtc.supported(known.data()), "nvrtcGetSupportedArchs");
  int nearest = 0;
  for (const int architecture : known) nearest = architecture <= capability ? std::max(nearest, architecture) : nearest;
  if (nearest == 0)
    throw Error(Status::runtime_error, join("NVRTC: compute capability ", capability, " is older than all that it knows"));
  return nearest;
}

class Program {
 public:
  Program(const NvrtcApi& nvrtc, const std::string& name, const std::string& text) : nvrtc_(nvrtc) {
    check(nvrtc, nvrtc.create_program(&program_, text.c_str(), (name + ".cu").c_str(), 0, nullptr, nullptr),
          "nvrtcCreateProgram");
  }
  ~Program() { nvrtc_.destroy_program(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void compile(const std::string& name, const std::vector<std::string>& options) {
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    const nvrtcResult result = nvrtc_.compile_program(program_, static_cast<int>(pointers.size()), pointers.data());
    if (result != 0)
      throw Error(Status::runtime_error,
                  join("bug in lamina: NVRTC does not compile ", name, ": ", nvrtc_.error_string(result), "\n", log()));
  }
  std::string log() const { return read(nvrtc_.log_size, nvrtc_.log); }
  std::string cubin() const { return read(nvrtc_.cubin_size, nvrtc_.cubin); }
  std::string ptx() const { return read(nvrtc_.ptx_size, nvrtc_.ptx); }

 private:
  std::string read(nvrtcResult (*size_of)(nvrtcProgram, size_t*), nvrtcResult (*text_of)(nvrtcProgram, char*)) const {
    size_t size = 0;
    check(nvrtc_, size_of(program_, &size), "a query of a size");
    std::string text(size, '\0');
    check(nvrtc_, text_of(program_, text.data()), "a query");
    return text;
  }
  const NvrtcApi& nvrtc_;
  nvrtcProgram program_ = nullptr;
};

}  // namespace

Image compile(const NvrtcApi& nvrtc, const std::string& name, const std::string& text, int capability) {
  int major = 0, minor = 0;
  check(nvrtc, nvrtc.version(&major, &minor), "nvrtcVersion");
  const int architecture = nearest_architecture(nvrtc, capability);
  const bool native = architecture == capability;
  const fs::path cached = cache_file(name, join(text, "\n", capability, " ", major, ".", minor));
  Image image;
  if (!cached.empty() && read_file(cached, image.data)) {
    image.from_cache = true;
    return image;
  }
  Program program(nvrtc, name, text);
  // No contraction, no flushing, exact division and square root: FMA only where it is written.
  std::vector<std::string> options = {join("--gpu-architecture=", native ? "sm_" : "compute_", architecture),
                                      "--std=c++17",
                                      "--fmad=false",
                                      "--ftz=false",
                                      "--prec-div=true",
                                      "--prec-sqrt=true",
                                      "--ptxas-options=-v"};
  program.compile(name, options);
  image.log = program.log();
  image.data = native ? program.cubin() : program.ptx();
  if (!cached.empty()) write_file(cached, image.data);
  return image;
}

}  // namespace lamina::gpu::cuda
