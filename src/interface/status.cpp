#include "interface/status.h"

namespace lamina {

void fail_check(const char* condition, const char* file, int line, const std::string& detail) {
  throw Error(Status::runtime_error,
              join("this is a bug in lamina: ", condition, " does not hold at ", file, ":", line, ": ", detail));
}

}  // namespace lamina
