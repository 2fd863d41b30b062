#include "views.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <vector>

#include "exchange.h"

namespace lamina::python {
namespace {

struct TypeRow {
  const char* name;
  lamina_data_type_t type;
  int bits;
  const char* npy;
  std::string_view kind;
};
constexpr TypeRow kTypes[] = {
#define LAMINA_DATA_TYPE(name, value, bits, kind, npy) {#name, lamina_##name, bits, npy, #kind},
#include "graph/data_types.def"
};

// The types of arrays: DLPack's code, and torch's name.
struct ArrayType {
  lamina_data_type_t type;
  dlpack::Code code;
  std::string torch;
};

// Small floats have a code and a name each. Those of other types follow from their kind and bits.
std::vector<ArrayType> all_array_types() {
  std::vector<ArrayType> types = {
      {lamina_f16, dlpack::kFloat, "float16"},
      {lamina_bf16, dlpack::kBfloat, "bfloat16"},
      {lamina_f8_e5m2, dlpack::kFloat8E5m2, "float8_e5m2"},
      {lamina_f8_e4m3, dlpack::kFloat8E4m3fn, "float8_e4m3fn"},
  };
  struct Kind {
    std::string_view name;
    dlpack::Code code;
    const char* torch;
  };
  for (const Kind& kind : {Kind{"real", dlpack::kFloat, "float"}, Kind{"signed_integer", dlpack::kInt, "int"},
                           Kind{"unsigned_integer", dlpack::kUInt, "uint"}})
    for (const TypeRow& row : kTypes)
      if (row.kind == kind.name && row.bits >= 8) types.push_back({row.type, kind.code, kind.torch + std::to_string(row.bits)});
  types.push_back({lamina_boolean, dlpack::kBool, "bool"});
  return types;
}

const std::vector<ArrayType>& array_types_known() {
  static const std::vector<ArrayType> types = all_array_types();
  return types;
}

[[noreturn]] void refuse(std::string_view what, const std::string& message) {
  throw error(lamina_invalid_arguments, std::string(what) + " " + message);
}

lamina_data_type_t type_of(uint8_t code, int bits) {
  for (const ArrayType& known : array_types_known())
    if (known.code == code && bits_of(known.type) == bits) return known.type;
  return lamina_data_type_undef;
}

// If `strides` is null, the view is dense row-major.
void set_shape(View& view, int rank, const int64_t* dims, const int64_t* strides, std::string_view what) {
  if (rank > LAMINA_MAX_NDIMS)
    refuse(what, "has rank " + std::to_string(rank) + ", allowed is 0.." + std::to_string(LAMINA_MAX_NDIMS));
  view.rank = rank;
  int64_t dense = 1;
  for (int i = rank - 1; i >= 0; --i) {
    const auto at = static_cast<size_t>(i);
    view.dims[at] = dims[i];
    view.strides[at] = strides != nullptr ? strides[i] : dense;
    dense *= dims[i] > 0 ? dims[i] : 1;
  }
}

void set_type(View& view, uint8_t code, int bits, int lanes, std::string_view what) {
  view.type = lanes == 1 ? type_of(code, bits) : lamina_data_type_undef;
  view.bits = bits;
  view.raw = code == dlpack::kUInt && lanes == 1;
  if (view.type == lamina_data_type_undef && !view.raw)
    refuse(what, "has elements of DLPack type " + std::to_string(code) + " with " + std::to_string(bits) +
                     " bits, which lamina does not support");
}

// ---- types with an exchange table (torch 2.10 and newer)

// One attribute look-up per type: a process has few types, and they exist until it ends.
const dlpack::Exchange* exchange_of(nb::handle object) {
  static std::unordered_map<PyObject*, const dlpack::Exchange*> known;
  PyObject* const type = reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()));
  if (const auto found = known.find(type); found != known.end()) return found->second;
  const dlpack::Exchange* table = nullptr;
  if (nb::hasattr(nb::handle(type), "__dlpack_c_exchange_api__")) {
    const nb::object capsule = nb::handle(type).attr("__dlpack_c_exchange_api__");
    table = static_cast<const dlpack::Exchange*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
    if (table == nullptr) PyErr_Clear();
    if (table != nullptr && (table->header.version.major != 1 || table->tensor_from_py_object == nullptr)) table = nullptr;
  }
  Py_INCREF(type);
  known.emplace(type, table);
  return table;
}

