// What is known about a tensor before it has memory: id, element type, shape, layout. Enumerator values equal oneDNN's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "interface/data_type.h"

namespace lamina {

inline constexpr int64_t kUnknownDim = INT64_MIN;
inline constexpr int kMaxRank = 12;
inline constexpr uint64_t kNoTensor = UINT64_MAX;  // id of the empty logical tensor: an omitted port

using Dims = std::vector<int64_t>;

enum class LayoutType : int { undef = 0, any = 1, strided = 2, opaque = 3 };
enum class PropertyType : int { undef = 0, variable = 1, constant = 2, host_scalar = 3 };

struct LogicalTensor {
  uint64_t id = kNoTensor;
  DataType dtype = DataType::undef;
  std::optional<Dims> shape;  // nullopt: rank unknown; a dim may be kUnknownDim
  LayoutType layout = LayoutType::undef;
  Dims strides;  // in elements, one per dim; empty when unknown (layout undef or any)
  PropertyType property = PropertyType::undef;

  bool is_empty_port() const { return id == kNoTensor; }
  bool has_full_shape() const;    // the rank and every dim are known
  bool has_strides() const;       // strided, with one stride per dim
  int rank() const;               // -1 when unknown
  int64_t element_count() const;  // product of dims (checked); requires has_full_shape()
  int64_t span() const;           // elements from the first to one past the last addressed; 0 if empty
  int64_t byte_size() const;      // bytes of that span
};

// Whether two descriptions of one shape (or of its strides) are compatible: equal ranks, and equal dims unless one is
// unknown.
bool dims_agree(int64_t a, int64_t b);
bool dims_agree(const Dims& a, const Dims& b);
Dims joined_dims(const Dims& a, const Dims& b);  // for equal ranks: the known dim of the two, a's if both are known

// The dense row-major strides; extents of zero count as 1.
Dims dense_strides(const Dims& shape);
bool is_dense(const LogicalTensor& tensor);
// Makes a tensor of known shape without strides dense, unless its layout is opaque; returns other tensors unchanged.
LogicalTensor made_dense(LogicalTensor tensor);

// The product with an overflow check. Throws Error(invalid_shape) with `what` in the sentence.
std::string too_many_elements(const Dims& dims);  // the sentence for a shape whose element count overflows 64 bits
int64_t checked_product(const Dims& dims, const std::string& what);

// "f32[2, 3, 8]", "bf16[?, 3]", "f32[unknown rank]".
std::string describe(const LogicalTensor& tensor);
std::string describe(const Dims& dims);  // "[2, 3, 8]"

const char* name_of(LayoutType layout);
const char* name_of(PropertyType property);

}  // namespace lamina
