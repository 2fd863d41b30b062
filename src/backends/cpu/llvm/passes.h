// Includes LLVM's pass manager for the one file that runs passes. Its templates are instantiated in every file that includes
// them, which is slow.
#pragma once

#include "backends/cpu/llvm/headers.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#pragma GCC diagnostic ignored "-Wredundant-move"
#endif

#include <llvm/Passes/OptimizationLevel.h>
#include <llvm/Passes/PassBuilder.h>

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