View by_exchange(const dlpack::Exchange& table, nb::handle object, std::string_view what) {
  dlpack::Tensor tensor{};
  if (table.tensor_from_py_object(object.ptr(), &tensor) != 0) throw nb::python_error();
  if (tensor.device.type != dlpack::kCpu) refuse(what, "is on a device other than the CPU");
  View view;
  set_type(view, tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes, what);
  set_shape(view, tensor.ndim, tensor.shape, tensor.strides, what);
  view.memory = tensor.data == nullptr ? nullptr : static_cast<char*>(tensor.data) + tensor.byte_offset;
  return view;
}

// ---- torch's tensors, read through their attributes

bool is_torch_tensor(nb::handle object) { return nb::hasattr(object, "untyped_storage") && nb::hasattr(object, "data_ptr"); }

lamina_data_type_t torch_type(nb::handle dtype, std::string_view what) {
  static std::unordered_map<PyObject*, lamina_data_type_t> known;
  if (const auto found = known.find(dtype.ptr()); found != known.end()) return found->second;
  const std::string name = nb::cast<std::string>(nb::str(dtype));
  const std::vector<ArrayType>& types = array_types_known();
  const auto found =
      std::find_if(types.begin(), types.end(), [&](const ArrayType& type) { return name == "torch." + type.torch; });
  if (found == types.end()) refuse(what, "has elements of " + name + ", which lamina does not support");
  Py_INCREF(dtype.ptr());
  known.emplace(dtype.ptr(), found->type);
  return found->type;
}

View by_attributes(nb::handle object, std::string_view what) {
  if (!nb::cast<bool>(object.attr("is_cpu"))) refuse(what, "is on a device other than the CPU");
  View view;
  view.type = torch_type(object.attr("dtype"), what);
  view.bits = bits_of(view.type);
  std::array<int64_t, LAMINA_MAX_NDIMS> dims{}, strides{};
  int rank = 0;
  const nb::object shape = object.attr("shape"), steps = object.attr("stride")();
  for (const nb::handle dim : shape)
    if (rank < LAMINA_MAX_NDIMS) dims[static_cast<size_t>(rank++)] = nb::cast<int64_t>(dim);
  int at = 0;
  for (const nb::handle stride : steps)
    if (at < LAMINA_MAX_NDIMS) strides[static_cast<size_t>(at++)] = nb::cast<int64_t>(stride);
  set_shape(view, rank, dims.data(), strides.data(), what);
  view.memory = reinterpret_cast<void*>(nb::cast<uintptr_t>(object.attr("data_ptr")()));
  return view;
}

// ---- all other objects

template <typename Array>
View of_array(const Array& array, std::string_view what) {
  if (array.device_type() != nb::device::cpu::value) refuse(what, "is on a device other than the CPU");
  View view;
  const nb::dlpack::dtype type = array.dtype();
  set_type(view, type.code, type.bits, type.lanes, what);
  set_shape(view, static_cast<int>(array.ndim()), array.shape_ptr(), array.stride_ptr(), what);
  view.memory = const_cast<void*>(static_cast<const void*>(array.data()));
  return view;
}

// The array may be destroyed: the object, which the caller holds, owns the memory.
View by_protocol(nb::handle object, bool writable, std::string_view what) {
  nb::ndarray<> array;
  if (nb::try_cast(object, array)) return of_array(array, what);
  nb::ndarray<nb::ro> constant;
  if (!nb::try_cast(object, constant))
    refuse(what, "is a " + nb::cast<std::string>(object.type().attr("__name__")) +
                     ", allowed is an object with __dlpack__ or the buffer protocol");
  if (writable) refuse(what, "is read-only, allowed is a writable object");
  return of_array(constant, what);
}

