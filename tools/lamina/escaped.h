// Escapes text from files before it is printed: control characters, which could move the cursor or change the terminal,
// become \xNN.
#pragma once

#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace lamina::driver {

// Keeps newlines and tabs.
std::string escaped(std::string_view text);

// During its lifetime, everything written to `stream` is escaped.
class EscapedStream : private std::streambuf {
 public:
  explicit EscapedStream(std::ostream& stream) : stream_(stream), target_(stream.rdbuf(this)) {}
  EscapedStream(const EscapedStream&) = delete;
  EscapedStream& operator=(const EscapedStream&) = delete;
  ~EscapedStream() override { stream_.rdbuf(target_); }

 private:
  int_type overflow(int_type character) override;
  std::streamsize xsputn(const char* text, std::streamsize count) override;
  int sync() override { return target_->pubsync(); }

  std::ostream& stream_;
  std::streambuf* target_;
};

}  // namespace lamina::driver
