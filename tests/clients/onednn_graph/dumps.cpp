// A client of oneDNN Graph that runs dumps of graphs like a framework's driver: graph tensors have the strides of the dump,
// partitions are compiled for their own ports, and execution tensors specify only the shape.
//
//   dumps MOST_ELEMENTS FILE...     skips dumps with more elements in all their tensors
//
// The output has a line for each dump: "ok" or the failure, the number of partitions, and sums over the results, by which two
// libraries are compared.
#include <oneapi/dnnl/dnnl_graph.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "json_value.h"

namespace {

using namespace dnnl::graph;  // NOLINT: a client's own file
using Dims = logical_tensor::dims;
using Bytes = std::vector<unsigned char>;

const std::map<std::string, int>& op_kinds() {
  static const std::map<std::string, int> kinds = {
#define LAMINA_OP(kind, value) {#kind, value},
#include <graph/op_kinds.def>
      {"BiasAddBackprop", dnnl_graph_op_bias_add_backward},  // the name in old dumps
  };
  return kinds;
}

const std::map<std::string, int>& attribute_names() {
  static const std::map<std::string, int> names = {
#define LAMINA_ATTRIBUTE(name, value, type) {#name, value},
#include <graph/attribute_kinds.def>
  };
  return names;
}

const std::map<std::string, int>& data_types() {
  static const std::map<std::string, int> types = {
#define LAMINA_DATA_TYPE(name, value, bits, kind, npy) {#name, value},
#include <graph/data_types.def>
  };
  return types;
}

int number_of(const std::map<std::string, int>& list, const std::string& name) {
  const auto found = list.find(name);
  if (found == list.end()) throw std::runtime_error("unknown word " + name);
  return found->second;
}

Dims dims_of(const JsonValue& list) {
  Dims dims;
  for (const JsonValue& item : list.items()) dims.push_back(item.integer());
  return dims;
}

struct Port {
  size_t id = 0;
  int type = 0;
  Dims dims, strides;
  bool is_known = true, is_scalar = false;
  logical_tensor::property_type property = logical_tensor::property_type::undef;
};

Port port_of(const JsonValue& tensor) {
  Port port;
  port.id = static_cast<size_t>(tensor["id"].integer());
  port.type = number_of(data_types(), tensor["dtype"].text());
  port.dims = dims_of(tensor["shape"]);
  port.strides = dims_of(tensor["stride"]);
  const std::string &layout = tensor["layout_type"].text(), &property = tensor["property_type"].text();
  port.is_known = layout == "strided" && std::all_of(port.dims.begin(), port.dims.end(), [](int64_t dim) { return dim >= 0; });
  port.is_scalar = property == "host_scalar";
  if (property == "constant") port.property = logical_tensor::property_type::constant;
  if (property == "variable") port.property = logical_tensor::property_type::variable;
  if (port.is_scalar) port.property = static_cast<logical_tensor::property_type>(3);
  return port;
}

logical_tensor tensor_of(const Port& port) {
  const auto type = static_cast<logical_tensor::data_type>(port.type);
  if (!port.is_known) return {port.id, type, DNNL_GRAPH_UNKNOWN_NDIMS, logical_tensor::layout_type::strided, port.property};
  return {port.id, type, port.dims, port.strides, port.property};
}

void set_attribute(op& made, const std::string& name, const JsonValue& attribute) {
  const auto attr = static_cast<op::attr>(number_of(attribute_names(), name));
  const std::string& type = attribute["type"].text();
  const JsonValue& value = attribute["value"];
  std::vector<float> reals;
  for (const JsonValue& item : value.items()) reals.push_back(item.real());
  if (type == "string") made.set_attr<std::string>(attr, value.text());
  if (type == "bool") made.set_attr<bool>(attr, value.text() == "true" || value.text() == "1");
  if (type == "s64") made.set_attr<int64_t>(attr, value.integer());
  if (type == "s64[]") made.set_attr<std::vector<int64_t>>(attr, dims_of(value));
  if (type == "f32") made.set_attr<float>(attr, value.real());
  if (type == "f32[]") made.set_attr<std::vector<float>>(attr, reals);
}

// Small numbers of both signs for any type; each tensor has the same ones in every run.
void fill(Bytes& bytes, int type, size_t id) {
  uint32_t state = static_cast<uint32_t>(id) * 2654435761u + 12345u;
  const auto next = [&state] { return (state = state * 1664525u + 1013904223u) >> 16; };
  const auto fill_with = [&](auto make) {
    using Number = decltype(make());
    for (size_t at = 0; at + sizeof(Number) <= bytes.size(); at += sizeof(Number)) {
      const Number number = make();
      std::memcpy(bytes.data() + at, &number, sizeof number);
    }
  };
  switch (type) {
    case dnnl_f32: return fill_with([&] { return float(next() % 2001) / 1000.0f - 1.0f; });
    case dnnl_f16: return fill_with([&] { return uint16_t(0x3000 + next() % 0x0c00 + (next() % 2) * 0x8000); });
    case dnnl_bf16: return fill_with([&] { return uint16_t(0x3e00 + next() % 0x0180 + (next() % 2) * 0x8000); });
    case dnnl_s32: return fill_with([&] { return int32_t(next() % 2); });
    case dnnl_boolean: return fill_with([&] { return uint8_t(next() % 2); });
    case dnnl_s8: return fill_with([&] { return int8_t(int(next() % 15) - 7); });
    case 16: return fill_with([&] { return int64_t(next() % 2); });                           // s64
    default: return fill_with([&] { return uint8_t(next() % 0x30 + (next() % 2) * 0x80); });  // u8, f8 and halves of bytes
  }
}

double as_double(const Bytes& bytes, int type, size_t index) {
  const auto read = [&](auto number) {
    std::memcpy(&number, bytes.data() + index * sizeof number, sizeof number);
    return number;
  };
  switch (type) {
    case dnnl_f32: return read(float{});
    case dnnl_s32: return read(int32_t{});
    case dnnl_s8: return read(int8_t{});
    case dnnl_bf16: {
      const uint32_t bits = uint32_t(read(uint16_t{})) << 16;
      float number = 0;
      std::memcpy(&number, &bits, sizeof number);
      return number;
    }
    case dnnl_f16: {
      const int bits = read(uint16_t{}), exponent = bits >> 10 & 31, fraction = bits & 1023;
      const double size = exponent == 0    ? std::ldexp(fraction, -24)
                          : exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                           : std::ldexp(1024 + fraction, exponent - 25);
      return (bits & 0x8000) != 0 ? -size : size;
    }
    default: return read(uint8_t{});
  }
}

size_t bytes_of_type(int type) {
  switch (type) {
    case dnnl_f32:
    case dnnl_s32: return 4;
    case dnnl_f16:
    case dnnl_bf16: return 2;
    case 16: return 8;
    default: return 1;
  }
}

class Dump {
 public:
  explicit Dump(const JsonValue& json) {
    for (const JsonValue& each : json["graph"].items()) {
      op made(static_cast<size_t>(each["id"].integer()), static_cast<op::kind>(number_of(op_kinds(), each["kind"].text())),
              each["name"].text());
      for (const auto& [name, attribute] : each["attrs"].members()) set_attribute(made, name, attribute);
      for (const bool is_input : {true, false})
        for (const JsonValue& tensor : each[is_input ? "inputs" : "outputs"].items()) {
          const Port port = port_of(tensor);
          ports_.emplace(port.id, port);
          if (is_input) made.add_input(tensor_of(port));
          if (!is_input) made.add_output(tensor_of(port));
        }
      if (each["kind"].text() == "End") ends_.push_back(static_cast<size_t>(each["id"].integer()));
      ops_.push_back(made);
    }
    const std::string& mode = json["fpmath_mode"].text();
    if (mode == "bf16") mode_ = dnnl::fpmath_mode::bf16;
    if (mode == "f16") mode_ = dnnl::fpmath_mode::f16;
    if (mode == "any") mode_ = dnnl::fpmath_mode::any;
  }

