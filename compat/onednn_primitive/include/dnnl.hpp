// As programs include it.
#pragma once

#include "oneapi/dnnl/dnnl.hpp"
