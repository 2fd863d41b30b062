#include "backends/gpu/kernel_runner.h"

#include <algorithm>

#include "backends/gpu/schedule/tuning.h"
#include "interface/per_thread.h"
#include "interface/status.h"

namespace lamina::gpu {

namespace {

constexpr int64_t kAlignment = 16;
using tuning::kColumnLanes, tuning::kMaxGroups;

}  // namespace

int64_t groups_for(int64_t items, int64_t items_per_group) {
  const int64_t groups = (items + items_per_group - 1) / items_per_group;
  if (groups > kMaxGroups)
    throw Error(Status::invalid_shape, join("gpu backend: ", groups, " work-groups, a device runs at most ", kMaxGroups));
  return groups;
}

KernelRunner::KernelRunner(const std::shared_ptr<Device>& device, const kernel::Kernel& kernel, const Tuned& tuned)
    : KernelRunner(device, kernel, tuned, tuned ? tuned->chosen.schedule : choose_schedule(kernel, device->limits())) {}

KernelRunner::KernelRunner(std::shared_ptr<Device> device, kernel::Kernel kernel, Tuned tuned, const Schedule& schedule)
    : device_(std::move(device)),
      kernel_(std::move(kernel)),
      order_(sum_order(kernel_)),
      tuned_(std::move(tuned)),
      schedule_(schedule),
      limits_(device_->limits()) {
  if (needs_f64(kernel_) && !limits_.has_f64) {
    throw Error(Status::unimplemented,
                join("gpu backend: ", kernel_.name, " needs f64, which ", device_->name(), " does not have"));
  }
  rows_ = kernel_.row_count();
  row_size_ = kernel_.row_size();
  const auto outer = static_cast<size_t>(kernel_.outer_rank);
  words_ = {rows_, row_size_};
  for (size_t d = 0; d < outer; ++d) words_.push_back(kernel_.extents[d]);
  for (const kernel::Arg& arg : kernel_.args) {
    int64_t last = 0;
    for (size_t d = 0; d < arg.strides.size(); ++d) {
      if (d < outer && arg.strides[d] != 0) words_.push_back(arg.strides[d]);
      last += std::max<int64_t>(kernel_.extents[d] - 1, 0) * arg.strides[d];
    }
    arg_bytes_.push_back(bytes_of(arg.dtype, last + 1));
    if (arg.column) ++columns_;
  }
  entries_ = kernel_.entry_count();
  if (schedule_.copies_ahead && columns_ == 0) words_.push_back(rows_of_team());
  column_words_ = words_of_columns();
  rows_aligned_ = rows_are_aligned();
  const Assumptions usual{rows_aligned_, true};
  source_ = emit_kernel(kernel_, schedule_, device_->language(), usual.aligned, usual.disjoint);
  const LoadedModule loaded = device_->load(source_);
  from_cache_ = loaded.from_cache;
  modules_[(usual.aligned ? 1U : 0U) + 2U] = loaded.module;
}

std::string KernelRunner::schedule_name() const {
  const std::string name = name_of(kernel_, schedule_);
  return tuned_ ? tuned_texts::choice(join(name, ", ", describe(schedule_)), text_of(*tuned_)) : name;
}

std::string KernelRunner::text() const {
  return kernel::print(kernel_) + kernel::print(kernel::LoopPlan(kernel_, loop_policy(kernel_, schedule_)));
}

// Every wide access is aligned to its size, if the tensor is.
bool KernelRunner::rows_are_aligned() const {
  if (!device_->needs_alignment()) return true;
  for (const kernel::Arg& arg : kernel_.args) {
    if (arg.strides.back() != 1 || bits_of(arg.dtype) < 8) continue;
    for (size_t d = 0; d + 1 < arg.strides.size(); ++d) {
      const int64_t access = std::min<int64_t>(kAlignment, bytes_of(arg.dtype, schedule_.vector));
      if (kernel_.extents[d] > 1 && bytes_of(arg.dtype, arg.strides[d]) % access != 0) return false;
    }
  }
  return true;
}

int64_t KernelRunner::column_blocks() const { return entries_ * blocks_of_entry(); }

int64_t KernelRunner::blocks_of_entry() const {
  if (order_.column_rows == 0 || rows_ == 0) return 0;
  return (rows_ / entries_ + order_.column_rows - 1) / order_.column_rows;
}

// The words of the launch that adds partial sums, and how many times its groups for all columns run.
std::vector<int64_t> KernelRunner::words_of_columns() const {
  if (kernel_.entry_rank == 0) return {column_blocks()};
  std::vector<int64_t> words{blocks_of_entry(), entries_};
  const auto entries = static_cast<size_t>(kernel_.entry_rank);
  words.insert(words.end(), kernel_.extents.begin(), kernel_.extents.begin() + kernel_.entry_rank);
  for (const kernel::Arg& arg : kernel_.args) {
    for (size_t d = 0; d < entries && arg.column; ++d)
      if (arg.strides[d] != 0) words.push_back(arg.strides[d]);
  }
  return words;
}

size_t KernelRunner::scratch_bytes() const {
  return column_bytes() + (schedule_.split ? static_cast<size_t>(rows_ * split_state_bytes(kernel_)) : 0);
}

size_t KernelRunner::column_bytes() const {
  int64_t element = 4;
  for (const kernel::Node& node : kernel_.nodes) {
    if (node.kind == kernel::NodeKind::column_sum && node.type == kernel::Type::f64) element = 8;
  }
  return (static_cast<size_t>(column_blocks() * row_size_ * columns_ * element) + kAlignment - 1) / kAlignment * kAlignment;
}

KernelRunner::Assumptions KernelRunner::assumptions_of(std::span<const BufferView> buffers) const {
  Assumptions assumptions{rows_aligned_, true};
  const bool addresses = device_->needs_alignment();  // handles are addresses
  auto& places = PerThread<Assumptions, std::vector<BufferView>>::get();
  places.clear();
  for (const BufferView& buffer : buffers) {
    if (addresses)
      places.push_back({nullptr, reinterpret_cast<intptr_t>(buffer.memory) + buffer.offset});
    else
      places.push_back(buffer.memory == nullptr ? buffer : device_->in_whole_buffer(buffer));
  }
  for (size_t a = 0; a < places.size(); ++a) {
    if (addresses && kernel_.args[a].strides.back() == 1 && places[a].offset % kAlignment != 0) assumptions.aligned = false;
    for (size_t b = 0; b < places.size(); ++b) {
      if (a == b || !kernel_.args[a].output || places[a].memory != places[b].memory) continue;
      const bool apart =
          places[a].offset + arg_bytes_[a] <= places[b].offset || places[b].offset + arg_bytes_[b] <= places[a].offset;
      assumptions.disjoint = assumptions.disjoint && apart;
    }
  }
  return assumptions;
}

std::shared_ptr<const Module> KernelRunner::module_for(Assumptions assumptions) const {
  const std::lock_guard lock(mutex_);
  auto& module = modules_[(assumptions.aligned ? 1U : 0U) + (assumptions.disjoint ? 2U : 0U)];
  if (module == nullptr)
    module =
        device_->load(emit_kernel(kernel_, schedule_, device_->language(), assumptions.aligned, assumptions.disjoint)).module;
  return module;
}

// Several if the next row is copied ahead and there are enough rows for all compute units.
int64_t KernelRunner::rows_of_team() const {
  if (!schedule_.copies_ahead || columns_ > 0) return 1;
  const int64_t blocks = schedule_.together ? blocks_of_row(kernel_, order_) : 1;
  const int64_t teams = tuning::kGroupsPerUnit * limits_.compute_units * (schedule_.cluster ? 1 : schedule_.rows_per_group);
  return std::clamp<int64_t>((rows_ * blocks + teams - 1) / teams, 1, tuning::kRowsOfTeam);
}

// The number of work-groups. Each runs one row, several short ones or a block of a row, or that of a block of rows in a kernel
// with column sums.
int64_t KernelRunner::row_groups(bool by_column_block) const {
  if (schedule_.flat) return groups_for(rows_ * (row_size_ / schedule_.vector), schedule_.group_size());
  const int64_t teams = by_column_block ? column_blocks() : (rows_ + rows_of_team() - 1) / rows_of_team();
  if (!schedule_.together) return groups_for(teams, schedule_.rows_per_group);
  return groups_for(schedule_.cluster ? teams * blocks_of_row(kernel_, order_) : teams, 1);
}

void KernelRunner::run(void* stream, std::span<const BufferView> buffers, BufferView partials) const {
  LAMINA_CHECK(buffers.size() == kernel_.args.size(), "one buffer per arg");
  const std::shared_ptr<const Module> module = module_for(assumptions_of(buffers));
  auto& views = PerThread<KernelRunner, std::vector<BufferView>>::get();  // only a thread's first call allocates
  views.assign(buffers.begin(), buffers.end());
  if (columns_ > 0 || schedule_.split) views.push_back(partials);
  if (schedule_.split)
    run_split(*module, stream, views);
  else if (const int64_t groups = row_groups(columns_ > 0); groups > 0)
    module->launch(stream, 0, groups, schedule_.group_size(), views, words_);
  if (columns_ == 0 || row_size_ == 0) return;
  views.clear();
  for (size_t a = 0; a < buffers.size(); ++a) {
    if (kernel_.args[a].column) views.push_back(buffers[a]);
  }
  views.push_back(partials);
  const int64_t groups = groups_for(row_size_, kColumnLanes) * columns_ * entries_;
  if (groups == 0) return;
  module->launch(stream, source_.symbols.size() - 1, groups_for(groups, 1), kColumnLanes * schedule_.column_threads, views,
                 column_words_);
}

// Runs phase after phase. Each row is shared by enough groups to fill the device a few times over. A group whose sums of
// columns are in registers has one block.
void KernelRunner::run_split(const Module& module, void* stream, std::span<const BufferView> views) const {
  const size_t phases = source_.symbols.size() - (columns_ > 0 ? 1 : 0);
  for (size_t phase = 0; phase < phases; ++phase) {
    const bool sums_columns = columns_ > 0 && phase + 1 == phases;
    const int64_t groups = row_groups(sums_columns);
    const int64_t blocks = blocks_of_row(kernel_, order_);
    const int64_t wanted = sums_columns && schedule_.column_registers
                               ? blocks
                               : std::clamp<int64_t>(tuning::kGroupsPerUnit * limits_.compute_units / groups, 1, blocks);
    const int64_t span = (blocks + wanted - 1) / wanted * order_.block();
    auto& words = PerThread<KernelRunner, std::vector<int64_t>>::get();
    words = words_;
    words.push_back(static_cast<int64_t>(column_bytes()));
    words.push_back(span);
    module.launch(stream, phase, groups_for(groups * ((row_size_ + span - 1) / span), 1), schedule_.group_size(), views, words);
  }
}

}  // namespace lamina::gpu
