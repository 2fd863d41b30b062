#include "runtime/model.h"

#include <algorithm>
#include <utility>

#include "backends/cache/sha256.h"
#include "backends/cpu/dispatch/program_io.h"
#include "backends/cpu/host/host_isa.h"
#include "interface/per_thread.h"
#include "interface/status.h"
#include "runtime/zip_directory.h"

namespace lamina::runtime {

namespace {

using Source = ExportedModel::Value::Source;

constexpr std::string_view kProgramFolder = "program/";
constexpr size_t kLengthBytes = 8;  // of a safetensors header

[[noreturn]] void refuse(const std::string& why) { throw Error(Status::invalid_arguments, why); }

template <typename Names>
std::string list_of(const Names& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text.empty() ? "none" : text;
}

const ZipMember* find(const std::vector<ZipMember>& members, std::string_view name) {
  const auto found = std::find_if(members.begin(), members.end(), [&](const ZipMember& member) { return member.name == name; });
  return found == members.end() ? nullptr : &*found;
}

// The program for the best instruction set that this machine has.
std::string_view program_for_host(const std::vector<ZipMember>& members) {
  const std::vector<std::string_view> here = cpu::host::isas();
  for (const std::string_view isa : here) {
    if (const ZipMember* const program = find(members, std::string(kProgramFolder) + std::string(isa))) return program->data;
  }
  std::vector<std::string> programs;
  for (const ZipMember& member : members)
    if (member.name.starts_with(kProgramFolder)) programs.push_back(member.name.substr(kProgramFolder.size()));
  throw Error(programs.empty() ? Status::invalid_arguments : Status::unimplemented,
              join("it has programs for ", list_of(programs), "; this machine runs ", list_of(here)));
}

}  // namespace

Model::Model(std::unique_ptr<const ModelFile> file, bool verifies_weights) : file_(std::move(file)) {
  const std::vector<ZipMember> members = read_zip_directory(file_->bytes());
  read_program(program_for_host(members));
  check_model();
  const ZipMember* const weights = find(members, "weights.safetensors");
  if (weights == nullptr) refuse("the file is damaged: it has no weights.safetensors");
  find_weights(weights->data, verifies_weights);
}

void Model::read_program(std::string_view bytes) {
  const cpu::ProgramParts parts = cpu::parts_of_program(bytes);
  cpu::ProgramReader reader(parts.description);
  reader.read(head_);
  const std::vector<std::string_view> here = cpu::host::isas();
  if (std::find(here.begin(), here.end(), head_.isa) == here.end())
    throw Error(Status::unimplemented, join("its program is for ", head_.isa, ", this machine runs ", list_of(here)));
  code_ = file_->map_code(parts.image);
  std::vector<const void*> functions;
  for (const cpu::ProgramHead::Function& function : head_.functions) {
    if (function.offset >= parts.image.size()) cpu::ByteReader::fail("a function in the image");
    functions.push_back(static_cast<const char*>(code_.get()) + function.offset);
  }
  reader.set_code(std::move(functions));
  for (const ExportedModel::Partition& ports : head_.model.partitions) {
    Partition partition{cpu::read_program(reader, ports.inputs.size(), ports.outputs.size()), nullptr};
    if (const size_t count = partition.program->constant_count(); count > 0)
      partition.constants = std::make_unique<cpu::PackedConstants>(count);
    scratch_bytes_ = std::max(scratch_bytes_, partition.program->scratch_bytes());
    partitions_.push_back(std::move(partition));
  }
  if (!reader.is_at_end()) cpu::ByteReader::fail("the end");
}

void Model::check_model() const {
  const ExportedModel& model = head_.model;
  for (const auto* const tensors : {&model.inputs, &model.outputs}) {
    for (const ExportedModel::Tensor& tensor : *tensors)
      if (tensor.shape.size() != tensor.strides.size() || tensor.shape.size() > kMaxRank)
        cpu::ByteReader::fail("a stride per dim");
  }
  const auto exists = [&model](const ExportedModel::Value& value) {
    switch (value.source) {
      case Source::input: return value.index < model.inputs.size();
      case Source::output: return value.index < model.outputs.size();
      case Source::constant: return value.index < model.constants.size();
      case Source::arena: return value.index <= model.arena_bytes;
    }
    return false;
  };
  for (const ExportedModel::Partition& partition : model.partitions) {
    if (!std::all_of(partition.inputs.begin(), partition.inputs.end(), exists) ||
        !std::all_of(partition.outputs.begin(), partition.outputs.end(), exists))
      cpu::ByteReader::fail("a value of the model");
  }
}

// The data begin after a header of text, whose length comes first.
void Model::find_weights(std::string_view file, bool verifies) {
  const ExportedModel& model = head_.model;
  uint64_t header = 0;
  for (size_t i = 0; i < kLengthBytes && i < file.size(); ++i) header |= uint64_t{static_cast<uint8_t>(file[i])} << (8 * i);
  if (file.size() < kLengthBytes || header > file.size() - kLengthBytes)
    refuse("the file is damaged: the header of its weights exceeds them");
  weights_ = file.substr(kLengthBytes + header);
  if (weights_.size() != model.weights_bytes)
    refuse(join("the file is damaged: its weights have ", weights_.size(), " bytes, its program needs ", model.weights_bytes));
  for (const ExportedModel::Constant& constant : model.constants) {
    if (constant.offset > weights_.size() || constant.bytes > weights_.size() - constant.offset)
      refuse(join("the file is damaged: constant ", constant.name, " exceeds its weights"));
  }
  if (verifies && sha256_hex(weights_) != model.weights_digest) refuse("the weights are damaged: their digest differs");
}

const void* Model::place_of(const ExportedModel::Value& value, std::span<const void* const> inputs,
                            std::span<void* const> outputs, char* arena) const {
  switch (value.source) {
    case Source::input: return inputs[value.index];
    case Source::output: return outputs[value.index];
    case Source::constant: return weights_.data() + head_.model.constants[value.index].offset;
    case Source::arena: return arena + value.index;
  }
  return nullptr;
}

void Model::run(std::span<const void* const> inputs, std::span<void* const> outputs, int threads,
                const ThreadPool* pool) const {
  const cpu::Executor executor = pool == nullptr ? cpu::Executor(threads) : cpu::Executor(*pool);
  const ExecutionContext context;
  const size_t arena_bytes = cpu::aligned(head_.model.arena_bytes);
  ScratchPool<cpu::HostBlock>::Lease scratch(pool_, arena_bytes + scratch_bytes_, context);
  char* const arena = static_cast<char*>(scratch.memory());
  // Per thread, so that only its first run allocates.
  auto& sources = PerThread<Model, std::vector<const void*>>::get();
  auto& destinations = PerThread<Partition, std::vector<void*>>::get();
  for (size_t p = 0; p < partitions_.size(); ++p) {
    const ExportedModel::Partition& ports = head_.model.partitions[p];
    sources.clear();
    destinations.clear();
    for (const auto& value : ports.inputs) sources.push_back(place_of(value, inputs, outputs, arena));
    for (const auto& value : ports.outputs) destinations.push_back(const_cast<void*>(place_of(value, inputs, outputs, arena)));
    partitions_[p].program->run(sources, destinations, arena + arena_bytes, executor, partitions_[p].constants.get());
  }
  scratch.end();
}

}  // namespace lamina::runtime
