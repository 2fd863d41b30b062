/* infiniop's interface for the gradient of layer normalisation, over lamina. */
#ifndef LAMINA_COMPAT_INFINIOP_H
#define LAMINA_COMPAT_INFINIOP_H

#include "infinicore.h"
#include "infiniop/handle.h"
#include "infiniop/ops/layer_norm_backward.h"
#include "infiniop/tensor_descriptor.h"
#include "infinirt.h"

#endif
