// The cap on instruction sets that a test needs.
#pragma once

#include <cstdlib>
#include <string>

namespace lamina::testing {

// Sets LAMINA_MAX_ISA while an object of this class exists; "" is no cap.
class MaxIsa {
 public:
  explicit MaxIsa(const char* value) {
    if (const char* const before = std::getenv("LAMINA_MAX_ISA")) before_ = before;
    setenv("LAMINA_MAX_ISA", value, 1);
  }
  ~MaxIsa() { setenv("LAMINA_MAX_ISA", before_.c_str(), 1); }
  MaxIsa(const MaxIsa&) = delete;
  MaxIsa& operator=(const MaxIsa&) = delete;

 private:
  std::string before_;
};

}  // namespace lamina::testing
