// Graphs and runs for the tests of bits. Every input element is a fixed function of its row and position, independent of
// strides and alignment. Outputs are read as stored elements in row-major order.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/code/host_machine.h"
#include "backends/cpu/support/cpu_check.h"

namespace lamina::testing {

// The parameters of a run; none of them may change a bit.
struct RunVariant {
  int threads = 1;
  const cpu::Target* most = nullptr;  // an upper limit of the instructions; null: no limit
  int64_t row_gap = 0;                // elements between two rows of the tensors [rows, ...]
  int64_t offset = 0;                 // elements between an aligned address and each tensor
  bool in_place = false;              // outputs reuse the memory of inputs where the executable allows it
};

struct BitsCase {
  const char* name;
  Graph (*build)(int64_t rows, int64_t size, DataType dtype);
  std::vector<DataType> dtypes = {DataType::f32, DataType::bf16, DataType::f16, DataType::f64};
  bool counts_rows = false;  // results depend on the row's number: random bits
};
const std::vector<BitsCase>& bits_cases();

// The stored elements of one output: `rows` rows, or 1 if the output sums over rows.
struct OutputBits {
  int64_t rows = 1;
  std::string elements;  // as bytes
  bool operator==(const OutputBits&) const = default;
};

// One graph with one partition, run in any number of variants. Rows r and r + 7 of every input have the same numbers. `rows`
// must differ from 4 and from `size`, because the first extent identifies the tensors with rows.
class BitsRun {
 public:
  BitsRun(const BitsCase& bits_case, int64_t rows, int64_t size, DataType dtype, cpu::Machine machine = cpu::host_machine());

  // Returns compiled code without running it; the host need not support the machine's instructions.
  const Executable& compiled(const RunVariant& variant = {});

  // Returns the outputs in the order of the partition's ports.
  std::vector<OutputBits> operator()(const RunVariant& variant = {});

 private:
  struct Input {
    int64_t rows;                  // distinct rows: at most 7
    std::vector<std::string> row;  // dense
  };
  bool has_rows(const LogicalTensor& tensor) const;
  Input make_input(const LogicalTensor& tensor, const std::string& port, size_t number) const;
  std::vector<LogicalTensor> widened(std::vector<LogicalTensor> tensors, int64_t gap) const;

  int64_t rows_;
  cpu::Machine machine_;
  std::unique_ptr<Partition> partition_;
  PortTensors ports_;
  std::vector<Input> inputs_;
  std::map<std::pair<const cpu::Target*, int64_t>, std::unique_ptr<Executable>> executables_;  // by target and row gap
};

// FNV-1a over all outputs.
uint64_t hash_of(const std::vector<OutputBits>& outputs);

}  // namespace lamina::testing
