// The include path that programs use.
#pragma once

#include "oneapi/dnnl/dnnl.hpp"
