// Includes LLVM's own JIT without its warnings. Tests compile single functions with it; the library links its objects itself.
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

#include <llvm/ExecutionEngine/Orc/LLJIT.h>

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
