#include "lamina/npy.h"

#include <cstring>
#include <fstream>

#include "interface/status.h"

namespace lamina::driver {
namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicSize = 6;
constexpr size_t kMaxHeader = size_t{1} << 20;

// Two four-bit elements share a byte in memory; in a file each element has its own byte.
bool is_four_bit(DataType type) { return bits_of(type) == 4; }
size_t file_bytes(DataType type) { return is_four_bit(type) ? 1 : static_cast<size_t>(bytes_of(type, 1)); }

struct Header {
  std::string descr;
  bool fortran_order = false;
  Dims shape;
};

std::string shape_text(const Dims& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += join(shape[i], i + 1 < shape.size() ? ", " : "");
  return text + (shape.size() == 1 ? ",)" : ")");
}

// Parses a header, which is one Python dict.
class HeaderParser {
 public:
  HeaderParser(const std::string& path, const std::string& text) : path_(path), text_(text) {}

  Header run() {
    Header header;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr") {
        header.descr = quoted();
      } else if (key == "fortran_order") {
        header.fortran_order = boolean();
      } else if (key == "shape") {
        header.shape = tuple();
      } else {
        fail(join("unknown key '", key, "'"));
      }
      if (accept(',')) continue;
      expect('}');
      break;
    }
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw Error(Status::invalid_arguments, join(path_, ": the .npy header is broken: ", why));
  }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool accept(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(join("'", c, "' is missing at byte ", at_));
  }
  std::string quoted() {
    skip_spaces();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) fail(join("a string is missing at byte ", at_));
    const size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string::npos) fail("a string does not end");
    const std::string value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return value;
  }
  bool boolean() {
    skip_spaces();
    for (const auto& [word, value] : {std::pair<std::string, bool>{"True", true}, {"False", false}})
      if (text_.compare(at_, word.size(), word) == 0) {
        at_ += word.size();
        return value;
      }
    fail("fortran_order is neither True nor False");
  }
  int64_t integer() {
    skip_spaces();
    int64_t value = 0;
    const size_t start = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      if (__builtin_mul_overflow(value, int64_t{10}, &value) || __builtin_add_overflow(value, text_[at_] - '0', &value))
        fail("an extent is larger than 64 bits");
    if (at_ == start) fail(join("a number is missing at byte ", at_));
    return value;
  }
  Dims tuple() {
    Dims dims;
    expect('(');
    while (!accept(')')) {
      dims.push_back(integer());
      if (dims.size() > 64) fail("the shape has more than 64 axes");
      if (accept(',')) continue;
      expect(')');
      break;
    }
    return dims;
  }

  const std::string& path_;
  const std::string& text_;
  size_t at_ = 0;
};

Header read_header(const std::string& path, std::ifstream& file) {
  const auto fail = [&](const std::string& why) { throw Error(Status::invalid_arguments, join(path, ": ", why)); };
  unsigned char start[8] = {};
  if (!file.read(reinterpret_cast<char*>(start), 8) || std::memcmp(start, kMagic, kMagicSize) != 0)
    fail("is not a .npy file: it does not begin with \\x93NUMPY");
  const int version = start[kMagicSize];
  if (version < 1 || version > 3) fail(join("is .npy format ", version, ", allowed is 1 to 3"));
  unsigned char length_bytes[4] = {};
  const int length_size = version == 1 ? 2 : 4;
  if (!file.read(reinterpret_cast<char*>(length_bytes), length_size)) fail("ends inside its header");
  size_t length = 0;
  for (int i = 0; i < length_size; ++i) length |= static_cast<size_t>(length_bytes[i]) << (8 * i);
  if (length > kMaxHeader) fail(join("has a header of ", length, " bytes, allowed is at most ", kMaxHeader));
  std::string text(length, ' ');
  if (!file.read(text.data(), static_cast<std::streamsize>(length))) fail("ends inside its header");
  return HeaderParser(path, text).run();
}

// '=' and '|' mean the same as '<' here; numpy's bool matches boolean.
bool same_type(const std::string& given, DataType expected) {
  const std::string_view type = npy_descriptor(expected);
  if (given.size() < 2 || given[0] == '>') return false;
  if (expected == DataType::boolean && given.substr(1) == "b1") return true;
  return given.substr(1) == type.substr(1);
}

