#include "backends/gpu/emit/exchange.h"

#include <algorithm>

#include "backends/gpu/emit/c_types.h"

namespace lamina::gpu {

// Results of two exchanges have space in a cluster: a team that has those of one may already send those of the next while
// another still reads. It can't be two ahead, because it needs the results of all teams, and a team folds, with a barrier for
// all its threads, before it sends. The arrivals of the two are counted apart for the same reason.
void Exchange::begin() {
  out_.line("const int rank = ", schedule_.cluster ? join("(int)(LM_GROUP % ", blocks_, ")") : "team", ";");
  out_.line("const lm_ix first = (lm_ix)rank * ", e_.order.block(), ";");
  if (results_ == 0) return;
  out_.line("LM_SHARED lm_s64 exchange[", results_ * blocks_ * (schedule_.cluster ? 2 : 1), "];");
  if (!schedule_.cluster) return;
  out_.line("LM_SHARED lm_u64 arrivals[2];");
  out_.line("int exchanges = 0;");
  out_.line("lm_start_cluster(arrivals, t == 0);");
}

bool Exchange::has_results(int phase) const {
  return std::any_of(plan_.roots(phase).begin(), plan_.roots(phase).end(), [&](auto root) { return is_reduction(root); });
}

void Exchange::send(int phase) {
  if (!has_results(phase)) return;
  int64_t bytes = 0;
  reductions_.for_results(
      phase, [&](kernel::Type type, int64_t, const std::string&) { bytes += bytes_of(kernel::data_type_of(type), blocks_); });
  if (schedule_.cluster)
    out_.line("if (t == 0) lm_expect_bytes(arrivals + exchanges % 2, ", bytes, ");");
  else
    out_.line("LM_BARRIER;");
  out_.open(schedule_.cluster ? join("if (t < ", blocks_, ")") : "if (t == 0)");
  reductions_.for_results(phase, [&](kernel::Type type, int64_t number, const std::string& result) {
    const std::string place = join(memory(number), " + rank");
    if (schedule_.cluster)
      out_.line("lm_send_", suffix_of(type), "(", place, ", ", result, ", arrivals + exchanges % 2, t);");
    else
      out_.line("*(LM_LOCAL ", c_type(type), "*)(", place, ") = ", result, ";");
  });
  out_.close();
  if (!schedule_.cluster) out_.line("LM_BARRIER;");
}

void Exchange::receive(int phase) {
  if (!has_results(phase)) return;
  if (schedule_.cluster) out_.line("lm_wait_for_bytes(arrivals + exchanges % 2, exchanges / 2 % 2);");
  reductions_.join_results(phase, [&](kernel::Type type, int64_t number) {
    return join("*(LM_LOCAL const ", c_type(type), "*)(", memory(number), " + base / ", e_.order.block(), ")");
  });
  if (schedule_.cluster) out_.line("++exchanges;");
}

// Of result `number` of the blocks, eight bytes each.
std::string Exchange::memory(int64_t number) const {
  const std::string side = schedule_.cluster ? join("exchanges % 2 * ", results_ * blocks_, " + ") : "";
  return join("exchange + ", side, number * blocks_);
}

}  // namespace lamina::gpu