  double elements() const {
    double sum = 0;
    for (const auto& [id, port] : ports_) {
      double count = 1;
      for (const int64_t dim : port.dims) count *= double(std::max<int64_t>(dim, 1));
      sum += count;
    }
    return sum;
  }

  // Returns the line for the dump; throws on failure.
  std::string run() {
    graph g(dnnl::engine::kind::cpu, mode_);
    for (const op& each : ops_) g.add_op(each);
    g.finalize();
    const std::vector<partition> partitions = g.get_partitions();
    std::string told = "partitions " + std::to_string(partitions.size()) + " of " + std::to_string(ops_.size());
    for (const partition& each : partitions) {
      const std::vector<size_t> ids = each.get_ops();
      if (!each.is_supported() && ids.size() == 1 && std::count(ends_.begin(), ends_.end(), ids[0]) == 1) continue;
      if (!each.is_supported()) throw std::runtime_error(told + ", not all supported");
      told += execute(each);
    }
    return told;
  }

 private:
  std::string execute(const partition& part) {
    std::vector<logical_tensor> ins = part.get_input_ports(), outs = part.get_output_ports();
    for (logical_tensor& port : ins)
      if (const auto found = settled_.find(port.get_id()); found != settled_.end()) port = found->second;
    const compiled_partition compiled = part.compile(ins, outs, engine_);
    std::vector<tensor> sources, destinations;
    for (const logical_tensor& port : ins) sources.push_back(bound(port, true));
    std::vector<logical_tensor> final;
    for (const logical_tensor& port : outs) {
      final.push_back(compiled.query_logical_tensor(port.get_id()));
      settled_.insert_or_assign(port.get_id(), final.back());
      destinations.push_back(bound(final.back(), false));
    }
    compiled.execute(stream_, sources, destinations);
    stream_.wait();
    std::string told;
    for (const logical_tensor& port : final) told += sums_of(port.get_id());
    return told;
  }