int64_t elements(const View& view) {
  int64_t count = 1;
  for (int i = 0; i < view.rank; ++i) count *= view.dims[static_cast<size_t>(i)];
  return count;
}

std::string text_of(const int64_t* values, int count) {
  std::string text = "[";
  for (int i = 0; i < count; ++i) text += (i > 0 ? ", " : "") + std::to_string(values[i]);
  return text + "]";
}

}  // namespace

View view_of(nb::handle object, bool writable, std::string_view what) {
  const dlpack::Exchange* const table = exchange_of(object);
  View view = table != nullptr          ? by_exchange(*table, object, what)
              : is_torch_tensor(object) ? by_attributes(object, what)
                                        : by_protocol(object, writable, what);
  if (view.memory == nullptr && elements(view) > 0) refuse(what, "has elements but no memory");
  return view;
}

nb::bytes signature(nb::handle arrays) {
  std::vector<int64_t> text;
  text.reserve(64);
  for (const nb::handle array : arrays) {
    if (array.is_none()) {
      text.push_back(-1);
      continue;
    }
    const View view = view_of(array, false, "an array");
    text.push_back((static_cast<int64_t>(view.type) << 16) + (static_cast<int64_t>(view.bits) << 8) + view.rank);
    text.insert(text.end(), view.dims.begin(), view.dims.begin() + view.rank);
    text.insert(text.end(), view.strides.begin(), view.strides.begin() + view.rank);
  }
  return nb::bytes(text.data(), text.size() * sizeof(int64_t));
}

std::string misfit(const View& view, const lamina_graph_logical_tensor_t& tensor) {
  const bool bits_fit = view.raw && view.bits == bits_of(tensor.data_type) && tensor.data_type != lamina_s8;
  if (view.type != tensor.data_type && !bits_fit)
    return std::string("has type ") +
           (view.type == lamina_data_type_undef ? "u" + std::to_string(view.bits) : name_of(view.type)) + ", compiled for " +
           name_of(tensor.data_type);
  bool same = view.rank == tensor.ndims;
  for (int i = 0; same && i < view.rank; ++i) same = view.dims[static_cast<size_t>(i)] == tensor.dims[i];
  if (!same)
    return "has shape " + text_of(view.dims.data(), view.rank) + ", compiled for " + text_of(tensor.dims, tensor.ndims);
  if (elements(view) == 0) return "";
  for (int i = 0; same && i < view.rank; ++i)
    same = tensor.dims[i] == 1 || view.strides[static_cast<size_t>(i)] == tensor.layout.strides[i];
  if (!same)
    return "has strides " + text_of(view.strides.data(), view.rank) + ", compiled for " +
           text_of(tensor.layout.strides, tensor.ndims);
  return "";
}

std::vector<std::string> type_names() {
  std::vector<std::string> names;
  for (const TypeRow& known : kTypes) names.emplace_back(known.name);
  return names;
}

std::map<std::string, std::string> type_kinds() {
  std::map<std::string, std::string> kinds;
  for (const TypeRow& known : kTypes) kinds[known.name] = known.kind;
  return kinds;
}

std::map<std::string, std::pair<std::string, std::string>> array_types() {
  std::map<std::string, std::pair<std::string, std::string>> types;
  for (const ArrayType& known : array_types_known()) {
    const auto row = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeRow& r) { return r.type == known.type; });
    types[row->name] = {known.code == dlpack::kBool ? "bool" : row->npy, known.torch};
  }
  return types;
}

const char* name_of(lamina_data_type_t type) {
  for (const TypeRow& known : kTypes)
    if (known.type == type) return known.name;
  return "undef";
}

int bits_of(lamina_data_type_t type) {
  for (const TypeRow& known : kTypes)
    if (known.type == type) return known.bits;
  return 0;
}

lamina_data_type_t type_from_name(const std::string& name) {
  if (name == "undef") return lamina_data_type_undef;
  std::string names;
  for (const TypeRow& known : kTypes) {
    if (name == known.name) return known.type;
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  throw error(lamina_invalid_arguments, "the type is \"" + name + "\", allowed is one of " + names);
}

}  // namespace lamina::python
