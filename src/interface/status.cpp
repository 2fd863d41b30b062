#include "interface/status.h"

#include "interface/number_text.h"
#include "interface/op.h"

namespace lamina {

std::string describe(const OpPlace& place) { return join(name_of(place.kind), " \"", place.name, '"'); }

Error::Error(Status status, OpPlace place, std::string_view message) : status_(status), what_(describe(place) + ": ") {
  message_at_ = what_.size();
  what_ += message;
  place_ = std::move(place);
}

Error Error::in_file(std::string_view file) const {
  const std::string front = place_ ? join(file, ": op ", place_->id, " (", describe(*place_), "): ") : join(file, ": ");
  Error told(status_, front + std::string(message()));
  told.message_at_ = front.size();
  told.place_ = place_;
  return told;
}

namespace detail {

void append(std::string& text, std::string_view part) { text += part; }
void append(std::string& text, const char* part) { text += part; }
void append(std::string& text, char part) { text += part; }
void append(std::string& text, double part) { text += general_text(part, 6); }
void append_signed(std::string& text, int64_t part) { text += std::to_string(part); }
void append_unsigned(std::string& text, uint64_t part) { text += std::to_string(part); }

}  // namespace detail

void fail_check(const char* condition, const char* file, int line, const std::string& detail) {
  throw Error(Status::runtime_error,
              join("this is a bug in lamina: ", condition, " does not hold at ", file, ":", line, ": ", detail));
}

}  // namespace lamina
