#include "backends/cpu/run/kernel_runner.h"

#include <algorithm>

#include "backends/cpu/code/cached_costs.h"
#include "backends/cpu/code/host_machine.h"
#include "backends/cpu/emit/split_call.h"
#include "backends/cpu/schedule/cost_model.h"
#include "backends/cpu/schedule/legal_schedules.h"
#include "backends/cpu/schedule/live_values.h"
#include "backends/cpu/schedule/loop_policy.h"
#include "backends/cpu/schedule/sharing.h"
#include "backends/cpu/schedule/timed_schedules.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

bool stores_row_values(const kernel::Kernel& kernel) {
  return std::any_of(kernel.nodes.begin(), kernel.nodes.end(),
                     [](const kernel::Node& n) { return n.kind == kernel::NodeKind::store && !n.per_element; });
}

}  // namespace

KernelRunner::Code::Code(kernel::Kernel of, const Machine& on, const Schedule* chosen, bool takes_tuned)
    : machine(on),
      is_for_host(host_runs(on)),
      kernel(with_rows_arranged(std::move(of), on)),
      tuned(takes_tuned ? find_tuned<Schedule>(kernel, on) : std::nullopt),
      given(chosen != nullptr ? std::optional(*chosen)
            : tuned           ? std::optional(tuned->chosen.schedule)
                              : std::nullopt) {
  Schedule first = given ? *given : choose_schedule(kernel, machine, true);
  first.split = false;
  if (chosen != nullptr)
    add(first);
  else
    for (Schedule& each : timed_schedules(first, kernel, machine, given.has_value())) add(std::move(each));
  timed_codes = codes.size();
  if (std::none_of(codes.begin(), codes.end(), [](const auto& each) { return each->schedule.streamed.empty(); }))
    add(given ? without_streaming(*given) : choose_schedule(kernel, machine, false));
  compiled(0);
}

void KernelRunner::Code::add(Schedule schedule) {
  schedule.split = false;
  codes.push_back(std::make_unique<KernelRunner::Variant>(std::move(schedule)));
}

const KernelRunner::Variant& KernelRunner::Code::compiled(size_t code) const {
  KernelRunner::Variant& variant = *codes[code];
  variant.compiled.call([&] { variant.code = compile_kernel(kernel, variant.schedule, machine); });
  return variant;
}

// Only some numbers of threads need it.
const CompiledKernel& KernelRunner::Code::split(size_t code) const {
  compiled(code);
  KernelRunner::Variant& variant = *codes[code];
  variant.split_compiled.call([&] {
    Schedule schedule = variant.schedule;
    schedule.split = true;
    variant.split = compile_kernel(kernel, given ? schedule : split_schedule(variant.schedule, kernel, machine), machine);
  });
  return variant.split;
}

KernelCode::Variant KernelRunner::Code::variant(size_t code, bool splits) const {
  if (!is_for_host)
    throw Error(Status::runtime_error, join("cpu backend: ", main().code.symbol, " is compiled for ", machine.cpu,
                                            ", whose instructions this machine lacks"));
  const KernelRunner::Variant& of = compiled(code);
  return {splits ? split(code).function : of.code.function, of.schedule.rows_per_group};
}

void KernelRunner::Code::write(ProgramWriter& to) const {
  const bool splits = program_of(*this, 1).splits();
  for (size_t code = 0; code < codes.size(); ++code) {
    const KernelRunner::Variant& of = compiled(code);
    cpu::write(to, of.code);
    to.write(int64_t{of.schedule.rows_per_group});
    if (!splits) continue;
    cpu::write(to, split(code));
    to.write(int64_t{of.schedule.rows_per_group});
  }
}

// Per number of threads, whether rows are divided among them; empty if they never are.
static std::vector<bool> gains_by_split(const kernel::Kernel& kernel, const Machine& machine, const Schedule& chosen,
                                        bool is_given) {
  std::vector<bool> gains(static_cast<size_t>(std::max(machine.cores, is_given ? 2 : 1)) + 1, false);
  for (size_t threads = 2; threads < gains.size(); ++threads)
    gains[threads] =
        is_given ? chosen.split && kernel.row_count() > 0 : gains_by_split(chosen, kernel, machine, static_cast<int>(threads));
  return std::find(gains.begin(), gains.end(), true) == gains.end() ? std::vector<bool>{} : gains;
}

