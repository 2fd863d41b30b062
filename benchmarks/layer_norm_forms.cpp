// Layer normalisation in place, in strided and blocked formats, and of int8 data, each compared with its plain case with the
// same traffic. Uses the primitive front end, as its callers do.
//
//   layer_norm_forms [--threads N] [--seconds S] [--only TEXT]
//
// The cases of a group take turns, round after round, so that disturbances affect all of them. They first run with data that
// may be in the caches, then with all data fetched from memory in each run. Each figure is the median of its rounds. The
// ratio is the time of the group's first case over that of the case (above 1: faster). --only selects the cases whose name
// contains TEXT.
#include <omp.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "contenders.h"
#include "dnnl.hpp"
#include "measure.h"

namespace {

constexpr double kDisturbed = 0.05;

using namespace dnnl;
using dt = memory::data_type;
using tag = memory::format_tag;

struct Case {
  std::string name;
  std::function<void()> run;
  double bytes;  // of the big tensors
};

using Group = std::vector<Case>;

const engine& cpu() {
  static const engine an_engine(engine::kind::cpu, 0);
  return an_engine;
}

bool is_integer(const memory::desc& desc) { return memory::data_type_size(desc.get_data_type()) == 1; }

memory filled(const memory::desc& desc) {
  memory m(desc, cpu());
  const std::size_t bytes = desc.get_size();
  if (desc.get_data_type() == dt::f32) {
    auto* const values = static_cast<float*>(m.get_data_handle());
    for (std::size_t i = 0; i < bytes / sizeof(float); ++i)
      values[i] = static_cast<float>(i * 2654435761U % 2000) / 1000.0f + 0.5f;
  } else {
    auto* const values = static_cast<unsigned char*>(m.get_data_handle());
    for (std::size_t i = 0; i < bytes; ++i) values[i] = static_cast<unsigned char>(i * 2654435761U >> 7);
  }
  return m;
}

// Tensors with the same role use the same memory in all cases, so that no case finds more of its data in the caches than
// another.
memory big_tensor(const memory::desc& desc, int place) {
  constexpr memory::dim kMaxElements = memory::dim{1} << 25;
  static std::map<std::pair<int, bool>, memory> tensors;
  const auto key = std::pair(place, is_integer(desc));
  if (!tensors.contains(key))
    tensors.emplace(key, filled(memory::desc({kMaxElements}, is_integer(desc) ? dt::s8 : dt::f32, tag::x)));
  return memory(desc, cpu(), tensors.at(key).get_data_handle());
}

double bytes_of(const memory::desc& desc) {
  double elements = 1;
  for (const memory::dim extent : desc.get_dims()) elements *= static_cast<double>(extent);
  return elements * static_cast<double>(memory::data_type_size(desc.get_data_type()));
}

// Forward inference with scale and shift. If `in_place`, dst is src.
Case forward(std::string name, const memory::desc& src, const memory::desc& dst, bool in_place = false) {
  primitive_attr attr;
  std::unordered_map<int, memory> args;
  const memory::desc one({1}, dt::f32, tag::x);
  for (const auto& [index, desc] : {std::pair(DNNL_ARG_SRC, &src), std::pair(DNNL_ARG_DST, &dst)}) {
    if (!is_integer(*desc)) continue;
    attr.set_scales_mask(index, 0);
    args[DNNL_ARG_ATTR_SCALES | index] = filled(one);
  }
  const layer_normalization_forward::primitive_desc pd(cpu(), prop_kind::forward_inference, src, dst, 1e-5f,
                                                       normalization_flags::use_scale | normalization_flags::use_shift, attr);
  args[DNNL_ARG_SRC] = big_tensor(src, 0);
  args[DNNL_ARG_DST] = in_place ? args[DNNL_ARG_SRC] : big_tensor(dst, 1);
  args[DNNL_ARG_SCALE] = filled(pd.weights_desc());
  args[DNNL_ARG_SHIFT] = filled(pd.weights_desc());
  return {std::move(name),
          [primitive = layer_normalization_forward(pd), s = stream(cpu()), args] { primitive.execute(s, args); },
          bytes_of(src) + bytes_of(dst)};
}

Case backward(std::string name, const memory::desc& data, bool in_place = false) {
  const auto flags = normalization_flags::use_scale | normalization_flags::use_shift;
  const layer_normalization_forward::primitive_desc hint(cpu(), prop_kind::forward_training, data, data, 1e-5f, flags);
  const layer_normalization_backward::primitive_desc pd(cpu(), prop_kind::backward, data, data, data, 1e-5f, flags, hint);
  std::unordered_map<int, memory> args;
  args[DNNL_ARG_SRC] = big_tensor(data, 0);
  args[DNNL_ARG_DIFF_DST] = big_tensor(data, 2);
  args[DNNL_ARG_DIFF_SRC] = in_place ? args[DNNL_ARG_DIFF_DST] : big_tensor(data, 1);
  for (const int index : {DNNL_ARG_MEAN, DNNL_ARG_VARIANCE}) args[index] = filled(pd.mean_desc());
  for (const int index : {DNNL_ARG_SCALE, DNNL_ARG_DIFF_SCALE, DNNL_ARG_DIFF_SHIFT}) args[index] = filled(pd.weights_desc());
  return {std::move(name),
          [primitive = layer_normalization_backward(pd), s = stream(cpu()), args] { primitive.execute(s, args); },
          3 * bytes_of(data)};
}

std::vector<Group> all_groups() {
  const memory::dims rows{8, 1024, 1024}, images{8, 64, 64, 256}, many{8192, 4096};
  const memory::desc plain(rows, dt::f32, tag::tnc), gaps(rows, dt::f32, memory::dims{1024 * 1040, 1040, 1}),
      ntc(rows, dt::f32, tag::ntc);
  std::vector<Group> groups(5);
  groups[0].push_back(forward("forward, plain", plain, plain));
  groups[0].push_back(forward("forward, in place", plain, plain, true));
  groups[0].push_back(forward("forward, rows with gaps", gaps, gaps));
  groups[0].push_back(forward("forward, ntc", ntc, ntc));
  groups[0].push_back(forward("forward, tnc to ntc", plain, ntc));
  groups[1].push_back(backward("backward, plain", plain));
  groups[1].push_back(backward("backward, in place", plain, true));
  groups[1].push_back(backward("backward, rows with gaps", gaps));
  groups[1].push_back(backward("backward, ntc", ntc));
  // With another dim in blocks, or channels last, the normalised dim (w) is not contiguous.
  const auto images_in = [&](tag format) { return memory::desc(images, dt::f32, format); };
  groups[2].push_back(forward("forward, nchw", images_in(tag::nchw), images_in(tag::nchw)));
  groups[2].push_back(forward("forward, nChw16c", images_in(tag::nChw16c), images_in(tag::nChw16c)));
  groups[2].push_back(forward("forward, nChw8c", images_in(tag::nChw8c), images_in(tag::nChw8c)));
  groups[2].push_back(forward("forward, nhwc", images_in(tag::nhwc), images_in(tag::nhwc)));
  groups[2].push_back(forward("forward, nchw to nChw16c", images_in(tag::nchw), images_in(tag::nChw16c)));
  groups[3].push_back(backward("backward, nchw", images_in(tag::nchw)));
  groups[3].push_back(backward("backward, nChw16c", images_in(tag::nChw16c)));
  groups[3].push_back(backward("backward, nChw8c", images_in(tag::nChw8c)));
  groups[4].push_back(forward("forward, f32, N = 4096", {many, dt::f32, tag::nc}, {many, dt::f32, tag::nc}));
  groups[4].push_back(forward("forward, s8, N = 4096", {many, dt::s8, tag::nc}, {many, dt::s8, tag::nc}));
  groups[4].push_back(forward("forward, u8 to s8, N = 4096", {many, dt::u8, tag::nc}, {many, dt::s8, tag::nc}));
  return groups;
}

struct Figures {
  std::vector<bench::Timing> timings;
  double others = 1;  // the fraction of the machine that other programs used
};

// Measures again if other programs used the machine, up to the number of attempts in `how`.
Figures measure_group(const Group& cases, const bench::Measurement& how) {
  std::vector<std::vector<bench::Contender>> contenders;
  for (const Case& each : cases) contenders.push_back({{each.name, each.run}});
  Figures figures;
  for (int attempt = 0; attempt < how.attempts && figures.others > kDisturbed; ++attempt) {
    const bench::BusyWatch watch;
    figures.timings = bench::measure(contenders, how);
    figures.others = watch.others();
  }
  return figures;
}

void report_group(const Group& cases, double seconds, bench::Evictor& evictor) {
  const Figures tiers[] = {measure_group(cases, {.seconds = seconds}),
                           measure_group(cases, {.seconds = seconds, .evictor = &evictor})};
  for (size_t i = 0; i < cases.size(); ++i) {
    std::printf("%-30s", cases[i].name.c_str());
    for (const Figures& tier : tiers) {
      const double time = tier.timings[i].seconds;
      std::printf(" %9.1f us %6.1f GB/s %5.2fx", time * 1e6, cases[i].bytes / time * 1e-9, tier.timings[0].seconds / time);
    }
    std::printf("\n");
  }
  for (const Figures& tier : tiers) {
    if (tier.others > kDisturbed)
      std::printf("other programs had %.0f %% of the machine: not to be trusted\n", 100 * tier.others);
  }
  std::printf("\n");
  std::fflush(stdout);
}

struct Options {
  int threads = 2;
  double seconds = 2;
  std::string only;
  bool valid = true;
};

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    if (i + 1 == count) {
      options.valid = false;
    } else if (name == "--threads") {
      options.threads = std::atoi(arguments[++i]);
    } else if (name == "--seconds") {
      options.seconds = std::atof(arguments[++i]);
    } else if (name == "--only") {
      options.only = arguments[++i];
    } else {
      options.valid = false;
    }
  }
  options.valid = options.valid && options.threads >= 1 && options.seconds >= 0;
  return options;
}

}  // namespace

int main(int count, char** arguments) {
  const Options options = parse(count, arguments);
  if (!options.valid) {
    std::fprintf(stderr, "usage: layer_norm_forms [--threads N] [--seconds S] [--only TEXT]\n");
    return 2;
  }
  try {
    omp_set_num_threads(options.threads);
    std::printf("%d threads, %.1f s a case; ratio: time of the group's first case / time of the case\n\n%-30s %-32s %s\n",
                options.threads, options.seconds, "", "  as the caches have it", "  fetched from memory");
    bench::Evictor evictor;
    for (Group& group : all_groups()) {
      std::erase_if(group, [&](const Case& each) { return each.name.find(options.only) == std::string::npos; });
      if (!group.empty()) report_group(group, options.seconds, evictor);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "layer_norm_forms: %s\n", error.what());
    return 1;
  }
}
