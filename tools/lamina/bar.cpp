#include "lamina/bar.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "lamina/escaped.h"

namespace lamina::driver {
namespace {

// A terminal with TERM unset or "dumb" does not support escape codes.
bool can_overwrite_lines() {
  const char* const terminal = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && terminal != nullptr && *terminal != '\0' && std::string_view(terminal) != "dumb";
}

// Queried before every line: the window may be resized.
size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// Bypasses std::cerr, which escapes control characters here.
void write_raw(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

// Counts a non-ASCII character as its number of bytes, which is at least its number of columns.
std::string fitted_line(const std::string& place, const std::string& name, const std::string& what, size_t width) {
  const std::string rest = ": " + what;
  std::string line = place + name + rest;
  if (line.size() <= width) return line;
  constexpr std::string_view kDots = "...";
  const size_t others = place.size() + rest.size() + kDots.size();
  const size_t kept = others < width ? std::min(width - others, name.size()) : 0;
  line = kept > 0 ? place + std::string(kDots) + name.substr(name.size() - kept) + rest : place + what;
  if (line.size() <= width) return line;
  // Keeps the end of `what`, which contains the progress, rather than its middle.
  constexpr size_t kTail = 22;
  if (width < place.size() + kTail + kDots.size() || what.size() < kTail) return line.substr(0, width);
  return line.substr(0, width - kTail - kDots.size()) + std::string(kDots) + line.substr(line.size() - kTail);
}

Bar::Bar(size_t file_count) : file_count_(file_count), shown_(can_overwrite_lines()) {}

void Bar::next_file(const std::string& file) {
  ++file_;
  name_ = file;
}

void Bar::show(const std::string& what) {
  if (!shown_) return;
  const std::string place = "[" + std::to_string(file_) + '/' + std::to_string(file_count_) + "] ";
  // The last column stays empty: some terminals wrap when it is filled.
  write_raw("\r\x1b[K" + fitted_line(place, escaped(name_), escaped(what), terminal_width() - 1));
  dirty_ = true;
}

void Bar::show(const std::string& what, double done) {
  constexpr size_t kWidth = 20;
  const auto full = static_cast<size_t>(std::clamp(done, 0.0, 1.0) * kWidth);
  show(what + " [" + std::string(full, '#') + std::string(kWidth - full, '-') + ']');
}

void Bar::clear() {
  if (dirty_) write_raw("\r\x1b[K");
  dirty_ = false;
}

CompileBar::CompileBar(Bar& bar, size_t count) : bar_(bar), count_(count), scope_({&CompileBar::step, this}) {}

int CompileBar::step(void* user, size_t done, size_t total, const char* name) {
  const CompileBar& self = *static_cast<const CompileBar*>(user);
  const double part = total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
  std::string words = std::string(name).substr(0, 60);
  self.bar_.show("compiling " + words, (static_cast<double>(self.partition_) + part) / static_cast<double>(self.count_));
  return 0;
}

}  // namespace lamina::driver