KernelProgram KernelRunner::program_of(const Code& code, int threads) {
  const kernel::Kernel& kernel = code.kernel;
  const Schedule& schedule = code.main().schedule;
  const auto streaming =
      std::find_if(code.codes.begin(), code.codes.end(), [](const auto& each) { return !each->schedule.streamed.empty(); });
  const Schedule* const streamed = streaming != code.codes.end() ? &(*streaming)->schedule : nullptr;
  KernelProgram program{
      .extents = kernel.extents,
      .outer_rank = kernel.outer_rank,
      .entry_rank = kernel.entry_rank,
      .moved_bytes = moved_bytes(kernel),
      .sharing = row_sharing(kernel, code.machine.caches),
      .is_worth_threads = CostModel(kernel, code.machine).is_worth_threads(),
      .streamed = streamed != nullptr ? streamed->streamed : std::vector<int>{},
      .aligns_to_lines = streamed != nullptr && (streamed->follows_lines || streamed->realigns),
      .streams = {},
      .timed_codes = code.timed_codes,
      .gains_by_split = gains_by_split(kernel, code.machine, code.given ? *code.given : schedule, code.given.has_value())};
  for (const auto& each : code.codes) {
    program.streams.push_back(!each->schedule.streamed.empty());
    const kernel::LoopPlan plan(kernel, loop_policy(kernel, each->schedule));
    program.live_bytes = std::max(program.live_bytes, live_values(plan, each->schedule).scratch_bytes());
  }
  for (const kernel::Arg& arg : kernel.args) {
    program.args.push_back({arg.dtype, arg.output, arg.strides});
    program.has_one_thread = program.has_one_thread || (arg.output && shares_bytes(arg));
  }
  for (const kernel::Node& node : kernel.nodes) {
    if (node.kind != kernel::NodeKind::column_sum) continue;
    program.column_sums.push_back(node.arg);
    program.sums_in_f64 = node.type == kernel::Type::f64;
  }
  const bool is_alone = !program.is_worth_threads || program.has_one_thread;
  program.slots = is_alone ? 1 : static_cast<int>(std::clamp<int64_t>(kernel.row_count(), 1, std::max(threads, 1)));
  program.has_parts = !program.has_one_thread && program.column_sums.empty() && kernel.phase_count() == 1 &&
                      !schedule.transposed && is_one_run(kernel);
  program.split_steps = 2 * kernel.phase_count() - (stores_row_values(kernel) ? 0 : 1);
  program.paired_stages = program.sharing.reduces_whole_rows ? kernel.phase_count() - 1 : 0;
  if (program.splits()) program.state_bytes = split_state_bytes(kernel);
  return program;
}

KernelRunner::KernelRunner(kernel::Kernel kernel, const Machine& machine, int threads, const Schedule* given,
                           bool takes_tuned) {
  auto code = std::make_unique<const Code>(std::move(kernel), machine, given, takes_tuned);
  code_ = code.get();
  KernelProgram program = program_of(*code, threads);
  dispatch_ = std::make_shared<const KernelDispatch>(std::move(program), std::move(code));
  if (dispatch_->wants_split(machine.cores)) code_->split(0);
}

Schedule KernelRunner::schedule() const {
  if (code_->given) return *code_->given;
  const Schedule& main = code_->main().schedule;
  return dispatch_->wants_split(code_->machine.cores) ? split_schedule(main, kernel(), code_->machine) : main;
}

std::string KernelRunner::choice() const {
  const auto text_of_schedule = [](const Schedule& schedule) {
    const std::string fields = describe(schedule);
    return fields.empty() ? std::string("nothing unusual") : fields;
  };
  const std::string what = text_of_schedule(schedule());
  std::string by_time;
  for (size_t code = 1; code < code_->timed_codes; ++code)
    by_time += (code == 1 ? "; where calls are faster so: " : "; or: ") + text_of_schedule(code_->codes[code]->schedule);
  if (!code_->tuned) return join(code_->given ? "given: " : "by rule: ", what, by_time);
  return tuned_texts::choice(what, text_of(*code_->tuned)) + by_time;
}

std::string KernelRunner::loops() const {
  const Schedule chosen = schedule();
  return kernel::print(kernel::LoopPlan(kernel(), loop_policy(kernel(), chosen)));
}

}  // namespace lamina::cpu