void check_header(const std::string& path, const Header& header, const LogicalTensor& tensor) {
  const auto fail = [&](const std::string& what, const std::string& given, const std::string& allowed) {
    throw Error(Status::invalid_arguments, join(path, ": tensor ", tensor.id, ", ", describe(tensor), ": ", what, " is ", given,
                                                ", allowed is ", allowed));
  };
  if (!same_type(header.descr, tensor.dtype))
    fail("descr", '\'' + header.descr + '\'', join('\'', npy_descriptor(tensor.dtype), "' for ", name_of(tensor.dtype)));
  if (header.fortran_order) fail("fortran_order", "True", "False: C order");
  if (header.shape != *tensor.shape) fail("shape", shape_text(header.shape), shape_text(*tensor.shape));
}

// Copies one element between a tensor's memory and a file's bytes.
class ElementCopy {
 public:
  explicit ElementCopy(DataType type)
      : type_(type),
        whole_(kind_of(type) == TypeKind::signed_integer ? DataType::s8 : DataType::u8),
        bytes_(file_bytes(type)) {}

  void from_file(const std::byte* in, Buffer& buffer, int64_t offset) const {
    if (!is_four_bit(type_)) {
      std::memcpy(static_cast<std::byte*>(buffer.data()) + static_cast<size_t>(offset) * bytes_, in, bytes_);
      return;
    }
    buffer.store(offset, load_as_double(whole_, in, 0));
  }
  void to_file(const Buffer& buffer, int64_t offset, std::byte* out) const {
    if (!is_four_bit(type_)) {
      std::memcpy(out, static_cast<const std::byte*>(buffer.data()) + static_cast<size_t>(offset) * bytes_, bytes_);
      return;
    }
    store_from_double(whole_, out, 0, buffer.load(offset));
  }
  size_t bytes() const { return bytes_; }

 private:
  DataType type_;
  DataType whole_;  // the type of a four-bit element in a file
  size_t bytes_;
};

// Calls move(first element, count) for blocks that fit a small staging area.
template <typename Move>
void in_blocks(int64_t count, const Move& move) {
  constexpr int64_t kBlock = int64_t{1} << 16;
  for (int64_t first = 0; first < count; first += kBlock) move(first, std::min(kBlock, count - first));
}

}  // namespace

void read_npy(const std::string& path, Buffer& buffer) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(Status::invalid_arguments, path + ": cannot be opened for reading");
  check_header(path, read_header(path, file), buffer.tensor());
  const ElementCopy copy(buffer.tensor().dtype);
  std::vector<std::byte> staging;
  in_blocks(buffer.element_count(), [&](int64_t first, int64_t count) {
    staging.resize(static_cast<size_t>(count) * copy.bytes());
    if (!file.read(reinterpret_cast<char*>(staging.data()), static_cast<std::streamsize>(staging.size())))
      throw Error(Status::invalid_arguments,
                  join(path, ": tensor ", buffer.tensor().id, ", ", describe(buffer.tensor()), ": the file ends too early"));
    for_each_element(buffer.tensor(), first, first + count, [&](int64_t index, int64_t offset) {
      copy.from_file(staging.data() + static_cast<size_t>(index - first) * copy.bytes(), buffer, offset);
    });
  });
  if (file.peek() != std::ifstream::traits_type::eof())
    throw Error(Status::invalid_arguments, join(path, ": tensor ", buffer.tensor().id, ", ", describe(buffer.tensor()),
                                                ": the file has more data than the tensor"));
}

void write_npy(std::ostream& out, const Buffer& buffer) {
  const LogicalTensor& tensor = buffer.tensor();
  std::string header = join("{'descr': '", npy_descriptor(tensor.dtype),
                            "', 'fortran_order': False, 'shape': ", shape_text(*tensor.shape), ", }");
  const size_t unpadded = kMagicSize + 4 + header.size() + 1;
  header.append((64 - unpadded % 64) % 64, ' ');
  header += '\n';
  out.write(kMagic, kMagicSize);
  const char version_and_length[] = {1, 0, static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8)};
  out.write(version_and_length, 4);
  out << header;
  const ElementCopy copy(tensor.dtype);
  std::vector<std::byte> staging;
  in_blocks(buffer.element_count(), [&](int64_t first, int64_t count) {
    staging.resize(static_cast<size_t>(count) * copy.bytes());
    for_each_element(tensor, first, first + count, [&](int64_t index, int64_t offset) {
      copy.to_file(buffer, offset, staging.data() + static_cast<size_t>(index - first) * copy.bytes());
    });
    out.write(reinterpret_cast<const char*>(staging.data()), static_cast<std::streamsize>(staging.size()));
  });
}

}  // namespace lamina::driver
