// Lines of C with the right indentation.
#pragma once

#include <string>

#include "interface/status.h"

namespace lamina::gpu {

class Text {
 public:
  template <typename... Parts>
  void line(const Parts&... parts) {
    text_ += std::string(static_cast<size_t>(depth_) * 2, ' ') + join(parts...) + "\n";
  }
  template <typename... Parts>
  void open(const Parts&... parts) {
    line(parts..., " {");
    ++depth_;
  }
  void close() {
    --depth_;
    line("}");
  }
  const std::string& str() const { return text_; }

 private:
  std::string text_;
  int depth_ = 0;
};

}  // namespace lamina::gpu
