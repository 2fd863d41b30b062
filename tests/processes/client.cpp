// A client program of lamina for tests that start it, disturb it, and check its output and exit status.
//
//   client digest KERNELS          compiles and executes; prints a digest of the results
//   client timer KERNELS           the same while a signal arrives every millisecond and interrupts system calls
//   client threads N STACK         N threads with STACK bytes of stack execute one compiled partition; prints the digest
//   client compile STACK           compiles on a thread with STACK bytes of stack; prints the digest
//   client stack                   prints the bytes of stack that compiling and executing use, without LLVM's own thread
//   client beside_llvm KERNELS LIBRARY   digest, while another version of LLVM runs; 77: the library does not exist
//   client exit                    ends while threads execute
//   client address_space           compiles under decreasing limits on its address space; prints the results
//   client no_code                 compiles where the system refuses executable memory; prints the error
//   client reload MODULE TIMES     loads and unloads a module that uses lamina; prints the growth of memory
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "processes/work.h"
#include "support/painted_stack.h"

namespace {
std::atomic<bool> refuses_code = false;
}

// Replace the system's functions, also for libraries, and refuse executable memory on demand.
extern "C" __attribute__((visibility("default"))) int mprotect(void* memory, size_t size, int protection) noexcept {
  if (refuses_code && (protection & PROT_EXEC) != 0) {
    errno = EACCES;
    return -1;
  }
  return static_cast<int>(syscall(SYS_mprotect, memory, size, protection));
}

