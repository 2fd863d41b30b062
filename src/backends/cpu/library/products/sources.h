// Panels of weights that are no matrix of floats in memory, and the register tile that reads them.
#pragma once

#include "backends/cpu/code/code_source.h"
#include "backends/cpu/dispatch/factor_sources.h"
#include "backends/cpu/product/product_code.h"

namespace lamina::cpu {

class PanelSource : public PanelMaker {
 public:
  // In place of one that reads panels of floats.
  virtual CodeSource tile(const ProductTile& of_floats) const { return source_of(of_floats); }
};

}  // namespace lamina::cpu
