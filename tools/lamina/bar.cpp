#include "lamina/bar.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

namespace lamina::driver {

Bar::Bar(size_t file_count) : file_count_(file_count), shown_(::isatty(STDERR_FILENO) == 1) {}

void Bar::next_file(const std::string& file) {
  ++file_;
  name_ = file;
}

void Bar::show(const std::string& what) {
  if (!shown_) return;
  std::cerr << "\r\x1b[K[" << file_ << '/' << file_count_ << "] " << name_ << ": " << what << std::flush;
  dirty_ = true;
}

void Bar::show(const std::string& what, double done) {
  constexpr size_t kWidth = 20;
  const auto full = static_cast<size_t>(std::clamp(done, 0.0, 1.0) * kWidth);
  show(what + " [" + std::string(full, '#') + std::string(kWidth - full, '-') + ']');
}

void Bar::clear() {
  if (dirty_) std::cerr << "\r\x1b[K" << std::flush;
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
