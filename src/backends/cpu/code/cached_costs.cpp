#include "backends/cpu/code/cached_costs.h"

#include <charconv>
#include <cmath>
#include <map>
#include <mutex>
#include <system_error>

#include "backends/cache/code_cache.h"
#include "backends/cpu/code/generator_version.h"
#include "handles/locks.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

constexpr std::string_view kHeading = "lamina machine costs 1\n";

std::string key_of(const Machine& machine) { return "costs of " + key_of_times(machine); }

// Removes the first line of `text` and returns its number, if the line starts with `name`.
std::optional<double> take_line(std::string_view& text, const std::string& name) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  if (end == std::string_view::npos || !line.starts_with(name + " ")) return std::nullopt;
  text.remove_prefix(end + 1);
  double value = 0;
  const auto [stop, error] = std::from_chars(line.data() + name.size() + 1, line.data() + line.size(), value);
  const bool is_time = std::isfinite(value) && value > 0;
  if (error != std::errc{} || stop != line.data() + line.size() || !is_time) return std::nullopt;
  return value;
}

class Memory {
 public:
  static Memory& instance() {
    static Memory& memory = *new Memory;  // never destroyed: kernels may be compiled during static destruction
    return memory;
  }
  Mutex mutex{LockRow::cached_costs};
  std::map<std::string, std::optional<Costs>> known;
};

}  // namespace

std::string key_of_times(const Machine& machine) {
  return join(machine.cpu, " ", machine.features, " ", describe(machine.instructions), ", caches ", machine.caches.first, " ",
              machine.caches.second, " ", machine.caches.last, ", cores ", machine.cores, "\n", code_generator_version(), "\n");
}

std::string text_of(const Costs& costs) {
  std::string text(kHeading);
  for_each_cost(costs, [&](const std::string& name, double value) {
    char digits[32];
    const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;  // independent of the locale
    text += join(name, " ", std::string_view(digits, static_cast<size_t>(end - digits)), "\n");
  });
  return text;
}

std::optional<Costs> costs_of(std::string_view text) {
  if (!text.starts_with(kHeading)) return std::nullopt;
  text.remove_prefix(kHeading.size());
  Costs costs;
  bool is_whole = true;
  for_each_cost(costs, [&](const std::string& name, double& value) {
    const std::optional<double> read = is_whole ? take_line(text, name) : std::nullopt;
    is_whole = read.has_value();
    value = read.value_or(0);
  });
  if (!is_whole || !text.empty()) return std::nullopt;
  return costs;
}

namespace cached_costs {

std::optional<Costs> find(const Machine& machine) {
  Memory& memory = Memory::instance();
  const std::string key = key_of(machine);
  const std::lock_guard lock(memory.mutex);
  if (const auto known = memory.known.find(key); known != memory.known.end()) return known->second;
  const CodeCache* const disk = CodeCache::from_environment();
  const std::optional<std::string> text = disk == nullptr ? std::nullopt : disk->find(key);
  return memory.known[key] = text ? costs_of(*text) : std::nullopt;
}

void store(const Machine& machine, const Costs& costs) {
  Memory& memory = Memory::instance();
  const std::string key = key_of(machine);
  if (const CodeCache* const disk = CodeCache::from_environment()) disk->store(key, text_of(costs));
  const std::lock_guard lock(memory.mutex);
  memory.known.insert_or_assign(key, costs);
}

void forget() {
  Memory& memory = Memory::instance();
  const std::lock_guard lock(memory.mutex);
  memory.known.clear();
}

}  // namespace cached_costs

}  // namespace lamina::cpu
