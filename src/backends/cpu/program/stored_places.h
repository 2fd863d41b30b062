// Ops and tensors of indices in a program: for the errors of runs, and for the indices that runs check.
#pragma once

#include "backends/cpu/program/program_writer.h"
#include "interface/logical_tensor.h"
#include "interface/status.h"

namespace lamina::cpu {

inline void write_place(ProgramWriter& to, const OpPlace& place) {
  to.write(place.id);
  to.write(static_cast<int64_t>(place.kind));
  to.write(place.name);
  to.write(place.part);
}

inline OpPlace read_place(ProgramReader& from) {
  OpPlace place;
  from.read(place.id);
  place.kind = static_cast<OpKind>(from.get<int64_t>());
  from.read(place.name);
  from.read(place.part);
  return place;
}

// A tensor with a shape and strides; its id is not written.
inline void write_tensor(ProgramWriter& to, const LogicalTensor& tensor) {
  to.write(tensor.dtype);
  to.write(*tensor.shape);
  to.write(tensor.strides);
}

inline LogicalTensor read_tensor(ProgramReader& from) {
  LogicalTensor tensor;
  from.read(tensor.dtype);
  tensor.shape = from.get<Dims>();
  from.read(tensor.strides);
  tensor.layout = LayoutType::strided;
  if (tensor.strides.size() != tensor.shape->size() || tensor.shape->size() > static_cast<size_t>(kMaxRank))
    ByteReader::fail("a tensor");
  return tensor;
}

}  // namespace lamina::cpu
