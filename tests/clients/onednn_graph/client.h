// Shared by the clients of oneDNN Graph: numbers, running one graph as one or several partitions, and comparing results.
#pragma once

#include <oneapi/dnnl/dnnl_graph.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace dnnl::graph;  // NOLINT: a client's own file

using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using Results = std::vector<Floats>;

// Numbers from -1 to 1, the same on every machine.
inline Floats numbers(size_t count, uint32_t seed) {
  Floats values(count);
  uint32_t state = seed * 2654435761u + 12345u;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = float(state >> 8) / float(1 << 23) - 1.0f;
  }
  return values;
}

inline logical_tensor f32(size_t id, const logical_tensor::dims& dims) {
  return {id, logical_tensor::data_type::f32, dims, logical_tensor::layout_type::strided};
}

class Client {
 public:
  // Runs the graph of these ops, whose inputs and outputs are f32, partition by partition.
  Results run(const std::vector<op>& ops, const std::vector<std::pair<logical_tensor, Floats>>& inputs,
              const std::vector<logical_tensor>& outputs) {
    graph g(dnnl::engine::kind::cpu);
    for (const op& each : ops) g.add_op(each);
    g.finalize();
    std::map<size_t, std::vector<char>> memory;
    for (const auto& [tensor, values] : inputs) {
      const char* const bytes = reinterpret_cast<const char*>(values.data());
      memory[tensor.get_id()].assign(bytes, bytes + values.size() * sizeof(float));
    }
    std::map<size_t, logical_tensor> known;
    for (const auto& input : inputs) known.emplace(input.first.get_id(), input.first);
    for (const logical_tensor& output : outputs) known.emplace(output.get_id(), output);
    const std::vector<partition> partitions = g.get_partitions();
    num_partitions = partitions.size();
    for (const partition& each : partitions) execute(each, known, memory);
    Results results;
    for (const logical_tensor& output : outputs) {
      const auto* const values = reinterpret_cast<const float*>(memory[output.get_id()].data());
      results.emplace_back(values, values + memory[output.get_id()].size() / sizeof(float));
    }
    return results;
  }

  // Compares the largest difference with `tolerance`, relative to the largest expected value.
  void expect_near(const char* what, const Floats& found, const Doubles& expected, double tolerance) {
    double worst = found.size() == expected.size() ? 0 : INFINITY, largest = 1;
    for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
      const double difference = std::abs(found[i] - expected[i]);
      worst = std::isnan(difference) ? INFINITY : std::max(worst, difference);
      largest = std::max(largest, std::abs(expected[i]));
    }
    const bool is_near = worst <= tolerance * largest;
    std::printf("%s: error %.3g %s\n", what, worst, is_near ? "ok" : "TOO LARGE");
    failed_ = failed_ || !is_near;
  }

  void expect(bool holds, const char* what) {
    std::printf("%s: %s\n", what, holds ? "ok" : "WRONG");
    failed_ = failed_ || !holds;
  }

  int exit_code() const { return failed_ ? 1 : 0; }

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  size_t num_partitions = 0;

 private:
  void execute(const partition& part, std::map<size_t, logical_tensor>& known, std::map<size_t, std::vector<char>>& memory) {
    std::vector<logical_tensor> ins = part.get_input_ports(), outs = part.get_output_ports();
    for (auto* const ports : {&ins, &outs})
      for (logical_tensor& port : *ports) {
        const auto found = known.find(port.get_id());
        if (found != known.end()) port = found->second;
      }
    const compiled_partition compiled = part.compile(ins, outs, engine);
    std::vector<tensor> sources, destinations;
    for (const logical_tensor& port : ins) sources.emplace_back(port, engine, memory.at(port.get_id()).data());
    for (const logical_tensor& port : outs) {
      const logical_tensor final = compiled.query_logical_tensor(port.get_id());
      std::vector<char>& bytes = memory[port.get_id()];
      bytes.resize(final.get_mem_size());
      known.insert_or_assign(port.get_id(), final);
      destinations.emplace_back(final, engine, bytes.data());
    }
    compiled.execute(stream, sources, destinations);
    stream.wait();
  }

  bool failed_ = false;
};