  // Returns the tensor's memory, described by its shape as a driver would.
  tensor bound(const logical_tensor& port, bool is_input) {
    const Port& known = ports_.at(port.get_id());
    const auto [place, is_new] = memory_.try_emplace(known.id);
    if (is_new) place->second.resize(std::max<size_t>(port.get_mem_size(), 16));
    if (is_new && is_input) fill(place->second, known.type, known.id);
    const auto type = static_cast<logical_tensor::data_type>(known.type);
    if (known.is_scalar) return {port, engine_, place->second.data()};
    return {logical_tensor(known.id, type, port.get_dims(), logical_tensor::layout_type::strided, known.property), engine_,
            place->second.data()};
  }

  // Returns the sum, the sum with signs that vary by element, and the sum of absolute values.
  std::string sums_of(size_t id) const {
    const Bytes& bytes = memory_.at(id);
    const int type = ports_.at(id).type;
    double sum = 0, mixed = 0, size = 0;
    uint32_t state = 1;
    for (size_t i = 0; (i + 1) * bytes_of_type(type) <= bytes.size(); ++i) {
      const double number = as_double(bytes, type, i);
      state = state * 1664525u + 1013904223u;
      sum += number, mixed += (state >> 31) != 0 ? number : -number, size += std::fabs(number);
    }
    char text[160];
    std::snprintf(text, sizeof text, " | %zu: %.7g %.7g %.7g", id, sum, mixed, size);
    return text;
  }

  std::vector<op> ops_;
  std::vector<size_t> ends_;
  std::map<size_t, Port> ports_;
  dnnl::fpmath_mode mode_ = dnnl::fpmath_mode::strict;
  std::map<size_t, Bytes> memory_;
  std::map<size_t, logical_tensor> settled_;  // results as compile described them
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
};

std::string tell(const std::string& path, double most) {
  try {
    std::ifstream file(path);
    Dump dump(JsonValue::of(std::string(std::istreambuf_iterator<char>(file), {})));
    if (dump.elements() > most) return "left out";
    return "ok " + dump.run();
  } catch (const dnnl::error& refused) {
    return "failed: status " + std::to_string(refused.status) + ", " + refused.what();
  } catch (const std::exception& failure) {
    return std::string("failed: ") + failure.what();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const double most = argc > 1 ? std::atof(argv[1]) : 0;
  bool is_good = argc > 2;
  for (int i = 2; i < argc; ++i) {
    const std::string told = tell(argv[i], most), path = argv[i];
    std::printf("%s: %s\n", path.substr(path.rfind('/') + 1).c_str(), told.c_str());
    std::fflush(stdout);
    is_good = is_good && told.rfind("failed", 0) != 0;
  }
  return is_good ? 0 : 1;
}
