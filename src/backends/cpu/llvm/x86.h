// Includes LLVM's x86-specific headers.
#pragma once

#include "backends/cpu/llvm/headers.h"

#include <llvm/IR/IntrinsicsX86.h>
