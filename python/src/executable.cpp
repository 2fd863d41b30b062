#include "executable.h"

#include <algorithm>
#include <cstdlib>

#include "profiles.h"

namespace lamina::python {
namespace {

constexpr size_t kAlignment = 64;

size_t byte_size(const graph::logical_tensor& tensor) {
  const size_t size = tensor.get_mem_size();
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

void check_count(nb::handle list, size_t expected, const char* side) {
  const size_t given = nb::len(list);
  if (given != expected)
    throw error(lamina_invalid_arguments,
                std::to_string(given) + " " + side + " are given, allowed is " + std::to_string(expected));
}

}  // namespace

const engine& cpu_engine() {
  static const engine cpu(engine::kind::cpu, 0);
  return cpu;
}

// The tensor objects of one execution; each execution sets their memory.
struct Executable::Frame {
  stream run_on{cpu_engine()};
  std::vector<graph::tensor> slots;
  struct Ports {
    std::vector<const_lamina_graph_tensor_t> inputs, outputs;
  };
  std::vector<Ports> ports;  // per step
  std::unique_ptr<char, void (*)(void*)> inner{nullptr, std::free};
};

Executable::Executable(std::vector<Step> steps, std::vector<Input> inputs, std::vector<graph::logical_tensor> outputs,
                       std::vector<graph::logical_tensor> inner, std::vector<Constant> constants)
    : steps_(std::move(steps)),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)),
      inner_(std::move(inner)),
      constants_(std::move(constants)),
      kept_(inputs_.size()) {
  const size_t slots = inputs_.size() + outputs_.size() + inner_.size() + constants_.size();
  for (const Step& step : steps_)
    for (const std::vector<size_t>* side : {&step.inputs, &step.outputs})
      for (const size_t slot : *side)
        if (slot >= slots)
          throw error(lamina_invalid_arguments, "a step names slot " + std::to_string(slot) + ", allowed is 0.." +
                                                    std::to_string(static_cast<int64_t>(slots) - 1));
  place_inner();
}

Executable::~Executable() = default;

// Inner tensors share memory by lifetime: each is placed at the lowest offset that no simultaneously live tensor occupies.
void Executable::place_inner() {
  const size_t first = inputs_.size() + outputs_.size();
  struct Life {
    size_t begin = SIZE_MAX, end = 0, offset = 0, bytes = 0;
  };
  std::vector<Life> lives(inner_.size());
  for (size_t s = 0; s < steps_.size(); ++s)
    for (const std::vector<size_t>* side : {&steps_[s].inputs, &steps_[s].outputs})
      for (const size_t slot : *side)
        if (slot >= first && slot < first + inner_.size()) {
          Life& life = lives[slot - first];
          life.begin = std::min(life.begin, s);
          life.end = std::max(life.end, s);
        }
  for (size_t i = 0; i < lives.size(); ++i) {
    lives[i].bytes = byte_size(inner_[i]);
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t k = 0; k < i; ++k) {
        const bool together = lives[k].begin <= lives[i].end && lives[i].begin <= lives[k].end;
        const bool overlap =
            lives[i].offset < lives[k].offset + lives[k].bytes && lives[k].offset < lives[i].offset + lives[i].bytes;
        if (!together || !overlap) continue;
        lives[i].offset = lives[k].offset + lives[k].bytes;
        moved = true;
      }
    }
    inner_offsets_.push_back(lives[i].offset);
    inner_bytes_ = std::max(inner_bytes_, lives[i].offset + lives[i].bytes);
  }
}

