#include "runtime/model.h"

#include <algorithm>
#include <utility>

#include "backends/cache/sha256.h"
#include "backends/cpu/dispatch/primitive.h"
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
  join_variants();
  const ZipMember* const weights = find(members, "weights.safetensors");
  if (weights == nullptr) refuse("the file is damaged: it has no weights.safetensors");
  find_weights(weights->data, verifies_weights);
  if (head_.packed.empty()) return;
  const std::string name = "packed/" + head_.isa;
  const ZipMember* const packed = find(members, name);
  if (packed == nullptr) refuse(join("the file is damaged: it has no ", name));
  find_packed_weights(packed->data, verifies_weights);
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
  SharedWeights packed;
  for (const ExportedModel::Variant& described : head_.model.variants)
    variants_.push_back(read_variant(reader, described, packed));
  if (!reader.is_at_end()) cpu::ByteReader::fail("the end");
}

Model::Variant Model::read_variant(cpu::ProgramReader& reader, const ExportedModel::Variant& described, SharedWeights& packed) {
  Variant variant;
  for (const ExportedModel::Partition& ports : described.partitions) {
    Partition partition{cpu::read_program(reader, ports.inputs.size(), ports.outputs.size()), nullptr};
    if (const size_t count = partition.program->constant_count(); count > 0)
      partition.constants = std::make_unique<cpu::PackedConstants>(count);
    if (partition.constants != nullptr) packed.share(ports, *partition.program, *partition.constants);
    variant.scratch_bytes = std::max(variant.scratch_bytes, partition.program->scratch_bytes());
    variant.partitions.push_back(std::move(partition));
  }
  variant.scratch_bytes += cpu::aligned(described.arena_bytes);
  variant.scratch = std::make_unique<ScratchPool<cpu::HostBlock>>([](size_t bytes, const ExecutionContext& context) {
    return std::make_unique<cpu::HostBlock>(bytes, 64, context.allocator);
  });
  return variant;
}

void Model::check_model() const {
  const ExportedModel& model = head_.model;
  if (model.variants.empty()) cpu::ByteReader::fail("a variant of the model");
  const ExportedModel::Variant& first = model.variants.front();
  for (const ExportedModel::Variant& variant : model.variants) {
    for (const auto tensors : {&ExportedModel::Variant::inputs, &ExportedModel::Variant::outputs}) {
      if ((variant.*tensors).size() != (first.*tensors).size()) cpu::ByteReader::fail("the same tensors in all variants");
      for (size_t t = 0; t < (variant.*tensors).size(); ++t) {
        const ExportedModel::Tensor &tensor = (variant.*tensors)[t], &same = (first.*tensors)[t];
        if (tensor.shape.size() != tensor.strides.size() || tensor.shape.size() > kMaxRank ||
            tensor.shape.size() != same.shape.size() || tensor.dtype != same.dtype)
          cpu::ByteReader::fail("a stride per dim");
      }
    }
    const auto exists = [&](const ExportedModel::Value& value) {
      switch (value.source) {
        case Source::input: return value.index < variant.inputs.size();
        case Source::output: return value.index < variant.outputs.size();
        case Source::constant: return value.index < model.constants.size();
        case Source::arena: return value.index <= variant.arena_bytes;
      }
      return false;
    };
    for (const ExportedModel::Partition& partition : variant.partitions) {
      if (!std::all_of(partition.inputs.begin(), partition.inputs.end(), exists) ||
          !std::all_of(partition.outputs.begin(), partition.outputs.end(), exists))
        cpu::ByteReader::fail("a value of the model");
    }
  }
}

void Model::join_variants() {
  inputs_ = head_.model.variants.front().inputs;
  outputs_ = head_.model.variants.front().outputs;
  for (const ExportedModel::Variant& variant : head_.model.variants) {
    for (const auto& [joined, tensors] : {std::pair(&inputs_, &variant.inputs), {&outputs_, &variant.outputs}}) {
      for (size_t t = 0; t < joined->size(); ++t) {
        ExportedModel::Tensor& tensor = (*joined)[t];
        for (size_t d = 0; d < tensor.shape.size(); ++d) {
          if ((*tensors)[t].shape[d] != tensor.shape[d]) tensor.shape[d] = kUnknownDim;
          if ((*tensors)[t].strides[d] != tensor.strides[d]) tensor.strides[d] = kUnknownDim;
        }
      }
    }
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

// The constants of programs are this memory, which no run writes.
void Model::find_packed_weights(std::string_view file, bool verifies) {
  for (const cpu::ProgramHead::Packed& packed : head_.packed) {
    const auto fits = [&] {
      if (packed.variant >= variants_.size() || packed.partition >= variants_[packed.variant].partitions.size()) return false;
      const Partition& partition = variants_[packed.variant].partitions[packed.partition];
      return packed.constant < partition.program->constant_count() &&
             packed.bytes == partition.program->memory().constants[packed.constant] &&
             packed.offset == cpu::aligned(packed.offset) && packed.offset <= file.size() &&
             packed.bytes <= file.size() - packed.offset;
    };
    if (!fits()) refuse("the file is damaged: its packed weights do not fit its program");
    variants_[packed.variant].partitions[packed.partition].constants->give(packed.constant,
                                                                           const_cast<char*>(file.data()) + packed.offset);
  }
  if (verifies && cpu::digest_of_packed(file) != head_.packed_digest)
    refuse("the packed weights are damaged: their digest differs");
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

void Model::run(size_t number, std::span<const void* const> inputs, std::span<void* const> outputs, int threads,
                const ThreadPool* pool) const {
  const cpu::Executor executor = pool == nullptr ? cpu::Executor(threads) : cpu::Executor(*pool);
  const ExecutionContext context;
  const Variant& variant = variants_[number];
  const ExportedModel::Variant& described = head_.model.variants[number];
  ScratchPool<cpu::HostBlock>::Lease scratch(*variant.scratch, variant.scratch_bytes, context);
  char* const arena = static_cast<char*>(scratch.memory());
  // Per thread, so that only its first run allocates.
  auto& sources = PerThread<Model, std::vector<const void*>>::get();
  auto& destinations = PerThread<Partition, std::vector<void*>>::get();
  for (size_t p = 0; p < variant.partitions.size(); ++p) {
    const ExportedModel::Partition& ports = described.partitions[p];
    sources.clear();
    destinations.clear();
    for (const auto& value : ports.inputs) sources.push_back(place_of(value, inputs, outputs, arena));
    for (const auto& value : ports.outputs) destinations.push_back(const_cast<void*>(place_of(value, inputs, outputs, arena)));
    const Partition& partition = variant.partitions[p];
    partition.program->run(sources, destinations, arena + cpu::aligned(described.arena_bytes), executor,
                           partition.constants.get());
  }
  scratch.end();
}

}  // namespace lamina::runtime