namespace processes {
namespace {

volatile sig_atomic_t ticks = 0;

int digest(int kernels) {
  std::setlocale(LC_ALL, "");
  std::printf("%016lx\n", digest_of_work(kernels, true));
  return 0;
}

int timer(int kernels) {
  struct sigaction action = {};
  action.sa_handler = [](int) { ticks = ticks + 1; };
  sigaction(SIGALRM, &action, nullptr);  // without SA_RESTART
  const itimerval each{{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &each, nullptr);
  const uint64_t result = digest_of_work(kernels, true);
  const itimerval none{};
  setitimer(ITIMER_REAL, &none, nullptr);
  std::printf("%016lx\n", result);
  return ticks > 0 ? 0 : 1;
}

// A thread with a stack of its own and a guard page below it. The stack has at least the system's minimum: 16 KiB on some
// machines, 128 KiB on others.
class ThreadWithStack {
 public:
  ThreadWithStack(size_t stack, std::function<void()> body) : body_(std::move(body)) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    is_started_ =
        pthread_attr_setstacksize(&attributes, std::max(stack, static_cast<size_t>(sysconf(_SC_THREAD_STACK_MIN)))) == 0 &&
        pthread_create(&thread_, &attributes, &run, &body_) == 0;
    pthread_attr_destroy(&attributes);
  }
  bool is_started() const { return is_started_; }
  void join() {
    if (is_started_) pthread_join(thread_, nullptr);
  }

 private:
  static void* run(void* body) {
    (*static_cast<std::function<void()>*>(body))();
    return nullptr;
  }
  std::function<void()> body_;
  pthread_t thread_ = {};
  bool is_started_ = false;
};

int threads(int number, size_t stack) {
  const lamina::engine cpu(lamina::engine::kind::cpu, 0);
  const CompiledCase norm(api_test::layer_norm_backward_case(200, 64), cpu), chain(api_test::mlp_case(16, 32, 48), cpu);
  const uint64_t expected = digest_of(chain.run(cpu), digest_of(norm.run(cpu)));
  std::atomic<int> right = 0;
  std::vector<std::unique_ptr<ThreadWithStack>> all;
  for (int i = 0; i < number; ++i)
    all.push_back(std::make_unique<ThreadWithStack>(stack, [&] {
      if (digest_of(chain.run(cpu), digest_of(norm.run(cpu))) == expected) ++right;
    }));
  for (const auto& each : all) each->join();
  std::printf("%d of %d\n", right.load(), number);
  return right == number ? 0 : 1;
}

int compile(size_t stack) {
  uint64_t result = 0;
  ThreadWithStack thread(stack, [&] { result = digest_of_work(2, true); });
  thread.join();
  std::printf("%016lx\n", result);
  return 0;
}

// The stacks are too small for LLVM, which therefore runs on its own thread and is not counted.
int stack() {
  using lamina::testing::stack_taken_by;
  constexpr size_t kStack = size_t{192} << 10;
  const lamina::engine cpu(lamina::engine::kind::cpu, 0);
  for (const auto& each :
       {api_test::layer_norm_case(40, 512), api_test::layer_norm_backward_case(200, 64),
        api_test::layer_norm_backward_case(5, 8192), api_test::softmax_case(1, 20'000), api_test::channel_softmax_case(512, 40),
        api_test::attention_case(1, 2, 64, 16), api_test::mlp_case(64, 32, 48), api_test::two_products_case(64, 32),
        api_test::int8_product_case(64, 64, 48), api_test::convolution_case(2, 8, 12), api_test::weight_gradient_case(2, 8, 12),
        api_test::pool_case(2, 16, 24)}) {
    std::unique_ptr<CompiledCase> made;
    const size_t compiling = stack_taken_by([&] { made = std::make_unique<CompiledCase>(each, cpu); }, kStack);
    const size_t executing = stack_taken_by([&] { made->run(cpu); }, kStack);
    std::printf("%-20s compile %7zu, execute %7zu\n", each.name.c_str(), compiling, executing);
  }
  return 0;
}

// Another version of LLVM than lamina's, through its C interface.
class OtherLlvm {
 public:
  explicit OtherLlvm(const char* name) : library_(dlopen(name, RTLD_NOW | RTLD_GLOBAL)) {}
  bool is_there() const { return library_ != nullptr; }
  // Initialises its code generator and compiles an empty module.
  bool makes_code() const {
#if defined(__aarch64__)
    const std::string machine = "LLVMInitializeAArch64";
#else
    const std::string machine = "LLVMInitializeX86";
#endif
    for (const char* part : {"TargetInfo", "Target", "TargetMC", "AsmPrinter"}) find<void()>((machine + part).c_str())();
    char *const triple = find<char*()>("LLVMGetDefaultTargetTriple")(), *fault = nullptr;
    void* target = nullptr;
    if (find<int(const char*, void**, char**)>("LLVMGetTargetFromTriple")(triple, &target, &fault) != 0) return false;
    void* const generator = find<void*(void*, const char*, const char*, const char*, int, int, int)>("LLVMCreateTargetMachine")(
        target, triple, "", "", 2, 2, 0);
    void* const context = find<void*()>("LLVMContextCreate")();
    void* const module = find<void*(const char*, void*)>("LLVMModuleCreateWithNameInContext")("empty", context);
    void* object = nullptr;
    const bool is_made = find<int(void*, void*, int, char**, void**)>("LLVMTargetMachineEmitToMemoryBuffer")(
                             generator, module, 1, &fault, &object) == 0 &&
                         find<size_t(void*)>("LLVMGetBufferSize")(object) > 0;
    if (object != nullptr) find<void(void*)>("LLVMDisposeMemoryBuffer")(object);
    find<void(void*)>("LLVMDisposeModule")(module);
    find<void(void*)>("LLVMContextDispose")(context);
    find<void(void*)>("LLVMDisposeTargetMachine")(generator);
    find<void(char*)>("LLVMDisposeMessage")(triple);
    return is_made;
  }

 private:
  template <typename Function>
  Function* find(const char* name) const {
    if (void* const found = dlsym(library_, name)) return reinterpret_cast<Function*>(found);
    throw std::runtime_error(std::string(name) + " is not in this LLVM");
  }
  void* library_;
};

int beside_llvm(int kernels, const char* library) {
  const OtherLlvm other(library);
  if (!other.is_there()) return 77;
  if (!other.makes_code()) return 1;
  const lamina::engine cpu(lamina::engine::kind::cpu, 0);
  CompiledCase(api_test::softmax_case(24, 96), cpu).run(cpu);
  if (!other.makes_code()) return 1;
  return digest(kernels);
}

int end_while_executing() {
  // Never destroyed: threads use them until the process ends.
  static const auto& cpu = *new lamina::engine(lamina::engine::kind::cpu, 0);
  static const auto& norm = *new CompiledCase(api_test::layer_norm_case(2000, 512), cpu);
  static std::atomic<int> runs = 0;
  for (int i = 0; i < 3; ++i)
    std::thread([] {
      for (;;) {
        norm.run(cpu);
        ++runs;
      }
    }).detach();
  while (runs < 20) usleep(100);
  return 0;
}

long address_space_in_pages() {
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages;
}

// Every compile succeeds or reports that there is no memory. OpenMP's threads are started before.
int address_space() {
  const lamina::engine cpu(lamina::engine::kind::cpu, 0);
  CompiledCase(api_test::layer_norm_case(400, 512), cpu).run(cpu);
  std::map<int, int> statuses;
  for (int step = 40; step >= 0; --step) {
    const rlim_t room = static_cast<rlim_t>(address_space_in_pages()) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) +
                        (rlim_t{1} << 21) * static_cast<rlim_t>(step);
    const rlimit limit{room, RLIM_INFINITY}, none{RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
    int status = lamina_success;
    try {
      CompiledCase(api_test::layer_norm_case(24, 4000 + 16 * step), cpu).run(cpu);
    } catch (const lamina::error& error) {
      status = error.status;
    } catch (const std::bad_alloc&) {  // thrown by this program
      status = lamina_out_of_memory;
    }
    setrlimit(RLIMIT_AS, &none);
    ++statuses[status];
  }
  for (const auto& [status, times] : statuses) std::printf("status %d: %d times\n", status, times);
  CompiledCase(api_test::layer_norm_case(24, 5008), cpu).run(cpu);
  std::printf("works again\n");
  return 0;
}

int no_code() {
  const lamina::engine cpu(lamina::engine::kind::cpu, 0);
  refuses_code = true;
  try {
    CompiledCase(api_test::layer_norm_case(24, 256), cpu).run(cpu);
  } catch (const lamina::error& error) {
    std::printf("status %d: %s\n", static_cast<int>(error.status), error.what());
  }
  refuses_code = false;
  CompiledCase(api_test::layer_norm_case(24, 256), cpu).run(cpu);
  std::printf("works again\n");
  return 0;
}

long resident_kilobytes() {
  long pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

int reload(const char* module, int times) {
  long before = 0;
  for (int i = 0; i < times; ++i) {
    if (i == 5) before = resident_kilobytes();
    void* const handle = dlopen(module, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      std::printf("%s\n", dlerror());
      return 1;
    }
    const auto work = reinterpret_cast<uint64_t (*)()>(dlsym(handle, "processes_work"));
    // The work runs on a thread that ends, so no thread-local object keeps the module loaded.
    uint64_t digest = 0;
    std::thread([&] { digest = work(); }).join();
    if (i == 0) std::printf("%016lx\n", digest);
    dlclose(handle);
  }
  std::printf("grew by %ld KiB\n", resident_kilobytes() - before);
  return 0;
}

int run(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "";
  const auto number = [&](int word) { return word < count ? std::atoi(words[word]) : 0; };
  if (what == "digest") return digest(number(2));
  if (what == "timer") return timer(number(2));
  if (what == "threads") return threads(number(2), static_cast<size_t>(number(3)));
  if (what == "compile") return compile(static_cast<size_t>(number(2)));
  if (what == "stack") return stack();
  if (what == "beside_llvm" && count > 3) return beside_llvm(number(2), words[3]);
  if (what == "exit") return end_while_executing();
  if (what == "address_space") return address_space();
  if (what == "no_code") return no_code();
  if (what == "reload" && count > 3) return reload(words[2], number(3));
  std::fprintf(stderr, "client: no such work: %s\n", what.c_str());
  return 2;
}

}  // namespace
}  // namespace processes

int main(int count, char** words) {
  try {
    return processes::run(count, words);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "client: %s\n", error.what());
    return 1;
  }
}