std::unique_ptr<Executable::Frame> Executable::take_frame() {
  if (!frames_.empty()) {
    std::unique_ptr<Frame> frame = std::move(frames_.back());
    frames_.pop_back();
    return frame;
  }
  auto frame = std::make_unique<Frame>();
  if (inner_bytes_ > 0) {
    frame->inner.reset(static_cast<char*>(std::aligned_alloc(kAlignment, inner_bytes_)));
    if (frame->inner == nullptr)
      throw error(lamina_out_of_memory, "no memory for " + std::to_string(inner_bytes_) + " bytes between partitions");
  }
  for (size_t i = 0; i < inputs_.size(); ++i)
    frame->slots.emplace_back(inputs_[i].tensor, cpu_engine(), kept_[i] ? kept_[i]->memory : nullptr);
  for (const graph::logical_tensor& output : outputs_) frame->slots.emplace_back(output, cpu_engine(), nullptr);
  for (size_t i = 0; i < inner_.size(); ++i)
    frame->slots.emplace_back(inner_[i], cpu_engine(), inner_bytes_ > 0 ? frame->inner.get() + inner_offsets_[i] : nullptr);
  for (const Constant& constant : constants_)
    frame->slots.emplace_back(constant.tensor, cpu_engine(), const_cast<char*>(constant.bytes.data()));
  for (const Step& step : steps_) {
    Frame::Ports& ports = frame->ports.emplace_back();
    for (const size_t slot : step.inputs) ports.inputs.push_back(frame->slots[slot].get());
    for (const size_t slot : step.outputs) ports.outputs.push_back(frame->slots[slot].get());
  }
  return frame;
}

void* Executable::memory_of(size_t input, nb::handle object) const {
  const View view = view_of(object, false, "an input of the call");
  if (const std::string why = misfit(view, inputs_[input].given.data); !why.empty())
    throw error(lamina_invalid_arguments,
                "input " + std::to_string(input) + " (tensor " + std::to_string(inputs_[input].tensor.get_id()) + ") " + why);
  return view.memory == nullptr ? nullptr : static_cast<char*>(view.memory) + inputs_[input].offset;
}

void Executable::keep(size_t input, nb::object object) {
  if (input >= inputs_.size() || kept_[input])
    throw error(lamina_invalid_arguments, "input " + std::to_string(input) +
                                              " is kept, allowed is each input that is not kept, 0.." +
                                              std::to_string(static_cast<int64_t>(inputs_.size()) - 1));
  void* const memory = memory_of(input, object);
  kept_[input] = Kept{std::move(object), memory};
  ++kept_count_;
  frames_.clear();
}

void Executable::bind(Frame& frame, nb::handle inputs, nb::handle outputs) const {
  size_t slot = 0;
  for (const nb::handle object : inputs) {
    while (kept_[slot]) ++slot;
    frame.slots[slot].set_data_handle(memory_of(slot, object));
    ++slot;
  }
  slot = inputs_.size();
  for (const nb::handle object : outputs) {
    const size_t at = slot - inputs_.size();
    const graph::logical_tensor& output = outputs_[at];
    const View view = view_of(object, true, "an output of the call");
    if (const std::string why = misfit(view, output.data); !why.empty())
      throw error(lamina_invalid_arguments,
                  "output " + std::to_string(at) + " (tensor " + std::to_string(output.get_id()) + ") " + why);
    frame.slots[slot++].set_data_handle(view.memory);
  }
}

void Executable::run(nb::handle inputs, nb::handle outputs) {
  check_count(inputs, inputs_.size() - kept_count_, "inputs");
  check_count(outputs, outputs_.size(), "outputs");
  std::unique_ptr<Frame> frame = take_frame();
  bind(*frame, inputs, outputs);
  {
    const stream* const profiling = profiling_stream();
    lamina_stream_t run_on = profiling == nullptr ? frame->run_on.get() : profiling->get();
    nb::gil_scoped_release others_may_run;
    for (size_t s = 0; s < steps_.size(); ++s) {
      const auto& [in, out] = frame->ports[s];
      error::wrap_c_api(lamina_graph_compiled_partition_execute(steps_[s].compiled.get(), run_on, in.size(), in.data(),
                                                                out.size(), out.data()));
    }
  }
  frames_.push_back(std::move(frame));
}

}  // namespace lamina::python
