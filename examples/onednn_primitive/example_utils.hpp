// What a primitive example needs besides the library: sizes, moving data in and out of memory objects, and a main that turns
// errors into words.
#pragma once

#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "dnnl.hpp"

inline dnnl::memory::dim product(const dnnl::memory::dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), dnnl::memory::dim{1}, std::multiplies<dnnl::memory::dim>());
}

// Copies as many bytes as the memory object has.
inline void write_to_dnnl_memory(const void* data, const dnnl::memory& target) {
  std::memcpy(target.get_data_handle(), data, target.get_desc().get_size());
}
inline void read_from_dnnl_memory(void* data, const dnnl::memory& source) {
  std::memcpy(data, source.get_data_handle(), source.get_desc().get_size());
}

// "cpu" (also when nothing is said) or "gpu".
inline dnnl::engine::kind parse_engine_kind(int argc, char** argv) {
  if (argc <= 1 || std::string(argv[1]) == "cpu") return dnnl::engine::kind::cpu;
  if (std::string(argv[1]) == "gpu") return dnnl::engine::kind::gpu;
  std::cout << "usage: " << argv[0] << " [cpu|gpu]\n";
  std::exit(1);
}

inline int handle_example_errors(const std::function<void(dnnl::engine::kind)>& example, dnnl::engine::kind kind) {
  try {
    example(kind);
    std::cout << "Example passed on " << (kind == dnnl::engine::kind::cpu ? "CPU" : "GPU") << ".\n";
    return 0;
  } catch (const dnnl::error& error) {
    std::cout << "oneDNN error caught: status " << error.status << ", " << error.what() << '\n';
  } catch (const std::exception& error) {
    std::cout << "Error in the example: " << error.what() << '\n';
  }
  return 1;
}
