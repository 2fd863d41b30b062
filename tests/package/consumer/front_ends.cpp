// A minimal user of the installed front ends: one normalised row with oneDNN's primitive, and a handle of infiniop.
#include <cmath>

#include "dnnl.hpp"
#include "infiniop.h"

int main() {
  using namespace dnnl;
  const engine cpu(engine::kind::cpu, 0);
  stream s(cpu);
  float row[] = {-3, 3};
  const memory::desc md({1, 2}, memory::data_type::f32, memory::format_tag::nc);
  const memory data(md, cpu, row);
  const layer_normalization_forward::primitive_desc pd(cpu, prop_kind::forward_inference, md, md, 1e-5f,
                                                       normalization_flags::none);
  layer_normalization_forward(pd).execute(s, {{DNNL_ARG_SRC, data}, {DNNL_ARG_DST, data}});
  s.wait();
  infiniopHandle_t handle = nullptr;
  const bool created =
      infiniopCreateHandle(&handle) == INFINI_STATUS_SUCCESS && infiniopDestroyHandle(handle) == INFINI_STATUS_SUCCESS;
  return created && std::abs(row[0] + 1) < 1e-4f && std::abs(row[1] - 1) < 1e-4f ? 0 : 1;
}
